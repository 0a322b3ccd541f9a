"""Names without an announcement: pairs, lists, single listed names, and what an NER model calls a person.

An NER model's spans count only where they hold a listed name that is no ordinary word, or a rare capitalised
word (`telling`): on queries it takes every unusual word for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.announced import PARTICLES, WORD
from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.lexicon import (
    COMMON, FIRST, FOREIGN, KNOWN, LAST, NAME, ORDINARY, PLACE, PRODUCT, STOP, Lexicon,
)  # fmt: skip
from ragbench_dagster.traffic.scrubbing.spans import Span

Words = list[tuple[int, int, str, int]]  # start, end, word, flags

_LOCATIVE = re.compile(
    r"(?i)\b(?:in|to|from|at|near|of|around|via|through|visit|visiting|leaving|city|university|into|across|fly|flew)\s+(?:the\s)?\Z"
)
_FIRM = re.compile(
    r"[ ,]*(?:&|and\s+Sons|Inc|Ltd|LLC|LLP|Corp|Co|GmbH|AG|PLC|Group|Partners|Associates|Bros|Brothers|Holdings|Bank|Hotel|Steakhouse|Street|University|College|Hospital|App)\b"
)
_VERB = re.compile(
    r"\s(?:said|says|told|tells|asked|asks|replied|replies|shouted|shouts|yelled|whispered|answered|wrote|writes|emailed|texted|"
    r"called|married|died|thinks|thought|insisted|explained|laughed|smiled|cried|nodded|added|began|started|works|lives|joined|left)\b"
)
_CREDIT = re.compile(
    r"(?i)\b(?:starring|(?:directed|written|sung|played|produced|composed|painted|authored|designed|signed) by|featuring|feat\.)\s\Z"
)
# Endings of family names; Nordic, Slavic, Baltic, Armenian, Georgian, German.
_FORM = re.compile(
    r"(?:[^s]sson|ss?en|[ds]ottir|nen|berg|str[oö]m|qvist|lund|ov|ova|ev|eva|ovi[cć]|evi[cć]|i[cć]|sk[iy]|ska|enko|chuk|shvili|dze|yan|mann|stein|oglu)(?:'s)?\Z"
)
_NAME_CASE = re.compile(r"(?:Mc|Mac|De|Di|Da|La|Le|Van|O'|D')?[^\W\d_][^\WA-ZÀ-ÖØ-Þ\d_]+(?:[-'][^\W\d_]+)*")
_PLACES = ("GPE", "LOC", "FAC")


def _titled(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and not word.isupper()


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
    return len(word) > 2 and not bits & KNOWN and _NAME_CASE.fullmatch(word) is not None


def wants_ner(facts: Facts, lex: Lexicon) -> bool:
    """A word for which the model's answer can matter: one that it may call a person, or a place."""
    return any(
        (bits & NAME and not bits & ORDINARY) or (word[0].isupper() and not bits & KNOWN)
        for word, bits in _classified(facts.text, lex)
    )


def might_people(facts: Facts, lex: Lexicon) -> bool:
    """Every name has a listed word that is no ordinary one, or a capitalised one that is listed or unknown."""
    return any(
        (bits & NAME and (word[0].isupper() or not bits & ORDINARY)) or (word[0].isupper() and not bits & KNOWN)
        for word, bits in _classified(facts.text, lex)
    )


def _classified(text: str, lex: Lexicon) -> Iterator[tuple[str, int]]:
    flags = lex.flags
    return ((word, flags(word)) for word in WORD.findall(text))


def _is_foreign(words: Words) -> bool:
    """A third of the words are another language's: an English model and English rules say little here."""
    foreign = sum(1 for w in words if w[3] & FOREIGN and not w[3] & KNOWN and not (w[3] & NAME and w[2][0].isupper()))
    return foreign > 0 and foreign * 4 >= len(words)


def people(facts: Facts, lex: Lexicon) -> list[Span]:
    """Pairs, lists and single names, and the model's persons through the gate; then what they imply."""
    text = facts.text
    words = [(m.start(), m.end(), m[0], lex.flags(m[0])) for m in WORD.finditer(text)]
    found = [*_pairs(text, words, facts), *_listed(text, words), *_singles(text, words, facts)]
    foreign = _is_foreign(words)
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


