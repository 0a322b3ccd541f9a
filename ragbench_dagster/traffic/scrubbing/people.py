"""Names without an announcement: pairs, lists, single listed names, and what an NER model calls a person.

An NER model's spans count only where they hold a listed name that is no ordinary word, or a rare capitalised
word (`telling`): on queries it takes every unusual word for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.lexicon import (
    COMMON,
    FIRST,
    FOREIGN,
    KNOWN,
    NAME,
    ORDINARY,
    PLACE,
    PRODUCT,
    STOP,
    Lexicon,
)  # fmt: skip
from ragbench_dagster.traffic.scrubbing.pairs import implied, listed, pairs
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span
from ragbench_dagster.traffic.scrubbing.words import (
    FIRM,
    FORM,
    NAME_CASE,
    WORD,
    Words,
    classified,
    is_foreign,
    stem,
    titled,
)

_LOCATIVE = re.compile(
    r"(?i)\b(?:in|to|from|at|near|of|around|via|through|visit|visiting|leaving|city|university|into|across|fly|flew)\s+(?:the\s)?\Z"
)
_VERB = re.compile(
    r"\s(?:said|says|told|tells|asked|asks|replied|replies|shouted|shouts|yelled|whispered|answered|wrote|writes|emailed|texted|"
    r"called|married|died|thinks|thought|insisted|explained|laughed|smiled|cried|nodded|added|began|started|works|lives|joined|left)\b"
)
_CREDIT = re.compile(
    r"(?i)\b(?:starring|(?:directed|written|sung|played|produced|composed|painted|authored|designed|signed) by|featuring|feat\.)\s\Z"
)
_PLACES = ("GPE", "LOC", "FAC")


def telling(word: str, bits: int) -> bool:
    """A word that can make an NER span a person: a listed name, or a rare capitalised word.

    In small letters only a given name tells; abbreviations, CamelCase and words of other languages do not.
    """
    if bits & (ORDINARY | PRODUCT | STOP) or (bits & FOREIGN and not bits & FIRST):
        return False
    if not word[0].isupper():
        return bool(bits & FIRST) and len(word) > 2
    if bits & NAME:
        return True
    return len(word) > 2 and not bits & KNOWN and NAME_CASE.fullmatch(word) is not None


def wants_ner(text: str, lex: Lexicon) -> bool:
    """A word for which the model's answer can matter: one that it may call a person, or a place."""
    return any(
        (bits & NAME and not bits & ORDINARY) or (word[0].isupper() and not bits & KNOWN)
        for word, bits in classified(text, lex)
    )


def might_people(facts: Facts, lex: Lexicon) -> bool:
    """Every name has a listed word that is no ordinary one, or a capitalised one that is listed or unknown."""
    return any(
        (bits & NAME and (word[0].isupper() or not bits & ORDINARY)) or (word[0].isupper() and not bits & KNOWN)
        for word, bits in classified(facts.text, lex)
    )


def people(facts: Facts, lex: Lexicon) -> list[Span]:
    """Pairs, lists and single names, and the model's persons through the gate; then what they imply."""
    text = facts.text
    words = [(m.start(), m.end(), m[0], lex.flags(m[0])) for m in WORD.finditer(text)]
    found = [*pairs(text, words), *listed(text, words), *_singles(text, words, facts)]
    foreign = is_foreign(words)
    for start, end in facts.entities.get("PERSON", ()):
        found.extend(_gated(text, start, end, lex, foreign))
    found.extend(implied(text, words, found))
    return found


def _covered(facts: Facts, start: int, end: int, labels: tuple[str, ...]) -> tuple[int, int] | None:
    for label in labels:
        for a, b in facts.entities.get(label, ()):
            if a < end and start < b:
                return a, b
    return None


