"""Bounded workers that pull from a lazy iterator, and the meter a person watches.

The work itself types its faults: whatever it raises ends the run. Which jobs there are belongs in `judging.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ragbench_dagster.evaluation.loop import Stop

Job = TypeVar("Job")
Progress = Callable[[str, int, int], None]


async def pull(
    jobs: Iterable[Job],
    work: Callable[[Job], Awaitable[None]],
    workers: int,
    stop: Stop | None = None,
    grace_s: float = 3,
) -> None:
    """Do `work` on every job, `workers` at a time; no more jobs are taken from the iterator than are worked on.

    Args:
        jobs: read in order, as workers come free.
        work: types its own faults; an exception ends the run.
        workers: at most so many jobs at once.
        stop: once set, no further job is taken.
        grace_s: seconds that jobs in flight have after one raised.

    Raises:
        BaseException: the first exception of `work`, or of the iterator.
    """
    source = iter(jobs)
    stop = stop if stop is not None else Stop()
    faults: list[BaseException] = []
    done = False

    async def worker() -> None:
        nonlocal done
        yielded = time.monotonic()
        try:
            while not (done or stop):
                if time.monotonic() - yielded > 0.05:  # work that never waits must not shut signals out
                    await asyncio.sleep(0)
                    yielded = time.monotonic()
                job = next(source, source)
                if job is source:
                    done = True
                    return
                await work(job)  # type: ignore[arg-type]
        except asyncio.CancelledError:
            raise
        except BaseException as fault:
            faults.append(fault)
            stop.set()

    tasks = [asyncio.create_task(worker()) for _ in range(max(1, workers))]
    try:
        pending = set(tasks)
        while pending:
            # After a fault those in flight may finish, for they are paid, but not for long.
            _, pending = await asyncio.wait(
                pending, timeout=grace_s if faults else None, return_when=asyncio.FIRST_COMPLETED
            )
            if faults and pending:
                _, pending = await asyncio.wait(pending, timeout=grace_s)
                break
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if faults:
        raise faults[0]


class Meter:
    """Tells a person how far it is: done, rate, cost so far and what limits the rate.

    Args:
        label: what is being done.
        total: how many there are.
        progress: called as (label, done, total), three times a second at most.
        aside: further words, e.g. the cost and the limiting factor.
    """

    def __init__(
        self, label: str, total: int, progress: Progress | None, aside: Callable[[], str] = lambda: ""
    ) -> None:
        self._label, self._progress, self._aside = label, progress, aside
        self.total = total
        self.done = 0
        self._fresh = 0
        self._begin = time.monotonic()
        self._next = self._begin + 0.35

    def add(self, n: int = 1, fresh: bool = True) -> None:
        """`n` more are done; `fresh` ones count towards the rate."""
        self.done += n
        self._fresh += n if fresh else 0
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 0.35
            self.show(now)

    def show(self, now: float | None = None) -> None:
        if self._progress is None:
            return
        spent = max(1e-9, (now or time.monotonic()) - self._begin)
        rate = self._fresh / spent
        words = [self._label, f"{rate:.3g}/s" if self._fresh else "", self._left(rate), self._aside()]
        self._progress(" ".join(word for word in words if word), self.done, self.total)

    def _left(self, rate: float) -> str:
        left = self.total - self.done
        if rate <= 0 or left <= 0:
            return ""
        seconds = left / rate
        return f"{seconds / 60:.0f}m left" if seconds >= 90 else f"{seconds:.0f}s left"
