"""Forms that are one typing error apart (design 8.2): found by wildcards, decided by guards.

Two forms of the same length that differ in one word meet under the key "all other words, and this place
open". Keys are made only for the places of unknown words, then looked up among all places: a known word is
never a typing error of another known word. A moved, added or lost space shows as equal text without spaces.

The keys are sums of 64-bit mixes of (word, place), so that "all but this place" is one subtraction; what meets
under a key is compared word by word, so a collision costs time and never merges.
"""

from __future__ import annotations

import gc
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ragbench_dagster.dataset.canonical import counts, enumerators, is_numeral, is_roman
from ragbench_dagster.dataset.dictionary import deletions, dictionary, grammar, is_mendable, is_near_grammar
from ragbench_dagster.dataset.typo_guards import is_typo_of, needs_evidence

# Many forms as numbers: every word has an id, so that counting and comparing runs in numpy.

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
_FORMS_AT_ONCE = 4096  # texts split at a time


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector: of a million small objects, none in a cycle, it would walk all many times."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class TokenTable:
    """The words of texts, row after row. `ids[starts[r]:starts[r] + lengths[r]]` are row r's words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.number: dict[str, int] = {}
        flat = array("i")
        for start in range(0, len(texts), _FORMS_AT_ONCE):
            tokens = " ".join(texts[start : start + _FORMS_AT_ONCE]).split(" ")
            for token in dict.fromkeys(tokens):
                self.number.setdefault(token, len(self.number))
            flat.extend(map(self.number.__getitem__, tokens))
        lengths = array("i", [text.count(" ") + 1 for text in texts])
        self.words = list(self.number)
        self.ids: I32 = np.asarray(flat, np.int32)
        self.lengths: I32 = np.asarray(lengths, np.int32)
        self.starts: I64 = np.cumsum(self.lengths) - self.lengths

    @cached_property
    def spread(self) -> I64:
        """How often each word stands in all rows."""
        return np.bincount(self.ids, minlength=len(self.words))

    @cached_property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """For each word, whether no list knows it."""
        return np.fromiter(map(is_mendable, self.words), bool, len(self.words))

    @cached_property
    def rows(self) -> I32:
        """The row of each place in `ids`."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int32), self.lengths)

    def rows_with(self, words: Iterable[str]) -> list[int]:
        """Rows that hold any of `words`, ascending."""
        wanted = [self.number[word] for word in words if word in self.number]
        return np.unique(self.rows[np.isin(self.ids, wanted)]).tolist() if wanted else []

    def count(self, word: str) -> int:
        """How often a word stands in all rows; 0 for a word of none."""
        at = self.number.get(word)
        return 0 if at is None else int(self.spread[at])


# Forms that are one typing error apart (design 8.2): found by wildcards, decided by guards.

_U64 = npt.NDArray[np.uint64]
_DIGITS = re.compile(r"\d+(?:[.,:/]\d+)*")
# Above this many different words under one key ("what is *") a deletion index finds the pairs.
_CROWD = 12
_BLOCK = 1 << 20  # keys looked up at a time
# Forms that must show a word of grammar beside its neighbours, and how many times as often as the odd word,
# before a known word is read as its misspelling.
EVIDENCE = 2
EVIDENCE_RATIO = 10


@dataclass(frozen=True, slots=True)
class Candidate:
    """Row `typo` may be a typing error of row `target`; the unknown word and what stands there instead."""

    typo: int
    target: int
    wrong: str
    right: str


def one_edit_pairs(table: TokenTable, own: int | None = None) -> Iterator[Candidate]:
    """All pairs of rows one typing error apart that pass the guards on the two words.

    A pair of unknown words is given in both directions; the caller picks by rank.

    Args:
        own: how many rows, from the first, show which words stand beside each other; default all.
    """
    neighbours = _Neighbours(table, len(table.texts) if own is None else own)
    for pair, place in _wildcard_pairs(table):
        if not needs_evidence(pair.wrong) or neighbours.say(table.texts[pair.typo].split(" "), place, pair.right):
            yield pair
    yield from _space_pairs(table.texts)
    row_of = {form: row for row, form in enumerate(table.texts)}
    yield from _split_pairs(table, row_of)
    yield from _missing_letter_words(table, row_of, neighbours)


