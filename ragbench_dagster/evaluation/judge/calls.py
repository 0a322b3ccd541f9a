"""What the calls behind one verdict took, however deep in LlamaIndex they were made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from ragbench_dagster.records import Verdict


@dataclass(slots=True)
class CallLog:
    """Sums over the calls of one item."""

    calls: int = 0  # that were answered
    attempts: int = 0  # HTTP requests
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    latency_ms: float = 0.0
    wait_ms: float = 0.0
    served_model: str | None = None
    fingerprint: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    row: str = ""  # whose calls they are
    recorded: bool = False  # a verdict takes it into the ledger

    def onto(self, verdict: Verdict) -> Verdict:
        """`verdict` with what it took."""
        return replace(
            verdict,
            attempts=self.attempts,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cost_usd=round(self.cost_usd, 9),
            latency_ms=round(self.latency_ms, 3),
            wait_ms=round(self.wait_ms, 3),
            served_model=self.served_model,
            fingerprint=self.fingerprint,
            details={**self.details, **verdict.details},
        )


_current: ContextVar[CallLog | None] = ContextVar("ragbench_calls", default=None)


@contextmanager
def collecting(row: str = "") -> Iterator[CallLog]:
    """Within it, every call of this task and of those it starts is added up.

    Args:
        row: whose calls they are: the example, whatever the metric.
    """
    log = CallLog(recorded=True, row=row)
    token = _current.set(log)
    try:
        yield log
    finally:
        _current.reset(token)


def current() -> CallLog:
    """The log of the item at hand; one that nobody reads where no item is."""
    return _current.get() or CallLog()
