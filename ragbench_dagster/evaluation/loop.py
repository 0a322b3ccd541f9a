"""Runs a coroutine from plain code and stops it gracefully on SIGINT and SIGTERM.

Each call makes an event loop of its own, and whatever belongs to a loop (clients, semaphores) is made inside it:
one process runs many nights. Dagster installs signal handlers of its own; raised inside a running loop, its
exception can be swallowed by a callback. So signals are taken over while the loop runs, and passed on afterwards.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
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