def _pairs(text: str, words: Words, facts: Facts) -> Iterator[Span]:
    at = 0
    while at < len(words) - 1:
        start, _, word, bits = words[at]
        step = 1
        given = bits & FIRST or (_titled(word) and len(word) > 2 and not bits & (ORDINARY | PLACE | KNOWN | FOREIGN))
        if given and not bits & (STOP | PRODUCT) and len(word) > 1:
            last = _surname(text, words, at)
            if last is not None and not _FIRM.match(text, words[last][1]):
                yield Span(start, _stem(words[last]), "PERSON", 0.7)
                step = last - at + 1
        at += step


def _stem(word: tuple[int, int, str, int]) -> int:
    return word[1] - 2 if word[2].endswith(("'s", "’s")) else word[1]


def _surname(text: str, words: Words, at: int) -> int | None:
    """Index of the family name of the pair that begins with the given name `words[at]`."""
    _, _, given, given_bits = words[at]
    titled = _titled(given)
    place = at + 1
    while place < len(words) and place - at <= 3:
        start, _, word, bits = words[place]
        if not re.fullmatch(r"[ \t]{1,2}|\.[ \t]", text[words[place - 1][1] : start]):
            return None
        if (word.lower() in PARTICLES and place + 1 < len(words)) or (len(word) == 1 and word.isupper() and titled):
            place += 1
            continue
        if bits & (STOP | PRODUCT):
            return None
        ordinary, given_ordinary = bool(bits & ORDINARY), bool(given_bits & ORDINARY)
        if titled:
            if not _titled(word) or _FIRM.match(word):
                return None
            sure = bits & LAST and not (ordinary or bits & PLACE) or (not bits & KNOWN and not given_ordinary)
            if not given_bits & FIRST:
                family = bits & LAST or (given_bits & NAME and _FORM.search(word))
                return place if sure and family and not ordinary else None
            known_given = not given_ordinary and not given_bits & PLACE
            return place if sure or known_given else None
        both = not ordinary and not given_ordinary and not (bits | given_bits) & PLACE
        return place if both and bits & LAST and (word.islower() == given.islower()) else None
    return None


def _listed(text: str, words: Words) -> Iterator[Span]:
    """All items of an enumeration of three or more single words of which most are given names."""
    at = 0
    while at < len(words) - 2:
        run = _run(text, words, at)
        if len(run) >= 3:
            sure = sum(1 for i in run if words[i][3] & FIRST and not words[i][3] & (ORDINARY | PLACE | STOP))
            if sure >= 2 and 2 * sure >= len(run):
                for i in run:
                    if not words[i][3] & STOP and (words[i][3] & NAME or _titled(words[i][2])):
                        yield Span(words[i][0], _stem(words[i]), "PERSON", 0.6)
            at = run[-1] + 1
        else:
            at += 1


def _run(text: str, words: Words, at: int) -> list[int]:
    """Indices of the words of the enumeration that begins at `words[at]`."""
    run = [at]
    place = at
    while place + 1 < len(words):
        gap = text[words[place][1] : words[place + 1][0]]
        if re.fullmatch(r",\s", gap):
            following = words[place + 1][2].lower()
            if (
                following in ("and", "or")
                and place + 2 < len(words)
                and text[words[place + 1][1] : words[place + 2][0]] == " "
            ):
                place += 1
            place += 1
            run.append(place)
        elif gap == " " and words[place + 1][2].lower() in ("and", "or", "und", "et", "y") and len(run) > 1:
            if place + 2 < len(words) and text[words[place + 1][1] : words[place + 2][0]] == " ":
                run.append(place + 2)
            break
        else:
            break
    return run


