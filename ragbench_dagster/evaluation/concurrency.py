"""Runs a coroutine from plain code and stops it gracefully on SIGINT and SIGTERM.

Each call makes an event loop of its own, and whatever belongs to a loop (clients, semaphores) is made inside it:
one process runs many nights. Dagster installs signal handlers of its own; raised inside a running loop, its
exception can be swallowed by a callback. So signals are taken over while the loop runs, and passed on afterwards.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ragbench_dagster.errors import Interrupted

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Asks running work to end: take nothing new, wait for nothing, finish what is in flight."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._event = asyncio.Event()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    async def sleep(self, seconds: float) -> bool:
        """Sleep; True as soon as a stop is asked for."""
        if seconds <= 0:
            return bool(self)
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


def run(main: Callable[[Stop], Coroutine[Any, Any, T]], grace_s: float = 3.0) -> T:
    """The result of `main(stop)`, also where this thread already runs an event loop (a notebook).

    The first SIGINT or SIGTERM sets `stop` and leaves `grace_s` seconds to what is in flight; then, or on the
    second signal, the rest is cancelled.

    Raises:
        Interrupted: a signal ended it (or what the signal's former handler raises, as under Dagster).
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_here(main, grace_s)
    with ThreadPoolExecutor(1, thread_name_prefix="ragbench-loop") as other:
        return other.submit(_run_here, main, grace_s).result()


def _run_here(main: Callable[[Stop], Coroutine[Any, Any, T]], grace_s: float) -> T:
    taken: list[int] = []
    former: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        former = {s: signal.getsignal(s) for s in _SIGNALS}
        # SIG_IGN stays (a shell's background job); None was set by C code and could not be put back.
        former = {s: handler for s, handler in former.items() if handler not in (signal.SIG_IGN, None)}

    async def guarded() -> T:
        stop = Stop()
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None

        def asked(number: int) -> None:
            taken.append(number)
            if len(taken) > 1:
                task.cancel()
                return
            stop.signal = number
            stop.set()
            loop.call_later(grace_s, task.cancel)

        for number in former:
            loop.add_signal_handler(number, asked, number)
        try:
            return await main(stop)
        finally:
            for number in former:
                loop.remove_signal_handler(number)

    try:
        result = asyncio.run(guarded())
    except asyncio.CancelledError:
        if not taken:
            raise
    except BaseException:
        _restore(former)
        if taken:  # what stopped the work came second
            _pass_on(taken[0], former)
        raise
    finally:
        _restore(former)
    if taken:
        _pass_on(taken[0], former)
    return result


def _restore(former: dict[int, Any]) -> None:
    for number, handler in former.items():
        signal.signal(number, handler)


def _pass_on(number: int, former: dict[int, Any]) -> None:
    """Give the signal to the handler that was there before (Dagster's raises), else raise `Interrupted`."""
    handler = former[number]
    if callable(handler) and handler is not signal.default_int_handler:
        signal.raise_signal(signal.Signals(number))
    raise Interrupted("stopped; every finished verdict was kept, run again to go on")


# Bounded workers that pull from a lazy iterator, and the meter a person watches.
#
# The work itself types its faults: whatever it raises ends the run. Which jobs there are belongs in `judge_runner.py`.

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
