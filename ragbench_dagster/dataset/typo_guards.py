"""What keeps two nearly equal questions apart: numbers, negations, accents, known words, short names."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from ragbench_dagster.dataset.canonical import is_numeral, is_roman, spelled_numbers
from ragbench_dagster.dataset.dictionary import (
    deletions,
    dictionary,
    grammar,
    is_mendable,
    is_plain,
    negation_twins,
    negations,
)

# Below this length a word that no list knows is a name or a code, never an error of another unknown word.
_SHORT_NAME = 3


def is_one_edit(one: str, other: str) -> bool:
    """True when one letter was added, lost, changed, or swapped with its neighbour (Damerau 1964)."""
    if len(one) > len(other):
        one, other = other, one
    gap = len(other) - len(one)
    if gap > 1 or one == other:
        return False
    start = 0
    while start < len(one) and one[start] == other[start]:
        start += 1
    if gap:
        return one[start:] == other[start + 1 :]
    return one[start + 1 :] == other[start + 1 :] or (
        one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    )


@lru_cache(maxsize=1 << 18)
def is_typo_of(wrong: str, right: str) -> bool:
    """True when `wrong` may be a typing error of `right`, and mending it changes no meaning.

    A known word is only ever an error of a word of grammar, and then the words around it must say so:
    see `needs_evidence`.
    """
    if not is_plain(right) or not is_one_edit(wrong, right):
        return False
    if is_roman(right) or _two_numbers(wrong, right) or _number_in_doubt(wrong, right):
        return False
    if _bare(wrong) == _bare(right):  # an accent may make another word: schon, schön
        return False
    if needs_evidence(wrong):
        return right in grammar() and right not in negations()
    if min(len(wrong), len(right)) < _SHORT_NAME and right not in dictionary():
        return False
    return not _negation_in_doubt(wrong, right)


@lru_cache(maxsize=1 << 18)
def needs_evidence(wrong: str) -> bool:
    """True for a known word and a single letter: either may well be meant."""
    return len(wrong) == 1 or not is_mendable(wrong)


def _bare(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c)[0] != "M")


def _negation_in_doubt(wrong: str, right: str) -> bool:
    """ "cann" may be can or cant: where a negation is as near as its absence, nobody knows what was meant."""
    twins = negation_twins()
    if right in negations():
        return any(is_one_edit(wrong, word) for word in twins.get(right, ()))
    return any(right in words and is_one_edit(wrong, word) for word, words in twins.items())


def _two_numbers(wrong: str, right: str) -> bool:
    """True for two numbers in letters; whether "xi" is the word i typed amiss, its neighbours say."""
    return right != "i" and is_numeral(wrong) and is_numeral(right)


def _number_in_doubt(wrong: str, right: str) -> bool:
    """ "fourt" may be four or fourth: where two numbers of a language are as near, nobody knows which was meant."""
    return is_numeral(right) and any(
        word != right and is_one_edit(wrong, word)
        for shapes, words in _number_shapes()
        if right in words
        for shape in deletions(wrong)
        for word in shapes.get(shape, ())
    )


@lru_cache(maxsize=1)
def _number_shapes() -> list[tuple[dict[str, list[str]], frozenset[str]]]:
    """For each language, its numbers by their shapes without a letter, and all of them."""
    found = []
    for words in spelled_numbers().values():
        shapes: dict[str, list[str]] = {}
        for word in sorted(words):
            for shape in deletions(word):
                shapes.setdefault(shape, []).append(word)
        found.append((shapes, words))
    return found