def _singles(text: str, words: Words, facts: Facts) -> Iterator[Span]:
    foreign = _is_foreign(words)
    for at, (start, end, word, bits) in enumerate(words):
        if not _titled(word) or bits & (ORDINARY | PRODUCT | STOP) or len(word) < 3:
            continue
        if _joined(text, start, end) or _FIRM.match(text, end):
            continue
        if not bits & NAME:
            if not bits & KNOWN and _shows(text, start, end, word, bits) and not _covered(facts, start, end, _PLACES):
                yield Span(start, _stem((start, end, word, bits)), "PERSON", 0.4)
            continue
        if foreign and bits & FOREIGN and not bits & FIRST:
            continue
        if not _NAME_CASE.fullmatch(word) or _dated(text, start, end):
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
        yield Span(start, _stem((start, end, word, bits)), "PERSON", 0.5)


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
    return _titled(after) and bool(bits & ORDINARY) and not bits & NAME


def _shows(text: str, start: int, end: int, word: str, bits: int) -> bool:
    """A rare capitalised word shows by its form, or the words around it, that it is a person's name."""
    if _VERB.match(text, end) or _CREDIT.search(text[max(0, start - 20) : start]):
        return True
    if _LOCATIVE.search(text[max(0, start - 24) : start]):
        return False
    inside = re.search(r"[\w,;:'\"-]\s\Z", text[max(0, start - 2) : start]) is not None
    return inside and (_FORM.search(word) is not None or (any("À" <= ch <= "ž" for ch in word) and not bits & FOREIGN))


def _joined(text: str, start: int, end: int) -> bool:
    """Part of an identifier or a file name."""
    return bool(
        re.match(r"[._/\\@-][\w]|_", text[end : end + 2])
        or re.search(r"[\w][._/\\@-]\Z|_\Z", text[max(0, start - 2) : start])
    )


def implied(text: str, words: Words, found: list[Span]) -> Iterator[Span]:
    """What names that were found imply: their parts again, and the word joined to one by "and"."""
    if not found:
        return
    spans = [(s.start, s.end) for s in found]
    parts = set()
    for start, end in spans:
        inside = [w for w in words if start <= w[0] and w[1] <= end + 2]
        if len(inside) > 1:
            parts.update(
                text[w[0] : _stem(w)] for w in inside if not w[3] & (ORDINARY | STOP | PLACE) and w[1] - w[0] > 2
            )
    for at, word in enumerate(words):
        if any(a <= word[0] < b for a, b in spans):
            continue
        if parts and text[word[0] : _stem(word)] in parts:
            yield Span(word[0], _stem(word), "PERSON", 0.4)
        elif _titled(word[2]) and not word[3] & (STOP | PRODUCT) and (not word[3] & KNOWN or word[3] & NAME):
            if _coupled(text, words, at, spans):
                yield Span(word[0], _stem(word), "PERSON", 0.4)


def _coupled(text: str, words: Words, at: int, spans: list[tuple[int, int]]) -> bool:
    """Joined by "and" to a single name, neither being part of a longer capitalised phrase."""
    for first, second in ((at, at + 2), (at - 2, at)):
        if first < 0 or second >= len(words) or words[first + 1][2].lower() not in ("and", "&", "und", "y", "et"):
            continue
        if text[words[first][1] : words[first + 1][0]] != " " or text[words[first + 1][1] : words[second][0]] != " ":
            continue
        other = words[second] if first == at else words[first]
        before = words[first - 1] if first else None
        after = words[second + 1] if second + 1 < len(words) else None
        free = not (before and _titled(before[2]) and text[before[1] : words[first][0]] == " ") and not (
            after and _titled(after[2]) and text[words[second][1] : after[0]] == " "
        )
        if free and any(a == other[0] and other[1] - 2 <= b <= other[1] for a, b in spans):
            return True
    return False


def _gated(text: str, start: int, end: int, lex: Lexicon, foreign: bool) -> Iterator[Span]:
    """The model's span without what is no part of a name, where it holds a telling word."""
    if _FIRM.match(text, end):
        return
    piece = re.split(r"[\n\r]", text[start:end])[0]
    words = list(WORD.finditer(piece))
    while (
        words
        and lex.flags(words[0][0]) & (STOP | ORDINARY)
        and (not _titled(words[0][0]) or lex.flags(words[0][0]) & STOP)
    ):
        words.pop(0)
    while (
        words
        and lex.flags(words[-1][0]) & (STOP | ORDINARY)
        and (not _titled(words[-1][0]) or lex.flags(words[-1][0]) & STOP)
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
        yield Span(start + words[0].start(), start + stop, "PERSON", 0.6)
