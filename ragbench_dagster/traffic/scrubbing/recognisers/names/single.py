"""Names without an announcement: pairs, lists, single listed names, and what an NER model calls a person.

An NER model's spans count only where they hold a listed name that is no ordinary word, or a rare capitalised
word (`telling`): on queries it takes every unusual word for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import (
    CALENDAR,
    COMMON,
    DICTIONARY,
    FIRM,
    FIRST,
    FOREIGN,
    FORM,
    KNOWN,
    NAME,
    NAME_CASE,
    ORDINARY,
    PLACE,
    PRODUCT,
    STOP,
    WORD,
    Lexicon,
    Words,
    classified,
    is_foreign,
    lexicon,
    stem,
    titled,
)
from ragbench_dagster.traffic.scrubbing.recognisers.names.name_pairs import implied, listed, pairs
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

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
_PASSAGE = 300  # characters; in a longer text a rare word that only the model calls a person needs a verb after it
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


def might_people(facts: Facts) -> bool:
    """Every name has a listed word that is no ordinary one, or a capitalised one that is listed or unknown."""
    return any(
        (bits & NAME and (word[0].isupper() or not bits & ORDINARY)) or (word[0].isupper() and not bits & KNOWN)
        for word, bits in classified(facts.text, lexicon())
    )


def people(facts: Facts, lex: Lexicon) -> list[Span]:
    """Pairs, lists and single names, and the model's persons through the gate; then what they imply."""
    text = facts.text
    words = [(m.start(), m.end(), m[0], lex.flags(m[0])) for m in WORD.finditer(text)]
    found = [*pairs(text, words), *listed(text, words), *_singles(text, words, facts, lex)]
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


def _singles(text: str, words: Words, facts: Facts, lex: Lexicon) -> Iterator[Span]:
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
        if not NAME_CASE.fullmatch(word) or _dated(text, start, end) or word.lower() in CALENDAR:
            continue
        if bits & DICTIONARY and not bits & COMMON and not _VERB.match(text, end):
            continue  # "Stagger shifts", "Runny nose"
        if not bits & COMMON and _names_a_thing(text, start, end, lex):
            continue
        if not bits & FIRST and _phrase(words, at, text):
            continue
        if bits & PLACE and re.search(r"\b[A-Z]\w+\s\Z", text[max(0, start - 12) : start]):
            continue  # South Africa, New York
        if (
            bits & PLACE
            and not _VERB.match(text, end)
            and (
                not bits & COMMON
                or _LOCATIVE.search(text[max(0, start - 24) : start])
                or _begins_line(text, start)
                or _beside_place(words, at)
                or _phrase(words, at, text)
            )
        ):
            continue
        place = _covered(facts, start, end, _PLACES)
        if place and not (bits & FIRST and not bits & PLACE and place[1] - place[0] <= end - start):
            continue
        firm = _covered(facts, start, end, ("ORG",))
        if firm and firm[1] - firm[0] > end - start + 1:
            continue
        yield Span(start, stem((start, end, word, bits)), "PERSON", 0.5, Evidence.NAME)


def _beside_place(words: Words, at: int) -> bool:
    """Joined to another place: "Germany and Israel"."""
    near = [*words[max(0, at - 2) : at], *words[at + 1 : at + 3]]
    return any(w[3] & PLACE and titled(w[2]) and not w[3] & COMMON for w in near)


def _begins_line(text: str, start: int) -> bool:
    """The first word of a line of a longer text: its capital says nothing."""
    return start > 0 and text[start - 1] == "\n"


def _names_a_thing(text: str, start: int, end: int, lex: Lexicon) -> bool:
    """An article before it, brackets around it after a capitalised word, or the second part of a binomial after it."""
    before = text[max(0, start - 24) : start]
    if (re.search(r"\b[Tt]he\s\Z", before) and re.match(r"\s[A-Z][a-z]|\Z", text[end : end + 3])) or (
        text[end : end + 1] in (")", ",") and _IN_BRACKETS.search(before)
    ):
        return True
    epithet = re.match(r"\s([a-z]{4,})\b", text[end : end + 30])
    return epithet is not None and not lex.flags(epithet[1]) & (KNOWN | NAME | FOREIGN)


_IN_BRACKETS = re.compile(r"[A-Z][\w-]*\s{1,3}\(\Z")


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
    if NAME_CASE.fullmatch(word) is None:
        return False  # "MyGov"
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
    piece = re.split(r"[\n\r>|]", text[start:end])[0]
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
    if _doubtful(text, start, words, lex):
        return
    stop = words[-1].end() - (2 if words[-1][0].endswith("'s") else 0)
    if not _joined(text, start + words[0].start(), start + stop):
        yield Span(start + words[0].start(), start + stop, "PERSON", 0.6, Evidence.MODEL)


def _doubtful(text: str, start: int, words: list[re.Match[str]], lex: Lexicon) -> bool:
    """What a model takes for a person in passages: acronyms and their expansion, small words of a text with capitals."""
    whole = [m[0] for m in words]
    if any(len(w) > 2 and w.isupper() for w in whole) and any(titled(w) for w in whole):
        return True  # "MMWR Morb Mortal"
    if len(whole) > 1:
        return False
    word, bits = whole[0], lex.flags(whole[0])
    first, last = start + words[0].start(), start + words[0].end()
    if len(word) < 3 or word.lower() in CALENDAR:
        return True
    if word.islower():
        return bool(bits & (KNOWN | DICTIONARY)) and len(re.findall(r"(?<=[a-z,] )[A-Z][a-z]", text)) > 1
    if bits & PLACE and _begins_line(text, first):
        return True
    if len(text) > _PASSAGE and not bits & NAME and not _VERB.match(text, last):
        return True  # names of services and programmes: a passage has too many of them
    return not bits & COMMON and _names_a_thing(text, first, last, lex)
