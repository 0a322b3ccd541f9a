"""Several processes for much text: the one pool of `scrub.processes`, whose workers have a scrubber each.

Worker processes are spawned, never forked: the caller may hold threads and a loaded model. They start at the first
use and end when nobody uses them any more, for a model in each of them takes memory that the judge may need.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragbench_dagster.masking import watch, watched
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing.placeholders import Request, ScrubbedRequest
from ragbench_dagster.traffic.scrubbing.spans import Span

if TYPE_CHECKING:
    from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber

T = TypeVar("T")
WORTH = 2_000  # texts below which starting processes costs more than it saves
_SLICE = 500  # texts a worker gets at once
_scrubbers: list[Scrubber] = []  # the worker's own, in a worker process


def _start(settings: Scrub, root: Path | None) -> None:
    from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber

    _scrubbers[:] = [Scrubber(settings.model_copy(update={"processes": 1}), root=root)]


def _find(texts: list[str]) -> list[tuple[Span, ...]]:
    return _scrubbers[0].find_all(texts)


def _scrub(requests: Sequence[Request], variables: Sequence[str]) -> list[ScrubbedRequest]:
    watch(variables)  # what the caller masks, this process masks too
    return _scrubbers[0].requests(requests)


class Workers:
    """The worker processes of some settings; threads may share them."""

    def __init__(self, settings: Scrub, root: Path | None) -> None:
        self._settings = settings
        self._root = root
        self._lock = threading.Lock()
        self._users = 0
        self._pool: ProcessPoolExecutor | None = None

    @contextmanager
    def _used(self) -> Iterator[ProcessPoolExecutor]:
        with self._lock:
            self._users += 1
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(
                    self._settings.processes, context, _start, (self._settings, self._root)
                )
            pool = self._pool
        try:
            yield pool
        finally:
            with self._lock:
                self._users -= 1
                ended = None if self._users else self._taken()
            _shut(ended)

    def find_all(self, texts: Sequence[str]) -> list[tuple[Span, ...]]:
        """The spans of each text, in order: the same as one process finds."""
        slices = (list(texts[start : start + _SLICE]) for start in range(0, len(texts), _SLICE))
        return [spans for part in self._in_order(_find, slices) for spans in part]

    def requests(self, batches: Iterable[Sequence[Request]]) -> Iterator[list[ScrubbedRequest]]:
        """Each batch scrubbed, in order; `batches` is read no further ahead than the workers need."""
        return self._in_order(_scrub, batches, watched())

    def _in_order(self, work: Callable[..., T], batches: Iterable[Any], *more: Any) -> Iterator[T]:
        with self._used() as pool:
            waiting: deque[Future[T]] = deque()
            for batch in batches:
                waiting.append(pool.submit(work, batch, *more))
                if len(waiting) >= 2 * self._settings.processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def close(self) -> None:
        """End the processes; a later use starts others."""
        with self._lock:
            ended = self._taken()
        _shut(ended)

    def _taken(self) -> ProcessPoolExecutor | None:
        """The pool, which nobody gets any more; the lock is held."""
        pool, self._pool = self._pool, None
        return pool


def _shut(pool: ProcessPoolExecutor | None) -> None:
    if pool is not None:
        pool.shutdown(cancel_futures=True)


_workers: dict[tuple[str, Path | None], Workers] = RUNTIME.registry("scrub workers", Workers.close)


def workers_for(settings: Scrub, root: Path | None) -> Workers | None:
    """The worker processes of these settings, the same for every thread; None where one process does all."""
    if settings.processes == 1:
        return None
    return _workers.setdefault((settings.model_dump_json(), root), Workers(settings, root))
