"""Several processes for a backfill: each worker has a scrubber of its own, texts travel in slices.

Worker processes are spawned, never forked: the caller may hold threads and a loaded model.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing.spans import Span

if TYPE_CHECKING:
    from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber

WORTH = 2_000  # texts below which starting processes costs more than it saves
_SLICE = 500  # texts a worker gets at once
_mine: Scrubber | None = None


def _start(settings: Scrub) -> None:
    global _mine
    from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber

    _mine = Scrubber(settings.model_copy(update={"processes": 1}))


def _find(texts: list[str]) -> list[tuple[Span, ...]]:
    assert _mine is not None
    return _mine.find_all(texts)


class Workers:
    """A pool that finds spans; started at the first use, ended with `close` or with the process."""

    def __init__(self, settings: Scrub) -> None:
        self._settings = settings
        self._pool: ProcessPoolExecutor | None = None

    def find_all(self, texts: Sequence[str]) -> list[tuple[Span, ...]]:
        """The spans of each text, in order: the same as one process finds."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._settings.processes,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start,
                initargs=(self._settings,),
            )
        slices = [list(texts[at : at + _SLICE]) for at in range(0, len(texts), _SLICE)]
        return [spans for part in self._pool.map(_find, slices) for spans in part]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