class _Neighbours:
    """In how many forms two words stand side by side; the edges of a form count as a word."""

    def __init__(self, table: TokenTable, own: int) -> None:
        self._number = table.number
        self._edge = len(table.words)
        self._base = len(table.words) + 1
        ends = np.cumsum(table.lengths[:own])
        ids = table.ids[: ends[-1] if own else 0].astype(np.int64)
        spread = np.insert(ids, ends, self._edge)  # an edge after every form
        left = np.concatenate(([self._edge], spread[:-1]))
        pairs, counts = np.unique(left * self._base + spread, return_counts=True)
        self._pairs, self._counts = pairs.tolist(), counts.tolist()  # asked one by one: lists are quicker

    def _count(self, left: int, right: int) -> int:
        key = left * self._base + right
        at = bisect_left(self._pairs, key)
        return self._counts[at] if at < len(self._pairs) and self._pairs[at] == key else 0

    def say(self, tokens: list[str], place: int, right: str) -> bool:
        """True when `right` is common between these neighbours and the word that stands there is not."""
        before = self._number[tokens[place - 1]] if place else self._edge
        after = self._number[tokens[place + 1]] if place + 1 < len(tokens) else self._edge
        odd = tokens[place]
        if place and _tells_apart(odd, right, tokens[place - 1]):
            return False
        wrong, meant = self._number[odd], self._number[right]
        sides = (
            (self._count(before, wrong), self._count(before, meant)),
            (self._count(wrong, after), self._count(meant, after)),
        )
        # The form itself is one of those that show the odd word.
        strong = [usual >= max(EVIDENCE, EVIDENCE_RATIO * (seen - 1)) for seen, usual in sides]
        if len(odd) == 1 and odd not in grammar():  # no word at all: one side is enough where the other is silent
            return any(strong) and all(good or seen <= 1 for good, (seen, _) in zip(strong, sides, strict=True))
        return all(strong)

    def say_missing(self, tokens: list[str], place: int) -> bool:
        """True when the word at `place` is common between its neighbours, and these are not without it."""
        if not 0 < place < len(tokens) - 1 or tokens[place - 1] in enumerators():
            return False
        before, word, after = (self._number[token] for token in tokens[place - 1 : place + 2])
        usual = min(self._count(before, word), self._count(word, after))
        return usual >= max(EVIDENCE, EVIDENCE_RATIO * self._count(before, after))


def _tells_apart(odd: str, right: str, before: str) -> bool:
    """True for a letter or Roman number that names which one: "plan b" is not "plan a", "henry vi" not "henry i"."""
    as_short = len(right) == 1 and (len(odd) == 1 or is_roman(odd))
    return counts(odd, before) or (as_short and before not in grammar())


def _mix(value: _U64) -> _U64:
    """splitmix64, the finaliser of Steele, Lea and Flood (2014), in place."""
    value += np.uint64(0x9E3779B97F4A7C15)
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return value


def _wildcard_pairs(table: TokenTable) -> Iterator[tuple[Candidate, int]]:
    """Pairs that differ in one word, with its place."""
    words = table.words
    near = np.fromiter(map(is_near_grammar, words), bool, len(words))
    is_open = table.unknown | near
    opened = is_open.tolist()
    ids, rows, places, edges = _meetings(table, is_open)
    for start, end in pairwise(edges):
        by_word: dict[int, list[int]] = {}
        for member in range(start, end):
            by_word.setdefault(ids[member], []).append(rows[member])
        place = places[start]
        for wrong, right in _word_pairs(by_word, words, opened):
            for typo in by_word[wrong]:
                for target in by_word[right]:
                    if _same_but(table.texts[typo], table.texts[target], place):
                        yield Candidate(typo, target, words[wrong], words[right]), place


