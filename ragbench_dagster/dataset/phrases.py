"""Greetings, politeness and announcements that say nothing about the question. The lists are data.

`wordlists/openings.txt` are taken from the front, `closings.txt` from the end, `fillers.txt` anywhere,
`announcements.txt` where a placeholder follows them ("my name is <PERSON>"). One phrase a line, `#` comments.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from ragbench_dagster.store import digest

# By the word at the edge, then by length, the longest first.
Phrases = dict[str, list[tuple[int, frozenset[tuple[str, ...]]]]]

# Openings that are not one when this word follows.
_NOT_OPENINGS = {("hello", "world"), ("hi", "fi"), ("hey", "jude"), ("please", "advise")}


def read_list(name: str) -> list[str]:
    """The entries of a word list, without comments."""
    text = files("ragbench_dagster.dataset").joinpath("wordlists", name).read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def lists_hash(*names: str) -> str:
    """Hash of what the named lists hold."""
    return digest({name: read_list(name) for name in names}, size=8)


def read_words(name: str) -> frozenset[str]:
    """The words of a list whose lines hold many."""
    return frozenset(word for line in read_list(name) for word in line.split())


_BINDING = read_words("binding_words.txt")


def _by(name: str, end: int) -> Phrases:
    """The phrases of a list by their first (0) or last (-1) word."""
    found: dict[str, dict[int, set[tuple[str, ...]]]] = {}
    for line in read_list(name):
        words = tuple(line.split())
        found.setdefault(words[end], {}).setdefault(len(words), set()).add(words)
    return {
        word: [(size, frozenset(by_size[size])) for size in sorted(by_size, reverse=True)]
        for word, by_size in found.items()
    }


@lru_cache(maxsize=1)
def _lists() -> tuple[Phrases, Phrases, frozenset[str], Phrases]:
    return (
        _by("openings.txt", 0),
        _by("closings.txt", -1),
        frozenset(read_list("fillers.txt")),
        _by("announcements.txt", 0),
    )


def is_placeholder(token: str) -> bool:
    return token[:1] == "<" and token[-1:] == ">" and len(token) > 2


def strip_phrases(tokens: list[str], placeholders: bool = True) -> list[str]:
    """`tokens` without greetings, politeness and announced placeholders; never without any token.

    The same list comes back where nothing was taken off.

    Args:
        placeholders: False where the caller knows that there is none.
    """
    openings, closings, fillers, _ = _lists()
    kept = _edges(tokens, openings, closings)
    if placeholders and any(map(is_placeholder, kept)):
        kept = _edges(_without_announcements(kept), openings, closings)
    if not fillers.isdisjoint(kept):
        kept = _edges([token for token in kept if token not in fillers] or kept, openings, closings)
    return kept


def _edges(tokens: list[str], openings: Phrases, closings: Phrases) -> list[str]:
    kept = tokens
    while kept[0] in openings:
        shorter = _after_opening(kept, openings[kept[0]])
        if shorter is kept:
            break
        kept = shorter
    while kept[-1] in closings:
        shorter = _before_closing(kept, closings[kept[-1]])
        if shorter is kept:
            break
        kept = shorter
    return kept


def _after_opening(tokens: list[str], phrases: list[tuple[int, frozenset[tuple[str, ...]]]]) -> list[str]:
    for size, group in phrases:
        if (
            len(tokens) > size
            and tuple(tokens[:size]) in group
            and tuple(tokens[size - 1 : size + 1]) not in _NOT_OPENINGS
        ):
            return tokens[size:]
    return tokens


def _before_closing(tokens: list[str], phrases: list[tuple[int, frozenset[tuple[str, ...]]]]) -> list[str]:
    for size, group in phrases:
        if len(tokens) > size and tuple(tokens[-size:]) in group:
            return tokens[:-size]
    return tokens


def _without_announcements(tokens: list[str]) -> list[str]:
    """Drop "my name is <person>" at the front or the end, if a question remains."""
    announcements = _lists()[3]
    kept = tokens
    start = 0
    while start < len(kept):
        end = _announcement_end(kept, start, announcements)
        if end is None:
            start += 1
            continue
        at_edge = start == 0 or (end == len(kept) and kept[start - 1] not in _BINDING)
        if at_edge and len(kept) - (end - start) >= 2:
            kept = kept[:start] + kept[end:]
            start = 0
        else:
            start = end
    return kept


def _announcement_end(tokens: list[str], start: int, announcements: Phrases) -> int | None:
    for size, group in announcements.get(tokens[start], ()):
        end = start + size
        if end < len(tokens) and is_placeholder(tokens[end]) and tuple(tokens[start:end]) in group:
            while end < len(tokens) and is_placeholder(tokens[end]):
                end += 1
            return end
    return None
