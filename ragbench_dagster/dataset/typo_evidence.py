"""Evidence that an odd word is a typing error and not the name of another thing (kubectl and kubectx, ldap and ldaps).

No list knows all names, so that a word is unknown says little. It is an error where a hand slips that way (a key
beside the right one, two letters swapped, one lost or doubled) or where it is far rarer than the word it may be meant
as; for a name in place of a name both are asked, and that it is never asked without the other. What the corpus and the
labels call a thing is no error.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache

import numpy as np

from ragbench_dagster.dataset.dictionary import is_mendable, strange_words
from ragbench_dagster.dataset.phrases import read_words
from ragbench_dagster.dataset.typos import Candidate, TokenTable

# A word that stands in this many forms, and in this share of its neighbour's, is a word and not an error.
FREQUENT_FORMS = 4
FREQUENT_SHARE = 0.125
# ... unless this share of its forms also stands there with the other word: then it is an error made often.
MENDED_SHARE = 0.5
# How many times as often the right word is asked as the odd one, before the latter is called far rarer: an ordinary
# word, a name that a slip of the hand changes, and a name that it does not.
RARER = 3.0
RARER_NAME = 4.0
RARER_OTHER_NAME = 5.0
# Letters from which on a slip inside a name is an error without more evidence: names of this length are no twins.
LONG = 9
# Letters below which another letter makes another word wherever its key lies.
SHORT = 5

_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


class Evidence:
    """What a log says about its odd words.

    Args:
        requests: of each of the table's rows, how many requests it stands for.
        pairs: all pairs one edit apart.
        vocabulary: words that are right whatever the log says.
    """

    def __init__(
        self,
        table: TokenTable,
        requests: Sequence[int],
        pairs: Sequence[Candidate],
        vocabulary: Collection[str] = frozenset(),
    ) -> None:
        self._table = table
        self._requests = requests
        self._vocabulary = vocabulary
        self._twins: dict[str, set[int]] = {}  # the rows of each odd word that have a twin without it
        for pair in pairs:
            self._twins.setdefault(pair.wrong, set()).add(pair.typo)

    @cached_property
    def _asked(self) -> list[int]:
        """How many requests each word stands in."""
        weights = np.repeat(np.asarray(self._requests, np.float64), self._table.lengths)
        return np.bincount(self._table.ids, weights, len(self._table.words)).astype(np.int64).tolist()

    def _asks(self, word: str) -> int:
        at = self._table.number.get(word)
        return 0 if at is None else self._asked[at]

    def shows_error(self, pair: Candidate) -> bool:
        """True when the odd word of `pair` is an error, as far as the log can tell."""
        if " " in pair.right or " " in pair.wrong:
            return not self._frequent(pair)
        if pair.wrong in self._vocabulary:
            return False
        if not is_mendable(pair.wrong):  # a known word: its neighbours have shown it
            return True
        if self._names(pair):
            return self._rare_beside_name(pair)
        if self._frequent(pair):
            return False
        return is_slip(pair.wrong, pair.right) or self._asks(pair.right) >= RARER * self._asks(pair.wrong)

    def _frequent(self, pair: Candidate) -> bool:
        """True when many forms have the odd word and few of them have a twin without it."""
        wrong = self._table.count(pair.wrong)
        if wrong < FREQUENT_FORMS or not is_mendable(pair.wrong):
            return False
        right = min(map(self._table.count, pair.right.split(" ")))
        return wrong >= FREQUENT_SHARE * right and len(self._twins[pair.wrong]) < MENDED_SHARE * wrong

    def _names(self, pair: Candidate) -> bool:
        """True where the word that may be meant is a name, and no word of the language around it either."""
        if pair.right in _listed_names():
            return True
        return is_mendable(pair.right) and pair.right in strange_words(self._table.texts[pair.target].split(" "))

    def _rare_beside_name(self, pair: Candidate) -> bool:
        """Whether one of two names is so rare, and so alike the other, that it is an error."""
        if _is_long(pair.wrong, pair.right) and is_slip(pair.wrong, pair.right):
            return not self._frequent(pair)
        if len(self._twins[pair.wrong]) < self._table.count(pair.wrong):  # asked for itself somewhere
            return False
        slip = is_slip(pair.wrong, pair.right, name=True)
        if slip and pair.right in self._vocabulary:
            return True
        rarer = RARER_NAME if slip else RARER_OTHER_NAME
        return self._asks(pair.right) >= rarer * self._asks(pair.wrong)


@lru_cache(maxsize=1)
def _listed_names() -> frozenset[str]:
    return read_words("names.txt")


def _is_long(wrong: str, right: str) -> bool:
    """True for two long names of which one lost, doubled or swapped a letter; another letter makes another name."""
    return min(len(wrong), len(right)) >= LONG - 1 and (len(wrong) != len(right) or sorted(wrong) == sorted(right))


@lru_cache(maxsize=1 << 16)
def is_slip(wrong: str, right: str, name: bool = False) -> bool:
    """True when a hand that means `right` easily types `wrong`; the words are one edit apart.

    Args:
        name: for a name in place of a name, whose first and last letters hands hit (oauth, imaps), and which one
            other letter anywhere makes another one where the keys do not lie side by side.
    """
    at = next((i for i, (a, b) in enumerate(zip(wrong, right, strict=False)) if a != b), min(len(wrong), len(right)))
    last = at == max(len(wrong), len(right)) - 1
    if len(wrong) == len(right):
        if wrong[at + 1 : at + 2] == right[at : at + 1] and wrong[at] == right[at + 1 : at + 2]:
            return True
        if len(right) < SHORT or (name and (at == 0 or last)):
            return False
        return _is_beside(wrong[at], right[at]) or (not name and _sounds_alike(wrong[at], right[at]))
    if len(wrong) < len(right):
        return at > 0 and not (name and last)
    if at and wrong[at] == wrong[at - 1]:  # doubled
        return True
    around = wrong[max(at - 1, 0) : at] + wrong[at + 1 : at + 2]
    return not (name and (at == 0 or last)) and any(_is_beside(wrong[at], letter) for letter in around)


def _sounds_alike(one: str, other: str) -> bool:
    return any(one in group and other in group for group in ("aeiouy", "cks", "sz", "dt", "bp", "mn", "gj", "fv"))


@lru_cache(maxsize=1)
def _keys() -> dict[str, tuple[int, float]]:
    """Row and column of each key of a qwerty keyboard; each row stands a little further right."""
    return {letter: (row, column + row * 0.4) for row, keys in enumerate(_ROWS) for column, letter in enumerate(keys)}


def _is_beside(one: str, other: str) -> bool:
    keys = _keys()
    if one not in keys or other not in keys:
        return False
    (row, column), (other_row, other_column) = keys[one], keys[other]
    return abs(row - other_row) <= 1 and abs(column - other_column) <= 1
