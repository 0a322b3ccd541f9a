"""What a recogniser returns, and how overlapping findings become one non-overlapping list."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

# A placeholder that is already in the text: `<PERSON>` or `<PERSON_1>`. It passes through unharmed.
PLACEHOLDER = re.compile(r"<([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*?)(?:_(\d{1,9}))?>")

# Which type wins where findings overlap: the more specific, and the one that hides more. "*": all others.
_ORDER = (
    "URL", "CRYPTO", "SECRET", "EMAIL_ADDRESS", "IBAN_CODE", "CREDIT_CARD", "US_SSN", "US_ITIN", "MAC_ADDRESS",
    "IP_ADDRESS", "DATE_OF_BIRTH", "*", "DEVICE_ID", "VEHICLE_ID", "PASSPORT_NUMBER", "LICENSE_NUMBER", "PATIENT_NUMBER",
    "ACCOUNT_NUMBER", "CUSTOMER_NUMBER", "NATIONAL_ID", "ADDRESS", "PHONE_NUMBER",
)  # fmt: skip
PRIORITY = {name: rank for rank, name in enumerate(_ORDER)}
LAST = {"PERSON": 100, "ORGANIZATION": 101, "LOCATION": 102, "NRP": 103, "DATE_TIME": 104}


class Evidence(StrEnum):
    """What a finding rests on. Weak evidence speaks for the place where it was found and for no other."""

    SHAPE = "shape"  # an identifier's own form or check digit
    ANNOUNCED = "announced"  # words, a label, a key or a path that say what follows
    NAMES = "names"  # a given name with a family name
    OWN = "own"  # `scrub.recognizers`
    NAME = "name"  # a single listed name
    BESIDE = "beside"  # a word beside it, without "is" or a colon
    FORM = "form"  # the form of a rare word, or the verb after it
    MODEL = "model"  # the NER model alone
    IMPLIED = "implied"  # joined to, or repeating a part of, another finding

    @property
    def strong(self) -> bool:
        """It holds for the value wherever the request repeats it."""
        return self in _STRONG


_STRONG = frozenset({Evidence.SHAPE, Evidence.ANNOUNCED, Evidence.NAMES, Evidence.OWN})


@dataclass(frozen=True, slots=True)
class Span:
    """Personal data at `text[start:end]`; offsets count characters of the input text."""

    start: int
    end: int
    type: str
    score: float = 1.0
    evidence: Evidence = Evidence.SHAPE


def rank(type_: str) -> int:
    """Smaller wins. National ids and the user's own types stand before addresses and phone numbers."""
    return PRIORITY.get(type_, LAST.get(type_, PRIORITY["*"]))


def resolve(found: Iterable[Span], text: str) -> list[Span]:
    """Non-overlapping spans in text order.

    The better rank wins, then the longer span. What a losing span covers beyond the winner stays hidden
    too (a leak is worse than a long placeholder), unless no letter or digit is in it.
    """
    taken: list[Span] = []  # sorted by start, without overlaps
    ordered = sorted(
        found, key=lambda s: (rank(s.type), s.start - s.end, s.start, -s.score, s.type, not s.evidence.strong)
    )
    for span in ordered:
        for piece in _outside(span, taken):
            start, end = _trim(text, piece.start, piece.end)
            if start < end and (piece == span or _worth(text[start:end], span.type)):
                insort(taken, _cut(span, start, end), key=_start)
    return _strengthened(taken, ordered)


def _strengthened(taken: list[Span], found: list[Span]) -> list[Span]:
    """`taken`, each with the evidence of a stronger finding of its type that it swallowed."""
    if all(span.evidence.strong for span in taken):
        return taken
    reach: dict[str, tuple[list[int], list[Span]]] = {}  # type -> (starts, of those up to there the one that ends last)
    for other in sorted((s for s in found if s.evidence.strong), key=_start):
        starts, furthest = reach.setdefault(other.type, ([], []))
        starts.append(other.start)
        furthest.append(other if not furthest or other.end > furthest[-1].end else furthest[-1])
    return [span if span.evidence.strong else _lifted(span, *reach.get(span.type, ([], []))) for span in taken]


def _lifted(span: Span, starts: list[int], furthest: list[Span]) -> Span:
    at = bisect_left(starts, span.end)
    if at and furthest[at - 1].end > span.start:
        return replace(span, evidence=furthest[at - 1].evidence)
    return span


def _cut(span: Span, start: int, end: int) -> Span:
    """`span` with other ends; `dataclasses.replace` is slower."""
    if start == span.start and end == span.end:
        return span
    return Span(start, end, span.type, span.score, span.evidence)


def _start(span: Span) -> int:
    return span.start


def _outside(span: Span, walls: list[Span]) -> list[Span]:
    """The parts of `span` that no wall covers; `walls` are sorted and do not overlap."""
    pieces, at = [], span.start
    first = bisect_right(walls, span.start, key=_start)
    if first and walls[first - 1].end > span.start:
        at = walls[first - 1].end
    for index in range(first, len(walls)):
        wall = walls[index]
        if wall.start >= span.end:
            break
        if at < wall.start:
            pieces.append(_cut(span, at, wall.start))
        at = wall.end
    if at < span.end:
        pieces.append(_cut(span, at, span.end))
    return pieces


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _worth(piece: str, type_: str) -> bool:
    if type_ in ("PHONE_NUMBER", "DATE_TIME"):
        return sum(c.isdigit() for c in piece) >= 6
    return sum(c.isalnum() for c in piece) >= 2


def clear_of(spans: Iterable[Span], zones: list[tuple[int, int]]) -> list[Span]:
    """`spans` without what lies in `zones` (placeholders that were already there)."""
    if not zones:
        return list(spans)
    walls: list[Span] = []
    for start, end in sorted(zones):
        if walls and start <= walls[-1].end:
            walls[-1] = Span(walls[-1].start, max(end, walls[-1].end), "")
        else:
            walls.append(Span(start, end, ""))
    return [piece for span in spans for piece in _outside(span, walls)]
