"""What asset bodies are given: the workspace and a way to tell progress.

The workspace is opened inside the run, so that a change of `ragbench.yaml` is seen without a restart
(systems are branches of the graph and need one).
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from ragbench_dagster.access import FILE, private_folder
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace
from ragbench_dagster.text.format import notice

Progress = Callable[[str, int, int], None]
TELL_S = 30.0  # between two lines of a run that waits
LOCK_POLL_S = 0.2

_terminal: Progress | None = None  # set by the command line for its own process
_held: dict[str, int] = {}
_guard = threading.RLock()


def show_progress_with(progress: Progress | None) -> None:
    """Send progress of runs in this process to `progress` instead of the event log."""
    global _terminal
    _terminal = progress


class WorkspaceResource(dg.ConfigurableResource):
    """Opens the workspace at `root`; `sample` > 0 judges a fixed, stratified sample."""

    root: str
    sample: int = 0
    max_usd: float = -1.0  # below 0: judge.budget_usd holds

    def open(self) -> Workspace:
        ws = Workspace.open(self.root)
        if self.max_usd >= 0:
            judge = ws.settings.judge.model_copy(update={"budget_usd": self.max_usd})
            ws = Workspace(ws.root, ws.settings.model_copy(update={"judge": judge}))
        return ws.sampled(self.sample)


def reporter(context: Any) -> Progress:
    """Progress for a person (a bar) or for Dagster (one event every five seconds, never one per item)."""
    last = [0.0]

    def tell(label: str, done: int, total: int) -> None:
        if _terminal is not None:
            _terminal(label, done, total)
            return
        now = time.monotonic()
        if now - last[0] >= 5:
            last[0] = now
            context.log.info(f"{label}: {done:,} of {total:,}")

    return tell


@contextmanager
def store_lock(root: Path, waiting: Callable[[str], None] = notice) -> Iterator[None]:
    """One writer at a time in a workspace's store, across processes; re-entrant within one.

    `waiting` is called with a line at once and every 30 s while another process holds the lock.
    """
    name = str(root)
    with _guard:
        if _held.get(name):
            _held[name] += 1
            handle = None
        else:
            handle = _lock_file(root, waiting)
            _held[name] = 1
    try:
        yield
    finally:
        with _guard:
            _held[name] -= 1
        if handle is not None:
            os.close(handle)


def _lock_file(root: Path, waiting: Callable[[str], None]) -> int:
    path = root / "store" / ".lock"
    try:
        private_folder(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, FILE)
    except OSError as fault:
        raise UserError(f"{path.parent}: cannot be written ({fault.strerror}); make it writable") from fault
    begin, told = time.monotonic(), float("-inf")
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            except BlockingIOError:
                now = time.monotonic()
                if now - told >= TELL_S:
                    told = now
                    since = f" ({now - begin:.0f} s)" if now - begin >= 1 else ""
                    waiting(f"waiting for another run in this workspace{since}; it goes on when that one ends")
                time.sleep(LOCK_POLL_S)
    except OSError as fault:
        os.close(handle)
        raise UserError(f"{path}: cannot be locked ({fault.strerror}); put the workspace on a local disk") from fault
    except BaseException:
        os.close(handle)
        raise
