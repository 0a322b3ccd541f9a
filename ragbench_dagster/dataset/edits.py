"""Forms that are one typing error apart (design 8.2): found by wildcards, decided by guards.

Two forms of the same length that differ in one word meet under the key "all other words, and this place
open". Keys are made only for the places of unknown words, then looked up among all places: a known word is
never a typing error of another known word. A moved, added or lost space shows as equal text without spaces.

The keys are sums of 64-bit mixes of (word, place), so that "all but this place" is one subtraction; what meets
under a key is compared word by word, so a collision costs time and never merges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragbench_dagster.dataset.guards import is_typo_of
from ragbench_dagster.dataset.words import is_mendable

_U64 = npt.NDArray[np.uint64]
_I64 = npt.NDArray[np.int64]
_DIGITS = re.compile(r"\d+(?:[.,:/]\d+)*")
# Above this many different words under one key ("what is *") a deletion index finds the pairs.
_CROWD = 12


@dataclass(frozen=True, slots=True)
class Candidate:
    """Row `typo` may be a typing error of row `target`; the unknown word and what stands there instead."""

    typo: int
    target: int
    wrong: str
    right: str


def one_edit_pairs(forms: Sequence[str]) -> Iterator[Candidate]:
    """All pairs of `forms` one typing error apart that pass the guards on the two words.

    A pair of unknown words is given in both directions; the caller picks by weight.
    """
    vocabulary: dict[str, int] = {}
    lengths = np.empty(len(forms), np.int64)
    flat: list[int] = []
    number = vocabulary.setdefault
    for row, form in enumerate(forms):
        tokens = form.split(" ")
        lengths[row] = len(tokens)
        flat.extend([number(token, len(vocabulary)) for token in tokens])
    words = list(vocabulary)
    yield from _wildcard_pairs(np.asarray(flat, np.int64), lengths, words)
    yield from _space_pairs(forms, lengths)


def _mix(value: _U64) -> _U64:
    """splitmix64, the finaliser of Steele, Lea and Flood (2014)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _wildcard_pairs(flat: npt.NDArray[np.int64], lengths: _I64, words: list[str]) -> Iterator[Candidate]:
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(flat)) - starts[rows]
    parts = _mix(flat.astype(np.uint64) * np.uint64(4096) + places.astype(np.uint64) % np.uint64(4096))
    totals = np.add.reduceat(parts, starts) if len(flat) else parts
    # The place and the length are part of the key.
    keys = totals[rows] - parts + _mix(places.astype(np.uint64) * np.uint64(4096) + lengths[rows].astype(np.uint64))
    unknown = np.fromiter((is_mendable(word) for word in words), bool, len(words))
    open_at = np.flatnonzero(unknown[flat])
    asked = np.unique(keys[open_at])
    if not len(asked):
        return
    met = np.searchsorted(asked, keys)
    met[met == len(asked)] = 0
    hits = np.flatnonzero(asked[met] == keys)
    order = hits[np.lexsort((hits, keys[hits]))]
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    edges = np.concatenate(([0], bounds, [len(order)]))
    many = np.flatnonzero(np.diff(edges) > 1)
    ids, at, first = flat.tolist(), rows.tolist(), starts.tolist()
    is_unknown = unknown.tolist()
    sizes = lengths.tolist()
    for group in many.tolist():
        members = order[edges[group] : edges[group + 1]].tolist()
        by_word: dict[int, list[int]] = {}
        for member in members:
            by_word.setdefault(ids[member], []).append(at[member])
        if len(by_word) < 2:
            continue
        place = members[0] - first[at[members[0]]]
        for wrong, right in _word_pairs(by_word, words, is_unknown):
            for typo in by_word[wrong]:
                for target in by_word[right]:
                    if _same_but(ids, first[typo], first[target], sizes[typo], place):
                        yield Candidate(typo, target, words[wrong], words[right])


def _same_but(ids: list[int], one: int, other: int, size: int, place: int) -> bool:
    return (
        ids[one : one + place] == ids[other : other + place]
        and ids[one + place + 1 : one + size] == ids[other + place + 1 : other + size]
    )


def _word_pairs(by_word: dict[int, list[int]], words: list[str], unknown: list[bool]) -> Iterator[tuple[int, int]]:
    """(unknown word, word it may be meant as) among the words that meet under one key."""
    present = list(by_word)
    if len(present) <= _CROWD:
        for wrong in present:
            if unknown[wrong]:
                for right in present:
                    if wrong != right and is_typo_of(words[wrong], words[right]):
                        yield wrong, right
        return
    shapes: dict[str, list[int]] = {}
    for word in present:
        for shape in _deletions(words[word]):
            shapes.setdefault(shape, []).append(word)
    for wrong in present:
        if unknown[wrong]:
            near = {word for shape in _deletions(words[wrong]) for word in shapes[shape]}
            near.discard(wrong)
            for right in sorted(near):
                if is_typo_of(words[wrong], words[right]):
                    yield wrong, right


def _deletions(word: str) -> set[str]:
    """`word` and `word` without any one letter: words one edit apart share one (symmetric deletion)."""
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}


def _space_pairs(forms: Sequence[str], lengths: _I64) -> Iterator[Candidate]:
    """Forms that are equal without spaces, with one space moved, added or lost, and the same numbers."""
    together: dict[str, list[int]] = {}
    for row, form in enumerate(forms):
        together.setdefault(form.replace(" ", ""), []).append(row)
    for rows in together.values():
        if len(rows) < 2:
            continue
        for typo in rows:
            for target in rows:
                if typo != target and _one_space(forms[typo], forms[target]):
                    wrong, right = _differing(forms[typo], forms[target])
                    yield Candidate(typo, target, wrong, right)


def _one_space(one: str, other: str) -> bool:
    return (
        abs(one.count(" ") - other.count(" ")) <= 1
        and len(_breaks(one) ^ _breaks(other)) <= 2
        and _DIGITS.findall(one) == _DIGITS.findall(other)
    )


def _breaks(form: str) -> set[int]:
    """Where the spaces of a form stand, counted in letters."""
    ends, letters = set(), 0
    for word in form.split(" "):
        letters += len(word)
        ends.add(letters)
    return ends


def _differing(one: str, other: str) -> tuple[str, str]:
    """The words of each form that the other one lacks, in order."""
    mine, theirs = one.split(" "), other.split(" ")
    head = 0
    while head < min(len(mine), len(theirs)) and mine[head] == theirs[head]:
        head += 1
    tail = 0
    while tail < min(len(mine), len(theirs)) - head and mine[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    return " ".join(mine[head : len(mine) - tail]), " ".join(theirs[head : len(theirs) - tail])
