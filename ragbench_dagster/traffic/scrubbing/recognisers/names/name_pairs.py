"""Names of two words, names in a list, and what names that were found imply for the words around them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.recognisers.names.announced import PARTICLES
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import (
    CALENDAR,
    FIRM,
    FIRST,
    FOREIGN,
    FORM,
    KNOWN,
    LAST,
    NAME,
    ORDINARY,
    PLACE,
    PRODUCT,
    STOP,
    Words,
    stem,
    titled,
)
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span


def pairs(text: str, words: Words) -> Iterator[Span]:
    """A given name and a family name, with particles and initials in between."""
    at = 0
    while at < len(words) - 1:
        start, _, word, bits = words[at]
        step = 1
        given = bits & FIRST or (titled(word) and len(word) > 2 and not bits & (ORDINARY | PLACE | KNOWN | FOREIGN))
        if given and not bits & STOP and len(word) > 1 and word[-2:] not in ("'s", "’s"):
            last = _surname(text, words, at)
            if last is not None and bits & PRODUCT and not words[last][3] & LAST:
                last = None
            if last is not None and not FIRM.match(text, words[last][1]):
                both = words[at][3] & NAME and words[last][3] & LAST
                yield Span(start, stem(words[last]), "PERSON", 0.7, Evidence.NAMES if both else Evidence.FORM)
                step = last - at + 1
        at += step


def _surname(text: str, words: Words, at: int) -> int | None:
    """Index of the family name of the pair that begins with the given name `words[at]`."""
    _, _, given, given_bits = words[at]
    capital = titled(given)
    place = at + 1
    while place < len(words) and place - at <= 3:
        start, _, word, bits = words[place]
        if not re.fullmatch(r"[ \t]{1,2}|\.[ \t]", text[words[place - 1][1] : start]):
            return None
        if (word.lower() in PARTICLES and place + 1 < len(words)) or (len(word) == 1 and word.isupper() and capital):
            place += 1
            continue
        if bits & (STOP | PRODUCT):
            return None
        ordinary, given_ordinary = bool(bits & ORDINARY), bool(given_bits & ORDINARY)
        if capital:
            if not titled(word) or FIRM.match(word):
                return None
            family_listed = bool(bits & LAST)
            sure = (bits & LAST and not (ordinary or bits & PLACE)) or (not bits & KNOWN and not given_ordinary)
            if not given_bits & FIRST:
                family = bits & LAST or (given_bits & NAME and FORM.search(word))
                return place if sure and family and not ordinary else None
            known_given = not given_ordinary and not given_bits & PLACE
            if not family_listed and given_bits & PLACE:
                return None  # "America Againexternal"
            return place if sure or known_given else None
        both = not ordinary and not given_ordinary and not (bits | given_bits) & PLACE
        return place if both and bits & LAST and (word.islower() == given.islower()) else None
    return None


def listed(text: str, words: Words) -> Iterator[Span]:
    """All items of an enumeration of three or more single words of which most are given names."""
    at = 0
    while at < len(words) - 2:
        if text[words[at][1]] != ",":
            at += 1
            continue
        run = _run(text, words, at)
        if len(run) >= 3 and sum(words[i][2].lower() in CALENDAR for i in run) < 2:
            sure = sum(1 for i in run if words[i][3] & FIRST and not words[i][3] & (ORDINARY | PLACE | STOP))
            if sure >= 2 and 2 * sure >= len(run):
                for i in run:
                    if not words[i][3] & STOP and (words[i][3] & NAME or titled(words[i][2])):
                        yield Span(words[i][0], stem(words[i]), "PERSON", 0.6, Evidence.NAME)
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


def implied(text: str, words: Words, found: list[Span]) -> Iterator[Span]:
    """What names that were found imply: their parts again, and the word joined to one by "and"."""
    if not found:
        return
    named = _within(words, found)
    parts: set[str] = set()
    for members in named.values():
        if len(members) > 1:
            parts.update(
                text[w[0] : stem(w)]
                for w in (words[i] for i in members)
                if not w[3] & (ORDINARY | STOP | PLACE) and w[1] - w[0] > 2
            )
    inside = {index for members in named.values() for index in members}
    alone = {members[0] for members in named.values() if len(members) == 1}
    for at, word in enumerate(words):
        if at in inside:
            continue
        known = word[3] & (STOP | PRODUCT) or (word[3] & KNOWN and not word[3] & NAME)
        repeated = text[word[0] : stem(word)] in parts
        if repeated or (titled(word[2]) and not (known or word[3] & PLACE) and _coupled(text, words, at, alone)):
            yield Span(word[0], stem(word), "PERSON", 0.4, Evidence.IMPLIED)


def _within(words: Words, found: list[Span]) -> dict[tuple[int, int], list[int]]:
    """The indices of the words in each span."""
    named: dict[tuple[int, int], list[int]] = {}
    starts = [w[0] for w in words]
    for start, end in {(s.start, s.end) for s in found}:
        at = bisect_left(starts, start)
        members = []
        while at < len(words) and words[at][0] < end:
            members.append(at)
            at += 1
        named[start, end] = members
    return named


def _coupled(text: str, words: Words, at: int, alone: set[int]) -> bool:
    """Joined by "and" to a single name, neither being part of a longer capitalised phrase."""
    for first, second in ((at, at + 2), (at - 2, at)):
        if first < 0 or second >= len(words) or words[first + 1][2].lower() not in ("and", "&", "und", "y", "et"):
            continue
        if text[words[first][1] : words[first + 1][0]] != " " or text[words[first + 1][1] : words[second][0]] != " ":
            continue
        other = second if first == at else first
        before = words[first - 1] if first else None
        after = words[second + 1] if second + 1 < len(words) else None
        free = not (before and titled(before[2]) and text[before[1] : words[first][0]] == " ") and not (
            after and titled(after[2]) and text[words[second][1] : after[0]] == " "
        )
        if free and other in alone and words[at][2].lower() not in CALENDAR:
            return True
    return False
