"""Many forms as numbers: every word has an id, so that counting and comparing runs in numpy."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ragbench_dagster.dataset.words import is_mendable

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
_BLOCK = 4096  # texts split at a time


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector: of a million small objects, none in a cycle, it would walk all many times."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class TokenTable:
    """The words of texts, row after row. `ids[starts[r]:starts[r] + lengths[r]]` are row r's words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.number: dict[str, int] = {}
        flat = array("i")
        for start in range(0, len(texts), _BLOCK):
            tokens = " ".join(texts[start : start + _BLOCK]).split(" ")
            for token in dict.fromkeys(tokens):
                self.number.setdefault(token, len(self.number))
            flat.extend(map(self.number.__getitem__, tokens))
        lengths = array("i", [text.count(" ") + 1 for text in texts])
        self.words = list(self.number)
        self.ids: I32 = np.asarray(flat, np.int32)
        self.lengths: I32 = np.asarray(lengths, np.int32)
        self.starts: I64 = np.cumsum(self.lengths) - self.lengths

    @cached_property
    def spread(self) -> I64:
        """How often each word stands in all rows."""
        return np.bincount(self.ids, minlength=len(self.words))

    @cached_property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """For each word, whether no list knows it."""
        return np.fromiter(map(is_mendable, self.words), bool, len(self.words))

    @cached_property
    def rows(self) -> I32:
        """The row of each place in `ids`."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int32), self.lengths)

    def rows_with(self, words: Iterable[str]) -> list[int]:
        """Rows that hold any of `words`, ascending."""
        wanted = [self.number[word] for word in words if word in self.number]
        return np.unique(self.rows[np.isin(self.ids, wanted)]).tolist() if wanted else []

    def count(self, word: str) -> int:
        """How often a word stands in all rows; 0 for a word of none."""
        at = self.number.get(word)
        return 0 if at is None else int(self.spread[at])
