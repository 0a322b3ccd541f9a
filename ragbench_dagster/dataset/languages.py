"""Questions in other languages than English: their words are no typing errors.

A form is of a language when two of its words are that language's words of grammar. Its dictionary (pyspellchecker's)
is only loaded then. In a question whose language nobody knows, no word can be told from an error: it is left alone.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

from ragbench_dagster.dataset.phrases import read_list
from ragbench_dagster.dataset.words import grammar, is_mendable

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
def _words(language: str) -> frozenset[str]:
    path = files("spellchecker").joinpath(f"resources/{language}.json.gz")
    return frozenset(json.loads(gzip.decompress(path.read_bytes())))


def _is_strange(word: str) -> bool:
    return len(word) > 1 and is_mendable(word)


def strange_words(tokens: Sequence[str]) -> frozenset[str]:
    """The words of a form that neither English nor the language it shows knows."""
    known = [_words(language) for language in languages_of(tokens)]
    return frozenset(token for token in tokens if _is_strange(token) and not any(token in words for words in known))


def is_readable(tokens: Sequence[str], wrong: str, right: str) -> bool:
    """True when a form's language is known well enough to call `wrong` an error of `right`."""
    others = [token for token in tokens if token != wrong]
    if others and not any(map(_is_strange, others)):  # plain English around it, which most questions are
        return True
    strange = strange_words([*tokens, right])
    if _is_strange(wrong) and wrong not in strange:  # a word of that language
        return False
    unknown = sum(token in strange for token in others)
    if right in strange and unknown == len(others):  # nothing else to know the language by: only a long name is sure
        return not others and len(right) >= _LONG
    # A known word is a surer target than an unknown one, and asks for less around it.
    return (2 if right in strange else 1.5) * unknown <= len(others)
