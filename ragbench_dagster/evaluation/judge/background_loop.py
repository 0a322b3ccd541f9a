"""One event loop in a thread of its own, for calls from plain code and from loops that nobody will tidy up.

A client belongs to the loop that opened it. LlamaIndex makes loops as it needs them (`evaluate`, `BatchEvalRunner`,
a sync `query()`), and drops them: a client opened there would leak, one kept across them would fail. So such calls
all run here, on one loop and one client, also where the caller's own loop is running and must wait.
Which calls those are belongs in `llm.py`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_CLOSING_S = 2.0  # that connections have to close at the end of the process


class BackgroundLoop:
    """Starts at the first call, anew after `close` and in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._closers: list[Callable[[], Awaitable[Any]]] = []

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work` with the caller's context variables; to be waited for on any thread but this loop's own."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. An interrupt of the waiting thread cancels it.

        Raises:
            Exception: whatever `work` raises.
        """
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def closing(self, closer: Callable[[], Awaitable[Any]]) -> None:
        """Have `closer` called when this loop closes, where this is the running one."""
        if asyncio.get_running_loop() is self._loop:
            self._closers.append(closer)

    def close(self) -> None:
        """Close the connections and end the thread; a later call starts both again."""
        with self._lock:
            loop, thread, closers = self._loop, self._thread, self._closers
            self._loop, self._thread, self._closers = None, None, []
        if loop is None or thread is None or self._process != os.getpid():
            return

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, *(closer() for closer in closers), return_exceptions=True)

        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), loop).result(_CLOSING_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CLOSING_S)
        if not thread.is_alive():
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._closers = []
                self._process, self._loop = os.getpid(), asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="ragbench-calls", daemon=True)
                self._thread.start()
            return self._loop


background = BackgroundLoop()
atexit.register(background.close)
