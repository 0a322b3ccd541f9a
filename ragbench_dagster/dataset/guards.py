"""What keeps two nearly equal questions apart: digits, negations, accents, known words, short names."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from ragbench_dagster.dataset.phrases import read_words
from ragbench_dagster.dataset.words import dictionary, is_plain, negations

# Words of grammar: a lost letter in one of these leaves no other word that could be meant.
_GRAMMAR = read_words("grammar_words.txt")
# Below this length a word that no list knows is rather a name or a code than an error of another unknown word.
_UNKNOWN_PAIR = 5


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
    """True when the unknown word `wrong` may be a typing error of `right`, and changes no meaning."""
    if not is_plain(right) or not is_one_edit(wrong, right):
        return False
    if _bare(wrong) == _bare(right):  # an accent may make another word: schon, schön
        return False
    if len(wrong) == 1 or len(right) == 1:
        return right in _GRAMMAR
    if right not in dictionary() and min(len(wrong), len(right)) < _UNKNOWN_PAIR:
        return False
    return not _touches_negation(wrong, right)


def _bare(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c)[0] != "M")


def _touches_negation(wrong: str, right: str) -> bool:
    """ "cann" may be can or cant: when a negation is as near as its absence, nobody knows what was meant."""
    near = any(is_one_edit(wrong, word) for word in negations() if abs(len(word) - len(wrong)) < 2)
    if right not in negations():
        return near
    return any(is_one_edit(wrong, word) for word in ("now", "note", "can", "do", "does", "did", "is", "are", "was"))
