"""An event loop whose clock jumps to the next timer: minutes of pacing in milliseconds, the same each time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if timeout is None and not ready:
            raise RuntimeError("everybody waits and no timer is set")
        self.now += 0.0 if ready else timeout or 0.0
        return ready  # type: ignore[no-any-return]


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """The result of `main` on a virtual loop."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()
