"""What one process keeps between calls: settings by content, limiters, budgets, LLMs, evaluators, scrubbers, pools.

Each registry is declared where its values are made and is listed here by its name, so that `close()` finds them all.
Pure caches (`lru_cache` of a function of its arguments alone) are none of it: they cannot be out of date.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class PerThread:
    """A registry that each thread has for itself, for values that two threads must not share."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def kept(self) -> dict[Any, Any]:
        """This thread's values by key."""
        return self._local.__dict__

    def clear(self) -> None:
        """Forget the values of every thread."""
        self._local = threading.local()


class Runtime:
    """The registries of a process. Tests close it to start as a new process would."""

    def __init__(self) -> None:
        self._registries: dict[str, tuple[dict[Any, Any] | PerThread, Callable[[Any], object] | None]] = {}

    def registry(self, name: str, end: Callable[[Any], object] | None = None) -> dict[Any, Any]:
        """A new registry: key to value.

        Args:
            name: of what is kept; one registry has it.
            end: frees one value when the runtime is closed; None where forgetting it is enough.

        Raises:
            ValueError: the name is taken.
        """
        kept: dict[Any, Any] = {}
        self._declare(name, kept, end)
        return kept

    def per_thread(self, name: str) -> PerThread:
        """A new registry whose values belong to the thread that made them.

        Raises:
            ValueError: the name is taken.
        """
        kept = PerThread()
        self._declare(name, kept, None)
        return kept

    def _declare(self, name: str, kept: dict[Any, Any] | PerThread, end: Callable[[Any], object] | None) -> None:
        if name in self._registries:
            raise ValueError(f"two registries are named {name!r}; give one of them another name")
        self._registries[name] = kept, end

    @property
    def names(self) -> list[str]:
        """The names of the registries that the modules loaded so far declare."""
        return sorted(self._registries)

    def close(self) -> None:
        """Free and forget what is kept; the registries themselves stay and fill anew."""
        for kept, end in self._registries.values():
            values = list(kept.values()) if isinstance(kept, dict) else []
            kept.clear()
            for value in values if end else ():
                end(value)  # type: ignore[misc]  # there is one


RUNTIME = Runtime()
