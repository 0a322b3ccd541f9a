"""Cheap facts about one text, computed once, by which recognisers decide that they cannot match.

A recogniser's `might` must be true for every text in which its `find` finds something: the tests hold this
with random texts, so that skipping never changes a result.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

_TOKEN = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"[0-9]")


def holds(text: str, words: Iterable[str]) -> bool:
    """One of `words` stands in `text`. A loop: `any` of a generator takes twice as long, and this runs on every text."""
    for word in words:  # noqa: SIM110
        if word in text:
            return True
    return False


@lru_cache(maxsize=8)
def _number_of(fewest: int) -> re.Pattern[str]:
    """So many digits, not far apart."""
    return re.compile(rf"[0-9](?:[^\n]{{0,7}}?[0-9]){{{fewest - 1}}}")


@dataclass
class Facts:
    """One text and what is cheap to know about it."""

    text: str
    skip: bool = True  # False: rules inside a recogniser are not skipped either (the tests compare)
    entities: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # what an NER model said: label -> spans
    ner_ran: bool = False

    @cached_property
    def folded(self) -> str:
        """Caseless form for substring tests only: its offsets may differ from the text's.

        `re.IGNORECASE` also pairs the dotless i and the dotted capital I with i, which casefold does not.
        """
        text = self.text
        return text.lower() if text.isascii() else text.casefold().replace("ı", "i").replace("\u0307", "")

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The words of the folded text."""
        return frozenset(_TOKEN.findall(self.folded))

    def has(self, words: frozenset[str]) -> bool:
        """One of `words` (folded) stands in the text as a word."""
        return not self.skip or not words.isdisjoint(self.tokens)

    def holds(self, words: Iterable[str]) -> bool:
        """One of `words` (folded) stands somewhere in the text."""
        return not self.skip or holds(self.folded, words)

    @cached_property
    def digit(self) -> bool:
        """An ASCII digit stands in the text (the view folds all others to ASCII)."""
        return _DIGIT.search(self.text) is not None

    @cached_property
    def digits(self) -> int:
        """How many digits the text holds."""
        return len(_DIGIT.findall(self.text)) if self.digit else 0

    def around_numbers(self, before: int, after: int, fewest: int) -> list[tuple[int, int]]:
        """The stretches with a number of `fewest` digits or more, that many characters of text around each included."""
        stretches: list[tuple[int, int]] = []
        pattern = _number_of(fewest)
        for match in pattern.finditer(self.text):
            begin, end = max(0, match.start() - before), match.end() + after
            if stretches and begin <= stretches[-1][1]:
                stretches[-1] = (stretches[-1][0], end)
            else:
                stretches.append((begin, end))
        return stretches

    @cached_property
    def at(self) -> bool:
        """Something like an at sign stands in the text."""
        return "@" in self.text or "%40" in self.text

    @cached_property
    def ascii(self) -> bool:
        """Folding such a text moves nothing."""
        return self.text.isascii()

    @cached_property
    def scheme(self) -> bool:
        return "://" in self.text


class Caseless:
    """A pattern of lower-case letters that ignores case.

    In a text of ASCII it is looked for in the folded text: `re` tries the first letters of alternatives quickly only
    in a pattern that heeds case, which makes long lists of words two to seven times faster. A match's own text may
    therefore be folded; its offsets are the text's.
    """

    def __init__(self, pattern: str) -> None:
        self.any_case = re.compile(pattern, re.IGNORECASE)
        self.lower_case = re.compile(pattern)

    def finditer(self, facts: Facts, begin: int = 0, end: int = sys.maxsize) -> Iterator[re.Match[str]]:
        """The matches in the text, as `re.Pattern.finditer`."""
        if facts.ascii:
            return self.lower_case.finditer(facts.folded, begin, end)
        return self.any_case.finditer(facts.text, begin, end)
