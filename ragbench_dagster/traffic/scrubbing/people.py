"""Names without an announcement: first-last pairs, single listed names, and what an NER model calls a person.

An NER model's spans count only where they hold a listed name that is no ordinary word, or a rare capitalised
word (`gate`): on queries it takes every unusual word for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.announced import PARTICLES, WORD
from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.lexicon import FIRST, KNOWN, LAST, NAME, ORDINARY, PLACE, PRODUCT, STOP, Lexicon
from ragbench_dagster.traffic.scrubbing.spans import Span

_JOINT = re.compile(r"[ \t]{1,2}(?:[^\W\d_]\.?[ \t]{1,2})?")
_LOCATIVE = re.compile(
    r"(?i)\b(?:in|to|from|at|near|of|around|via|through|for|between|visit|visiting|leaving|city|university)\s+(?:the\s)?\Z"
)
_PLACES = ("GPE", "LOC", "FAC")
_VETO = ("GPE", "LOC", "FAC", "ORG", "NORP", "PRODUCT", "WORK_OF_ART", "LANGUAGE", "EVENT", "LAW")


def _titled(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and not word.isupper()


def telling(word: str, bits: int) -> bool:
    """A word that can make an NER span a person: a listed name, or a rare capitalised word."""
    if bits & (ORDINARY | PRODUCT | STOP):
        return False
    return bool(bits & NAME) or (word[0].isupper() and len(word) > 2 and not bits & KNOWN)


def wants_ner(facts: Facts, lex: Lexicon) -> bool:
    """Only a telling word can make a span a person: without one the model has nothing to decide."""
    flags = lex.flags
    return any(telling(word, flags(word)) for word in WORD.findall(facts.text))


def people(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Pairs and single names from the lists, and the model's persons through the gate."""
    text = facts.text
    words = [(m.start(), m.end(), m[0], lex.flags(m[0])) for m in WORD.finditer(text)]
    yield from _pairs(text, words)
    yield from _singles(text, words, facts)
    for start, end in facts.entities.get("PERSON", ()):
        yield from _gated(text, start, end, lex)


Words = list[tuple[int, int, str, int]]


def _pairs(text: str, words: Words) -> Iterator[Span]:
    at = 0
    while at < len(words) - 1:
        start, end, word, bits = words[at]
        step = 1
        if bits & FIRST and not bits & (STOP | PRODUCT) and len(word) > 1:
            last = _surname(text, words, at)
            if last is not None:
                yield Span(start, words[last][1], "PERSON", 0.7)
                step = last - at + 1
        at += step


def _surname(text: str, words: Words, at: int) -> int | None:
    """Index of the family name of the pair that begins with the given name `words[at]`."""
    _, end, given, given_bits = words[at]
    titled = _titled(given)
    place = at + 1
    while place < len(words) and place - at <= 3:
        start, stop, word, bits = words[place]
        if not re.fullmatch(r"[ \t]{1,2}|\.[ \t]", text[words[place - 1][1] : start]):
            return None
        if (word.lower() in PARTICLES and place + 1 < len(words)) or (len(word) == 1 and word.isupper() and titled):
            place += 1
            continue
        if bits & (STOP | PRODUCT):
            return None
        ordinary, given_ordinary = bool(bits & ORDINARY), bool(given_bits & ORDINARY)
        if titled:
            if not _titled(word):
                return None
            sure = bits & LAST and not (ordinary or bits & PLACE) or (not bits & KNOWN and not given_ordinary)
            return place if sure or (bits & LAST and not given_ordinary and not given_bits & PLACE) else None
        both = not ordinary and not given_ordinary and not (bits | given_bits) & PLACE
        return place if both and bits & LAST and (word.islower() == given.islower()) else None
    return None


def _singles(text: str, words: Words, facts: Facts) -> Iterator[Span]:
    for start, end, word, bits in words:
        if not _titled(word) or not bits & NAME or bits & (ORDINARY | PRODUCT | STOP) or len(word) < 3:
            continue
        if facts.ner_ran:
            if any(s < end and start < e for label in _VETO for s, e in facts.entities.get(label, ())):
                continue
        if bits & PLACE and _LOCATIVE.search(text[max(0, start - 24) : start]):
            continue
        if bits & PLACE and not bits & FIRST:
            continue
        yield Span(start, end - 2 if word.endswith("'s") else end, "PERSON", 0.5)


def _gated(text: str, start: int, end: int, lex: Lexicon) -> Iterator[Span]:
    """The model's span without what is no part of a name, where it holds a telling word."""
    if re.match(r"[._/\\][\w]", text[end : end + 2]) or re.search(r"[\w][._/\\]\Z", text[max(0, start - 2) : start]):
        return  # part of an identifier or a file name
    piece = re.split(r"[\n\r]", text[start:end])[0]
    words = [m for m in WORD.finditer(piece)]
    while words and lex.flags(words[0][0]) & (STOP | ORDINARY) and not _titled(words[0][0]):
        words.pop(0)
    while words and lex.flags(words[-1][0]) & (STOP | ORDINARY) and not _titled(words[-1][0]):
        words.pop()
    if words and any(telling(m[0], lex.flags(m[0])) for m in words):
        stop = words[-1].end() - (2 if words[-1][0].endswith("'s") else 0)
        yield Span(start + words[0].start(), start + stop, "PERSON", 0.6)
