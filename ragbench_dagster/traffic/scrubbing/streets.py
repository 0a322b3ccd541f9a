"""Postal addresses: anchors that only an address has, grown to the house number, the town and the zip code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing import street_patterns as shape
from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.lexicon import KNOWN, STOP, Lexicon
from ragbench_dagster.traffic.scrubbing.spans import Span

_LEFT = re.compile(r"(?<![\w.,-])\d{1,6}\s\Z")
_DIGITS = re.compile(r"[0-9]+")
_BEFORE, _AFTER = 200, 140  # characters around a digit in which an address is looked for
_FIRST_NUMBER = re.compile(r"\d")


def streets(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Addresses, each grown from its anchor; neighbours become one."""
    text = facts.text
    merged: list[list[int]] = []
    for start, end in sorted(_grow(text, s, e) for s, e in _anchors(facts, lex)):
        if merged and (start <= merged[-1][1] or re.fullmatch(r"[\s,;.>?]{0,8}", text[merged[-1][1] : start])):
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    for start, end in merged:
        yield Span(start, end, "ADDRESS", 0.8)


def _anchors(facts: Facts, lex: Lexicon) -> Iterator[tuple[int, int]]:
    text = facts.text
    if not facts.skip or "corner" in facts.folded:
        yield from (match.span() for match in shape.CORNER.finditer(text))
    wanted = [pattern for words, pattern in shape.ANCHORS if facts.has(words)]
    checked = [shape.ALONE] if facts.has(shape.ALONE_WORDS) else []
    if not facts.skip or any(token.endswith(shape.ENDINGS) for token in facts.tokens):
        checked += [shape.ENDING, shape.BEFORE_ENDING]
    named = [shape.BETWEEN, shape.LOOSE] if facts.has(shape.LOOSE_WORDS) else [shape.BETWEEN]
    said = facts.has(shape.SAID_WORDS)
    for begin, end in _around_digits(text):
        for pattern in (*wanted, shape.TITLED):
            yield from (match.span() for match in pattern.finditer(text, begin, end))
        for pattern in checked:
            for match in pattern.finditer(text, begin, end):
                if not lex.flags(match["w"]) & KNOWN:
                    yield match.span()
        for pattern in named:
            for match in pattern.finditer(text, begin, end):
                if _street_name(match["w"], lex):
                    yield match.span()
        for match in shape.SAID.finditer(text, begin, end) if said else ():
            piece = _said(text, match.end())
            if piece:
                yield piece


def _around_digits(text: str) -> list[tuple[int, int]]:
    """The stretches of `text` in which an address can be: all have a digit, and none is long."""
    stretches: list[tuple[int, int]] = []
    for match in _DIGITS.finditer(text):
        begin, end = match.start() - _BEFORE, match.end() + _AFTER
        if stretches and begin <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((_space(text, begin), end))
    return [(max(0, begin), end) for begin, end in stretches]


def _space(text: str, at: int) -> int:
    """The last space before `at`, so that no word is cut."""
    return max(text.rfind(" ", 0, at), 0) if at > 0 else 0


def _street_name(words: str, lex: Lexicon) -> bool:
    """The words between two numbers: one of them is in no dictionary, none is a function word."""
    bits = [lex.flags(word) for word in re.findall(r"[^\W\d_]+", words)]
    return not any(b & STOP for b in bits) and any(not b & KNOWN for b in bits)


def _said(text: str, at: int) -> tuple[int, int] | None:
    """What is said to be an address: up to the end of the sentence, with a number in it."""
    piece = text[at : at + 120]
    stop = shape.STOPS.search(piece)
    piece = piece[: stop.start()] if stop else piece
    for cut in shape.CUT.finditer(piece):
        if _FIRST_NUMBER.search(piece[: cut.start()]):
            piece = piece[: cut.start()]
            break
    line = re.match(r"[^\d\n]{1,60}\n\s*(?=\d)", piece)  # a name stands above the street
    if line:
        at, piece = at + line.end(), piece[line.end() :]
    piece = piece.rstrip(" \t\n\r,.;:!?\"')")
    if not _FIRST_NUMBER.search(piece) or not re.search(r"[^\W\d_]{3}", piece) or "@" in piece or "://" in piece:
        return None
    return at + len(piece) - len(piece.lstrip()), at + len(piece)


def _grow(text: str, start: int, end: int) -> tuple[int, int]:
    """Over the house number to the left, and over town and country to a zip code at the right."""
    if shape.UNITS.match(text, start):
        street = shape.BEFORE_UNIT.search(text[max(0, start - 80) : start])
        if street:
            start -= len(street[0])
        after = shape.AFTER_UNIT.match(text, end)
        if after:
            end = after.end()
    left = _LEFT.search(text[max(0, start - 8) : start])
    if left:
        start -= len(left[0])
    window = text[end : end + 90]
    stop = shape.STOPS.search(window)
    if stop:
        window = window[: stop.start()]
    match = shape.ZIP.search(window)
    while match:
        gap = shape.UNITS.sub(" ", window[: match.start()])
        if not re.search(r"[\d@<:=]", gap) and len(gap.split()) <= 12:
            town = shape.TOWN.match(text, end + match.end()) if re.fullmatch(r"[\s,]{1,4}", gap) else None
            return start, town.end() if town else end + match.end()
        match = shape.ZIP.search(window, match.end()) if shape.UNITS.search(window[: match.end()]) else None
    return start, end


def might_street(facts: Facts) -> bool:
    """Every address has a number, but for the corner of two streets."""
    return facts.digit or "corner" in facts.folded
