"""The guards of the embedding step: what a high cosine does not see.

"from csv to xlsx" and "from xlsx to csv", "on" and "off", "2023" and "2024" lie close in every embedding. Two forms
may mean the same only where names, numbers, negations and opposites agree, and where they do not share a frame in
which one or two words of content were swapped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from ragbench_dagster.dataset.numerals import is_numeral, is_roman
from ragbench_dagster.dataset.phrases import read_list, read_words
from ragbench_dagster.dataset.words import grammar, negations

_DIGITS = re.compile(r"\d+(?:[.,:/]\d+)*")
_PLAIN = re.compile(r"[^\W\d_]{3,}")
_EMPTY = read_words("function_words.txt") | grammar()
# Words that may stand in another's place before the frame counts as another.
SWAP = 2
# Words of direction: where both have one, the words of content must come in the same order.
_DIRECTION = frozenset(["from", "to", "into", "before", "after", "than", "over", "under", "via", "through", "between"])


def may_mean_the_same(one: str, other: str) -> bool:
    """True when nothing but wording parts two normalised forms."""
    if not same_facts(one, other):
        return False
    mine, theirs = one.split(" "), other.split(" ")
    content_mine, content_theirs = _content(mine), _content(theirs)
    if Counter(content_mine) == Counter(content_theirs):
        return content_mine == content_theirs or not (_DIRECTION & set(mine) and _DIRECTION & set(theirs))
    return not _same_frame(mine, theirs)


def same_facts(one: str, other: str) -> bool:
    """True when two forms agree in numbers, names, negations and opposites."""
    if Counter(_DIGITS.findall(one)) != Counter(_DIGITS.findall(other)):
        return False
    mine, theirs = one.split(" "), other.split(" ")
    only_mine, only_theirs = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
    if any(map(is_roman, (*only_mine, *only_theirs))) or _two_numbers(only_mine, only_theirs):
        return False
    if _denied(mine) != _denied(theirs) or _opposed(set(only_mine), set(only_theirs)):
        return False
    return not any(_names(word) for word in (*only_mine, *only_theirs))


def _two_numbers(mine: Collection[str], theirs: Collection[str]) -> bool:
    """True where each form has a number in letters that the other one lacks."""
    return any(map(is_numeral, mine)) and any(map(is_numeral, theirs))


def _denied(tokens: list[str]) -> int:
    return sum(token in negations() for token in tokens) % 2


@lru_cache(maxsize=1)
def _opposites() -> dict[str, frozenset[str]]:
    partners: dict[str, set[str]] = {}
    for line in read_list("opposites.txt"):
        one, other = line.split()
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in partners.items()}


def _opposed(only_mine: set[str], only_theirs: set[str]) -> bool:
    opposites = _opposites()
    return any(not only_theirs.isdisjoint(opposites.get(word, ())) for word in only_mine)


@lru_cache(maxsize=1 << 16)
def _names(word: str) -> bool:
    """True for what must stand in both: symbols, codes, flags, single letters, places."""
    if word in _EMPTY:
        return False
    return word in _codes() or _PLAIN.fullmatch(word) is None


@lru_cache(maxsize=1)
def _codes() -> frozenset[str]:
    return (read_words("codes.txt") | read_words("names.txt") | read_words("places.txt")) - _EMPTY


def _content(tokens: list[str]) -> list[str]:
    return [_stem(token) for token in tokens if token not in _EMPTY]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """The word without its commonest endings: child and child's, travel and traveling are one content."""
    for ending in ("ing", "ers", "er", "ies", "es", "ed", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _same_frame(mine: list[str], theirs: list[str]) -> bool:
    """True where the same words stand before and after, and one or two words between them were swapped."""
    shorter = min(len(mine), len(theirs))
    head = 0
    while head < shorter and mine[head] == theirs[head]:
        head += 1
    tail = 0
    while tail < shorter - head and mine[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    out, back = mine[head : len(mine) - tail], theirs[head : len(theirs) - tail]
    if not head + tail or max(len(out), len(back)) > SWAP:
        return False
    return Counter(_content(out)) != Counter(_content(back))
