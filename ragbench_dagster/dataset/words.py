"""Which words are known. A known word is never a typing error of another one.

Known are: an English dictionary with frequencies (the list of `pyspellchecker`, MIT), the shipped lists
of codes, names, places and negations, and everything that is no plain Latin word at all (numbers, Roman ones too,
symbols, placeholders, other scripts): those are never mended.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from importlib.resources import files

import msgspec

from ragbench_dagster.dataset.numerals import is_roman
from ragbench_dagster.dataset.phrases import read_list, read_words

# Occurrences in the dictionary's corpus, by length, below which a short "word" is more likely somebody's typing
# error; of two letters only the shipped lists count. Chosen on the planted errors of tests/bench.
FLOORS = {1: 10**9, 2: 10**9, 3: 4000, 4: 1500}
FLOOR = 100
_LATIN = re.compile(r"[a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")


@lru_cache(maxsize=1)
def dictionary() -> frozenset[str]:
    """The known words of English and of the shipped lists."""
    packed = files("spellchecker").joinpath("resources/en.json.gz").read_bytes()
    listed = msgspec.json.decode(gzip.decompress(packed), type=dict[str, int])
    words = {
        word.replace("'", "")
        for word, count in listed.items()
        if count >= FLOOR and count >= FLOORS.get(len(word), FLOOR)  # most are rare: the quick test first
    }
    return frozenset(
        words | read_words("codes.txt") | read_words("names.txt") | read_words("places.txt") | negations() | grammar()
    )


@lru_cache(maxsize=1)
def negations() -> frozenset[str]:
    return frozenset(read_list("negations.txt"))


@lru_cache(maxsize=1)
def negation_twins() -> dict[str, frozenset[str]]:
    """Negations with the words that one lost or changed letter makes of them."""
    lines = (line.split() for line in read_list("negation_twins.txt"))
    return {words[0]: frozenset(words[1:]) for words in lines}


@lru_cache(maxsize=1)
def grammar() -> frozenset[str]:
    """Words of grammar: frequent everywhere, and never a name."""
    return read_words("grammar_words.txt")


@lru_cache(maxsize=1 << 20)
def is_mendable(word: str) -> bool:
    """True for a plain Latin word that no list knows: it may be a typing error."""
    return word not in dictionary() and _LATIN.fullmatch(word) is not None and not is_roman(word)


@lru_cache(maxsize=1 << 20)
def is_plain(word: str) -> bool:
    """True for a word in Latin letters; a typing error of anything else cannot be told from another meaning."""
    return _LATIN.fullmatch(word) is not None


def deletions(word: str) -> set[str]:
    """`word` and `word` without any one letter: words one edit apart share one (symmetric deletion)."""
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}


@lru_cache(maxsize=1)
def _grammar_shapes() -> frozenset[str]:
    return frozenset(shape for word in grammar() for shape in deletions(word))


@lru_cache(maxsize=1 << 20)
def is_near_grammar(word: str) -> bool:
    """True for a word, known or not, that may be a misspelt word of grammar; a word of grammar itself is not."""
    return (
        len(word) < 9
        and (word not in grammar() or len(word) == 1)
        and word not in negations()
        and is_plain(word)
        and not _grammar_shapes().isdisjoint(deletions(word))
    )
