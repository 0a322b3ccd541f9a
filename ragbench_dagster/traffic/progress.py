"""Telling a person how far a stage is, a few times a second at most. Never part of any result."""

from __future__ import annotations

import time
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
INTERVAL_S = 0.25  # seconds between two calls


def throttled(progress: Progress | None) -> Progress:
    """`progress` called seldom, and always at the end; a function that does nothing for None."""
    last = [0.0]

    def tell(label: str, done: int, total: int) -> None:
        if progress is None:
            return
        now = time.monotonic()
        if done >= total or now - last[0] >= INTERVAL_S:
            last[0] = now
            progress(label, done, total)

    return tell
