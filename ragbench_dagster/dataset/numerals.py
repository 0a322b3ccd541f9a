"""Numbers written in letters: Roman ones, cardinals, ordinals, and the letters that count things (plan a, plan b).

A number is never a typing error of another number: iv and vi, setenta and sesenta, appendix c and appendix d.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from ragbench_dagster.dataset.phrases import read_list, read_words

# Units to thousands in the usual subtractive spelling, and iiii, which clocks and old books use.
_ROMAN = re.compile(r"(?=.)m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,4})")
# Of these letters alone no other word is made: xi, viii, and with a part behind it: iia.
_SURE_ROMAN = re.compile(r"(?=[ivx]{2})x{0,3}(?:ix|iv|v?i{0,4})[a-h]?")


@lru_cache(maxsize=1)
def spelled_numbers() -> dict[str, frozenset[str]]:
    """Cardinals and ordinals by language, with and without their accents."""
    found = {}
    for line in read_list("numbers.txt"):
        language, _, words = line.partition(":")
        found[language] = frozenset(spelling for word in words.split() for spelling in (word, _without_marks(word)))
    return found


@lru_cache(maxsize=1)
def _spelled() -> frozenset[str]:
    return frozenset().union(*spelled_numbers().values())


@lru_cache(maxsize=1)
def enumerators() -> frozenset[str]:
    """Words that a letter or a Roman number behind them counts."""
    return read_words("enumerators.txt")


def is_roman(word: str) -> bool:
    """True for a Roman number of two letters or more that is hardly ever another word."""
    return _SURE_ROMAN.fullmatch(word) is not None


@lru_cache(maxsize=1 << 16)
def is_numeral(word: str) -> bool:
    """True for a number in letters; also for words that may be one (mix, six)."""
    return word in _spelled() or is_roman(word) or _ROMAN.fullmatch(word) is not None


def counts(word: str, before: str) -> bool:
    """True where `word`, standing behind `before`, is a letter or a Roman number that tells things apart."""
    return (len(word) == 1 or is_roman(word)) and before in enumerators()


def _without_marks(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c)[0] != "M")