def _singles(text: str, words: Words, facts: Facts) -> Iterator[Span]:
    foreign = is_foreign(words)
    for at, (start, end, word, bits) in enumerate(words):
        if not titled(word) or bits & (ORDINARY | PRODUCT | STOP) or len(word) < 3:
            continue
        if _joined(text, start, end) or FIRM.match(text, end):
            continue
        if not bits & NAME:
            if not bits & KNOWN and _shows(text, start, end, word, bits) and not _covered(facts, start, end, _PLACES):
                yield Span(start, stem((start, end, word, bits)), "PERSON", 0.4, Evidence.FORM)
            continue
        if foreign and bits & FOREIGN and not bits & FIRST:
            continue
        if not NAME_CASE.fullmatch(word) or _dated(text, start, end):
            continue
        if not bits & FIRST and _phrase(words, at, text):
            continue
        if bits & PLACE and re.search(r"\b[A-Z]\w+\s\Z", text[max(0, start - 12) : start]):
            continue  # South Africa, New York
        if bits & PLACE and (not bits & COMMON or _LOCATIVE.search(text[max(0, start - 24) : start])):
            continue
        place = _covered(facts, start, end, _PLACES)
        if place and not (bits & FIRST and not bits & PLACE and place[1] - place[0] <= end - start):
            continue
        firm = _covered(facts, start, end, ("ORG",))
        if firm and firm[1] - firm[0] > end - start + 1:
            continue
        yield Span(start, stem((start, end, word, bits)), "PERSON", 0.5, Evidence.NAME)


def _dated(text: str, start: int, end: int) -> bool:
    """A month in a date: "24 April 2020"."""
    return bool(
        re.search(r"\d(?:st|nd|rd|th)?\s\Z", text[max(0, start - 4) : start])
        or re.match(r"\s(?:\d|of\s\d)", text[end : end + 5])
    )


def _phrase(words: Words, at: int, text: str) -> bool:
    """A family name that names a thing: followed by a capitalised everyday word, "Torres Strait"."""
    if at + 1 >= len(words) or text[words[at][1] : words[at + 1][0]] != " ":
        return False
    _, _, after, bits = words[at + 1]
    return titled(after) and bool(bits & ORDINARY or (bits & KNOWN and not bits & NAME))


def _shows(text: str, start: int, end: int, word: str, bits: int) -> bool:
    """A rare capitalised word shows by its form, or the words around it, that it is a person's name."""
    if _VERB.match(text, end) or _CREDIT.search(text[max(0, start - 20) : start]):
        return True
    if _LOCATIVE.search(text[max(0, start - 24) : start]):
        return False
    inside = re.search(r"[\w,;:'\"-]\s\Z", text[max(0, start - 2) : start]) is not None
    return inside and (FORM.search(word) is not None or (any("À" <= ch <= "ž" for ch in word) and not bits & FOREIGN))


def _joined(text: str, start: int, end: int) -> bool:
    """Part of an identifier or a file name."""
    return bool(
        re.match(r"[._/\\@-][\w]|_", text[end : end + 2])
        or re.search(r"[\w][._/\\@-]\Z|[_\d]\Z", text[max(0, start - 2) : start])
    )


def _gated(text: str, start: int, end: int, lex: Lexicon, foreign: bool) -> Iterator[Span]:
    """The model's span without what is no part of a name, where it holds a telling word."""
    if FIRM.match(text, end):
        return
    piece = re.split(r"[\n\r]", text[start:end])[0]
    words = list(WORD.finditer(piece))
    while (
        words
        and lex.flags(words[0][0]) & (STOP | ORDINARY)
        and (not titled(words[0][0]) or lex.flags(words[0][0]) & STOP)
    ):
        words.pop(0)
    while (
        words
        and lex.flags(words[-1][0]) & (STOP | ORDINARY)
        and (not titled(words[-1][0]) or lex.flags(words[-1][0]) & STOP)
    ):
        words.pop()
    if not words or not any(telling(m[0], lex.flags(m[0])) for m in words):
        return
    if foreign and not any(lex.flags(m[0]) & FIRST and not lex.flags(m[0]) & ORDINARY for m in words):
        return
    if all(lex.flags(m[0]) & (PLACE | ORDINARY) for m in words) and (
        not any(lex.flags(m[0]) & FIRST for m in words)
        or _LOCATIVE.search(text[max(0, start - 24) : start + words[0].start()])
    ):
        return
    stop = words[-1].end() - (2 if words[-1][0].endswith("'s") else 0)
    if not _joined(text, start + words[0].start(), start + stop):
        yield Span(start + words[0].start(), start + stop, "PERSON", 0.6, Evidence.MODEL)
