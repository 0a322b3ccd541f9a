"""Which words are known. A known word is never a typing error of another one.

Known are: an English dictionary with frequencies (the list of `pyspellchecker`, MIT), the shipped lists
of codes, names, places and negations, and everything that is no plain Latin word at all (numbers, Roman ones too,
symbols, placeholders, other scripts): those are never mended.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files

import msgspec

from ragbench_dagster.dataset.canonical import is_roman
from ragbench_dagster.dataset.phrases import read_list, read_words
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import read_rows
from ragbench_dagster.store import Workspace

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
    return {word, *[word[:i] + word[i + 1 :] for i in range(len(word))]}


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


# The workspace's own words: what its corpus and its labels write is no typing error, whatever the lists know.

_WORDS = re.compile(r"[^\W\d_]+")
_APOSTROPHES = str.maketrans(dict.fromkeys("'’‘ʼ"))


def known_words(ws: Workspace, forms: Iterable[str], labels: Iterable[str]) -> frozenset[str]:
    """The words of `forms` that no list knows and that stand in the corpus or in the texts of `labels`.

    A corpus that cannot be read has no words here: the systems that retrieve from it say what is wrong with it.
    """
    wanted = {word for form in forms for word in form.split(" ") if is_mendable(word)}
    known: set[str] = set()
    for text in labels:
        known |= wanted.intersection(_workspace_words(text))
    if not ws.corpus.exists() or not wanted:
        return frozenset(known)
    try:
        for _, row in read_rows(ws.corpus):
            known |= wanted.intersection(_workspace_words(str(row.get("text") or "")))
    except UserError:
        pass
    return frozenset(known)


def _workspace_words(text: str) -> list[str]:
    """The words of a text as forms spell them, "o'reilly's" also by its parts."""
    folded = text.casefold()
    joined = folded.translate(_APOSTROPHES)
    return _WORDS.findall(joined) + (_WORDS.findall(folded) if joined != folded else [])


# Questions in other languages than English: their words are no typing errors.
#
# A form is of a language when two of its words are that language's words of grammar. Its dictionary (pyspellchecker's)
# is only loaded then. In a question whose language nobody knows, no word can be told from an error: it is left alone.

_SURE = 2  # words of grammar that show a language
_LONG = 7  # letters of a name that one error does not make another name


@lru_cache(maxsize=1)
def _signs() -> dict[str, frozenset[str]]:
    """The languages that each word of grammar is a sign of."""
    found: dict[str, set[str]] = {}
    for line in read_list("languages.txt"):
        language, _, words = line.partition(":")
        for word in words.split():
            if word not in grammar():
                found.setdefault(word, set()).add(language)
    return {word: frozenset(languages) for word, languages in found.items()}


def languages_of(tokens: Sequence[str]) -> list[str]:
    """The languages, beside English, that a form's words of grammar show; the likeliest ones only."""
    signs = _signs()
    counts: dict[str, int] = {}
    for token in set(tokens):
        for language in signs.get(token, ()):
            counts[language] = counts.get(language, 0) + 1
    most = max(counts.values(), default=0)
    return sorted(language for language, count in counts.items() if count == most) if most >= _SURE else []


@lru_cache(maxsize=8)
def _words_of(language: str) -> frozenset[str]:
    path = files("spellchecker").joinpath(f"resources/{language}.json.gz")
    return frozenset(json.loads(gzip.decompress(path.read_bytes())))


def _is_strange(word: str) -> bool:
    return len(word) > 1 and is_mendable(word)


def strange_words(tokens: Sequence[str]) -> frozenset[str]:
    """The words of a form that neither English nor the language it shows knows."""
    known = [_words_of(language) for language in languages_of(tokens)]
    return frozenset(token for token in tokens if _is_strange(token) and not any(token in words for words in known))


def is_readable(tokens: Sequence[str], wrong: str, right: str) -> bool:
    """True when a form's language is known well enough to call `wrong` an error of `right`."""
    others = [token for token in tokens if token != wrong]
    if others and not (
        any(map(is_mendable, others)) and any(map(_is_strange, others))
    ):  # plain English around it, which most questions are
        return True
    strange = strange_words([*tokens, right])
    if _is_strange(wrong) and wrong not in strange:  # a word of that language
        return False
    unknown = sum(token in strange for token in others)
    if right in strange and unknown == len(others):  # nothing else to know the language by: only a long name is sure
        return not others and len(right) >= _LONG
    # A known word is a surer target than an unknown one, and asks for less around it.
    return (2 if right in strange else 1.5) * unknown <= len(others)
