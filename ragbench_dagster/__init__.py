"""Ragbench: a nightly benchmark from the questions people really ask a RAG system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragbench_dagster.frames import Night, load

__all__ = ["Night", "load"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`load` and `Night` on first use: `import ragbench_dagster` alone stays cheap (no Arrow, no pandas)."""
    if name in __all__:
        from ragbench_dagster import frames

        return getattr(frames, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
