"""Greetings, politeness and announcements that say nothing about the question. The lists are data.

`wordlists/openings.txt` are taken from the front, `closings.txt` from the end, `fillers.txt` anywhere,
`announcements.txt` where a placeholder follows them ("my name is <PERSON>"). One phrase a line, `#` comments.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

Phrases = dict[str, list[tuple[str, ...]]]

# Openings that are not one when this word follows.
_NOT_OPENINGS = {("hello", "world"), ("hi", "fi"), ("hey", "jude"), ("please", "advise")}


def read_list(name: str) -> list[str]:
    """The entries of a word list, without comments."""
    text = files("ragbench_dagster.dataset").joinpath("wordlists", name).read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def read_words(name: str) -> frozenset[str]:
    """The words of a list whose lines hold many."""
    return frozenset(word for line in read_list(name) for word in line.split())


_BINDING = read_words("binding_words.txt")


def _by(name: str, end: int) -> Phrases:
    """Phrases by their first (0) or last (-1) word, the longest first."""
    phrases: Phrases = {}
    for line in read_list(name):
        words = tuple(line.split())
        phrases.setdefault(words[end], []).append(words)
    for group in phrases.values():
        group.sort(key=lambda words: (-len(words), words))
    return phrases


@lru_cache(maxsize=1)
def _lists() -> tuple[Phrases, Phrases, frozenset[str], Phrases]:
    return (
        _by("openings.txt", 0),
        _by("closings.txt", -1),
        frozenset(read_list("fillers.txt")),
        _by("announcements.txt", 0),
    )


def is_placeholder(token: str) -> bool:
    return token[0] == "<" and token[-1] == ">" and len(token) > 2


def strip_phrases(tokens: list[str]) -> list[str]:
    """`tokens` without greetings, politeness and announced placeholders; never without any token."""
    openings, closings, fillers, _ = _lists()
    kept = tokens
    if not fillers.isdisjoint(kept):
        kept = [token for token in kept if token not in fillers] or kept
    if any(token[0] == "<" for token in kept):
        kept = _without_announcements(kept)
    while kept[0] in openings:
        shorter = _after_opening(kept, openings[kept[0]])
        if shorter is kept:
            break
        kept = shorter
    while kept[-1] in closings:
        for phrase in closings[kept[-1]]:
            if len(kept) > len(phrase) and tuple(kept[-len(phrase) :]) == phrase:
                kept = kept[: -len(phrase)]
                break
        else:
            break
    return kept


def _after_opening(tokens: list[str], phrases: list[tuple[str, ...]]) -> list[str]:
    for phrase in phrases:
        size = len(phrase)
        if len(tokens) > size and tuple(tokens[:size]) == phrase and tuple(tokens[size - 1 : size + 1]) not in (
            _NOT_OPENINGS
        ):  # fmt: skip
            return tokens[size:]
    return tokens


def _without_announcements(tokens: list[str]) -> list[str]:
    """Drop "my name is <person>" at the front or the end, if a question remains."""
    announcements = _lists()[3]
    kept = list(tokens)
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
    for phrase in announcements.get(tokens[start], ()):
        end = start + len(phrase)
        if end < len(tokens) and tuple(tokens[start:end]) == phrase and is_placeholder(tokens[end]):
            end += 1
            while end < len(tokens) and is_placeholder(tokens[end]):
                end += 1
            return end
    return None
