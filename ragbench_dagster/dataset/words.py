"""Which words are known. A known word is never a typing error of another one.

Known are: an English dictionary with frequencies (the `symspellpy` package's list, MIT), the shipped lists
of codes, places and negations, and everything that is no plain Latin word at all (numbers, symbols,
placeholders, other scripts): those are never mended.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from ragbench_dagster.dataset.phrases import read_list, read_words

# Occurrences in the dictionary's corpus below which a "word" is more likely somebody's typing error.
FREQUENCY_FLOOR = 300_000
_LATIN = re.compile(r"[a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")


@lru_cache(maxsize=1)
def dictionary() -> frozenset[str]:
    """The known words of English and of the shipped lists."""
    listed = files("symspellpy").joinpath("frequency_dictionary_en_82_765.txt").read_text(encoding="utf-8-sig")
    words = set()
    for line in listed.splitlines():
        word, _, count = line.partition(" ")
        if int(count) >= FREQUENCY_FLOOR:
            words.add(word.replace("'", ""))
    words |= read_words("codes.txt") | read_words("places.txt")
    return frozenset({word for word in words if len(word) > 1} | negations() | {"a", "i"})


@lru_cache(maxsize=1)
def negations() -> frozenset[str]:
    return frozenset(read_list("negations.txt"))


@lru_cache(maxsize=1 << 20)
def is_mendable(word: str) -> bool:
    """True for a plain Latin word that no list knows: it may be a typing error."""
    return word not in dictionary() and _LATIN.fullmatch(word) is not None


@lru_cache(maxsize=1 << 20)
def is_plain(word: str) -> bool:
    """True for a word in Latin letters; a typing error of anything else cannot be told from another meaning."""
    return _LATIN.fullmatch(word) is not None