def _meetings(table: TokenTable, is_open: npt.NDArray[np.bool_]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Where different words meet under one key: word ids, rows and places, group after group, and the groups' edges."""
    places = np.arange(len(table.ids), dtype=np.int32) - table.starts[table.rows].astype(np.int32)
    keys = _keys(table, places)
    asked = np.unique(keys[is_open[table.ids]])
    if not len(asked):
        return [], [], [], [0]
    found = []
    for start in range(0, len(keys), _BLOCK):
        block = keys[start : start + _BLOCK]
        met = np.minimum(np.searchsorted(asked, block), len(asked) - 1)
        found.append(start + np.flatnonzero(asked[met] == block))
    hits = np.concatenate(found)
    hits = hits[np.lexsort((hits, table.ids[hits], keys[hits]))]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(keys[hits])) + 1, [len(hits)]))
    words = table.ids[hits]
    differ = words[edges[:-1]] != words[edges[1:] - 1]  # sorted within a group: the first is not the last
    sizes = np.diff(edges)
    hits = hits[np.repeat(differ, sizes)]
    ends = np.concatenate(([0], np.cumsum(sizes[differ])))
    return table.ids[hits].tolist(), table.rows[hits].tolist(), places[hits].tolist(), ends.tolist()


def _keys(table: TokenTable, places: npt.NDArray[np.int32]) -> _U64:
    """For each place of each row: all other words with their places, this place, and the row's length."""
    spots = places.astype(np.uint64)
    parts = _mix(table.ids.astype(np.uint64) * np.uint64(4096) + spots % np.uint64(4096))
    keys = np.add.reduceat(parts, table.starts)[table.rows] if len(parts) else parts
    keys -= parts
    keys += _mix(spots * np.uint64(4096) + table.lengths[table.rows].astype(np.uint64))
    return keys


def _same_but(one: str, other: str, place: int) -> bool:
    """True when two forms of the same length are equal but for the word at `place`: keys may collide."""
    mine, theirs = one.split(" "), other.split(" ")
    return mine[:place] == theirs[:place] and mine[place + 1 :] == theirs[place + 1 :]


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
        for shape in deletions(words[word]):
            shapes.setdefault(shape, []).append(word)
    for wrong in present:
        if unknown[wrong]:
            near = {word for shape in deletions(words[wrong]) for word in shapes[shape]}
            near.discard(wrong)
            for right in sorted(near):
                if is_typo_of(words[wrong], words[right]):
                    yield wrong, right


def _space_pairs(forms: Sequence[str]) -> Iterator[Candidate]:
    """Forms that are equal without spaces, with one space moved, added or lost, and the same numbers."""
    first: dict[str, int] = {}
    equal: dict[int, list[int]] = {}
    for row, form in enumerate(forms):
        other = first.setdefault(form.replace(" ", ""), row)
        if other != row:
            equal.setdefault(other, [other]).append(row)
    for rows in equal.values():
        for typo in rows:
            for target in rows:
                if typo != target and _one_space(forms[typo], forms[target]):
                    wrong, right = _differing(forms[typo], forms[target])
                    if not all(map(is_numeral, f"{wrong} {right}".split(" "))):  # v i, vi
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


def _split_pairs(table: TokenTable, row_of: dict[str, int]) -> Iterator[Candidate]:
    """Forms where another letter was typed in place of a space: "mykcard" for "my card"."""
    halves = {word: parts for word in table.words if (parts := _halves(word, table.number))}
    for row in table.rows_with(halves):
        tokens = table.texts[row].split(" ")
        for place, word in enumerate(tokens):
            for left, right in halves.get(word, ()):
                target = row_of.get(" ".join((*tokens[:place], left, right, *tokens[place + 1 :])))
                if target is not None:
                    yield Candidate(row, target, word, f"{left} {right}")


def _halves(word: str, present: dict[str, int]) -> list[tuple[str, str]]:
    """The two words, one of them known, that `word` is when one letter in it stands for a space."""
    if len(word) < 5 or not is_mendable(word):
        return []
    known = dictionary()
    lefts = [word[:i] for i in range(1, len(word) - 1) if word[:i] in present]
    cuts = [(a, b) for a in lefts if (b := word[len(a) + 1 :]) in present]
    return [(a, b) for a, b in cuts if (a in known or b in known) and not counts(b, a)]


def _missing_letter_words(table: TokenTable, row_of: dict[str, int], neighbours: _Neighbours) -> Iterator[Candidate]:
    """Forms that lack only "a" or "i" where it always stands: "how do transfer money"."""
    for target in table.rows_with(("a", "i")):
        tokens = table.texts[target].split(" ")
        for place, word in enumerate(tokens):
            if word in ("a", "i"):
                row = row_of.get(" ".join((*tokens[:place], *tokens[place + 1 :])))
                if row is not None and neighbours.say_missing(tokens, place):
                    yield Candidate(row, target, "", word)
