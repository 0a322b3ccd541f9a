"""What calls cost, and the cap of a run. An unknown price is an error, never zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.records import Verdict
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Judge, Price


@dataclass(slots=True)
class Budget:
    """USD spent and promised by the calls of one run, over all metrics and systems.

    `limit` None: no cap. Threads share it: a judge session's and that of calls without one.
    """

    limit: float | None = None
    spent: float = 0.0
    promised: float = 0.0
    note: Callable[[float], None] | None = None  # told of USD that no verdict records: an engine's calls
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def allows(self, usd: float) -> bool:
        """True where a call of `usd` stays below the cap, what is in flight counted as estimated."""
        return self.limit is None or self.spent + self.promised + usd <= self.limit + 1e-12

    def promise(self, usd: float) -> bool:
        """A call of about `usd` is made now; False, and nothing promised, where the cap does not allow it."""
        with self._lock:
            if not self.allows(usd):
                return False
            self.promised += usd
            return True

    def settle(self, reserved: float, actual: float, recorded: bool = True) -> None:
        """A call ended: its promise is replaced by what it cost (0 where it was not answered).

        Args:
            reserved: what was promised, USD.
            actual: what it cost, USD.
            recorded: a verdict will say so in the ledger.
        """
        with self._lock:
            self.promised -= reserved
            self.spent += actual
        if actual and not recorded and self.note is not None:
            self.note(actual)


def price_of(judge: Judge) -> Price:
    """The judge's price.

    Raises:
        UserError: it is not set.
    """
    if judge.price is None:
        raise UserError(
            f"judge.price: not set for {judge.model}; give {{input: USD, output: USD}} per million tokens, "
            "0 where it is free"
        )
    return judge.price


def cost(price: Price, prompt_tokens: float, completion_tokens: float) -> float:
    """USD of one call."""
    return (prompt_tokens * price.input + completion_tokens * price.output) / 1e6


# Of this process; `spending` opens and closes them by the ledger.
open_budgets: dict[tuple[str, str], Budget] = RUNTIME.registry("budgets")
paying_runs: dict[str, str] = RUNTIME.registry(
    "paying runs"
)  # workspace -> the run that pays for calls whose caller names none


def run_budget(workspace: str, run: str, limit: float | None) -> Budget:
    """The budget that everything of one `run` of a workspace shares in this process."""
    budget = open_budgets.setdefault((workspace, run), Budget())
    budget.limit = limit
    return budget


def paying_budget(workspace: str, limit: float | None) -> Budget:
    """The budget of the run at hand; where no run is, that of this process's calls outside runs."""
    return run_budget(workspace, paying_runs.get(workspace, ""), limit)


# What the calls behind one verdict took, however deep in LlamaIndex they were made.


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


# How many tokens a prompt has: exact enough to refuse what does not fit, cheap enough to be done each time.

_CHARS_PER_TOKEN = 4.0  # of English, until the provider has reported
_MEMORY = 50  # calls that the running means remember


class TokenMeter:
    """Running means of what prompts and replies of one judge really take, from the usage it reports."""

    def __init__(self, completion_guess: float) -> None:
        self._per_char = 1 / _CHARS_PER_TOKEN
        self._completion = completion_guess
        self._n = 0

    def estimate(self, chars: int) -> tuple[float, float]:
        """(prompt tokens, completion tokens) of a prompt of `chars` characters."""
        return chars * self._per_char + 1, self._completion

    def observe(self, chars: int, prompt_tokens: int, completion_tokens: int) -> None:
        if chars <= 0 or prompt_tokens <= 0:
            return
        self._n += 1
        share = 1 / min(self._n, _MEMORY)
        self._per_char += (prompt_tokens / chars - self._per_char) * share
        self._completion += (completion_tokens - self._completion) * share


def fits(texts: list[str], window: int, reserved: int) -> bool:
    """True where `texts` leave `reserved` of the `window` tokens for the reply.

    No tokenizer makes more tokens than there are bytes, so most prompts need no counting. Counting uses the
    tokenizer that ships with LlamaIndex (cl100k); another model's may count some percent otherwise, and what its
    provider then refuses is `truncated` as well.
    """
    room = window - reserved - 8 * len(texts)  # roles and separators
    if sum(len(text.encode("utf-8", "replace")) for text in texts) <= room:
        return True
    return room > 0 and sum(len(_tokenizer()(text)) for text in texts) <= room


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    from llama_index.core.utils import get_tokenizer

    return get_tokenizer()
