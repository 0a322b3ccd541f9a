"""The one layer that retries. The OpenAI client's and LlamaIndex's own retries are off.

Tried again: 429, 5xx, broken connections, time-outs, and their like inside an HTTP 200. Never: 400, 401, 403 and
replies that cannot be read. Each attempt needs leave of the limiter and of the budget.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.concurrency import Stop
from ragbench_dagster.evaluation.judge.budget import Budget, CallLog, TokenMeter, cost
from ragbench_dagster.evaluation.judge.circuit_breaker import Breaker
from ragbench_dagster.evaluation.judge.provider_errors import ItemFault, Stopped, Trouble
from ragbench_dagster.evaluation.judge.rate_limiter import Limiter, Outcome, Permit, TooLong
from ragbench_dagster.settings import Judge, Price

_BACKOFF_S = 0.5  # doubled each attempt
_BACKOFF_MAX_S = 30.0
_MOST_TOKENS = 100_000_000  # of one call; a provider that reports more has not counted
_OUTCOMES: dict[str, Outcome] = {
    "rate": "rate", "server": "fault", "page": "fault", "connect": "fault", "timeout": "fault",
}  # fmt: skip

Send = Callable[[], Awaitable[dict[str, Any]]]  # one attempt; raises Trouble


@dataclass(slots=True)
class Attempts:
    """How far one item is."""

    row: str  # one row's faults say nothing of the others
    made: int = 0
    began: float | None = None  # the first attempt; queueing before it is not the item's fault
    waited_s: float = 0.0


class Governor:
    """Makes calls to one provider.

    Args:
        judge: time-outs, the deadline and the number of attempts.
        price: of the judge.
        limiter: shared by all that use the provider.
        breaker: shared by all that use this judge.
        budget: of the run.
        meter: running token counts.
    """

    def __init__(
        self, judge: Judge, price: Price, limiter: Limiter, breaker: Breaker, budget: Budget, meter: TokenMeter
    ) -> None:
        self._judge = judge
        self._price = price
        self.limiter = limiter
        self._breaker = breaker
        self.budget = budget
        self.meter = meter

    def paid_by(self, budget: Budget) -> Governor:
        """The same governor, with another run paying."""
        other = copy(self)
        other.budget = budget
        return other

    async def call(self, send: Send, chars: int, log: CallLog, stop: Stop) -> dict[str, Any]:
        """The body of the first attempt that succeeds.

        Args:
            send: makes one attempt.
            chars: length of the prompt, for the estimates.
            log: gets attempts, tokens, cost and times.
            stop: ends waiting.

        Raises:
            ItemFault: the item cannot be judged: refused, truncated, over_budget or error.
            Stopped: `stop` was set while it waited.
            UserError: no item can be judged (see breaker.py).
        """
        state = Attempts(log.row or str(id(log)))
        try:
            return await self._attempts(send, chars, log, stop, state)
        finally:
            log.attempts += state.made
            log.wait_ms += state.waited_s * 1000

    async def _attempts(self, send: Send, chars: int, log: CallLog, stop: Stop, state: Attempts) -> dict[str, Any]:
        while True:
            self._afford(chars)  # before the queue, so that nobody waits in vain
            permit = await self._leave(chars, stop, state)
            actual = 0.0
            try:
                estimate = self._afford(chars, self.budget.promise)
            except (ItemFault, UserError):
                self.limiter.release(permit, "none", 0)
                raise
            try:
                body, trouble, spent = await self._attempt(send, permit, state)
                log.latency_ms += spent * 1000
                if body is not None:
                    actual = self._account(body, chars, log)
            finally:
                self.budget.settle(estimate, actual, log.recorded)
            if body is not None:
                self._breaker.success()
                return body
            assert trouble is not None
            self._breaker.check(trouble)
            await self._pause(trouble, stop, state)

    def _afford(self, chars: int, allows: Callable[[float], bool] | None = None) -> float:
        """The estimated cost of a call, USD; raises where the budget does not allow it."""
        usd = cost(self._price, *self.meter.estimate(chars))
        if not (allows or self.budget.allows)(usd):
            if not self.budget.spent and not self.budget.promised:
                raise UserError(f"judge.budget_usd: {self.budget.limit:g} USD does not pay for one call; raise it")
            spent = f"judge.budget_usd ({self.budget.limit:g} USD) is used up"
            raise ItemFault("over_budget", f"{spent}; raise it, or --max-usd, to go on")
        return usd

    async def _leave(self, chars: int, stop: Stop, state: Attempts) -> Permit:
        if stop:
            raise Stopped
        before = time.monotonic()
        left = self._judge.deadline_s - (before - state.began if state.began is not None else 0)
        try:
            permit = await self.limiter.acquire(
                lambda: sum(self.meter.estimate(chars)), again=state.made > 0, within_s=left
            )
        except TooLong as fault:
            self._breaker.held(fault.seconds, state.row)
            reason = f"the provider asks to wait {fault.seconds:.0f} s, longer than judge.deadline_s allows"
            raise ItemFault("error", reason) from None
        now = time.monotonic()
        state.waited_s += now - before
        if stop:
            self.limiter.release(permit, "none", 0)
            raise Stopped
        state.began = state.began if state.began is not None else now
        self._breaker.sent()
        return permit

    async def _attempt(
        self, send: Send, permit: Permit, state: Attempts
    ) -> tuple[dict[str, Any] | None, Trouble | None, float]:
        """(body, trouble, seconds): either the body or the trouble is None."""
        state.made += 1
        begin = time.monotonic()
        outcome: Outcome = "none"
        used: float | None = None
        wait: float | None = None
        try:
            async with asyncio.timeout(self._judge.timeout_s):
                body = await send()
            outcome = "ok"
            used = _total_tokens(body)
            return body, None, time.monotonic() - begin
        except TimeoutError:
            outcome = "fault"
            trouble = Trouble("timeout", f"no answer within judge.timeout_s ({self._judge.timeout_s:g} s)")
        except Trouble as fault:
            trouble = fault
            outcome, wait = _OUTCOMES.get(trouble.kind, "none"), trouble.wait_s
            if wait is not None and wait > self._judge.deadline_s:
                wait = 0.0  # it ends this item; whether it is everybody's, the breaker finds out
            used = 0.0 if trouble.kind == "rate" else None
        finally:
            self.limiter.release(permit, outcome, used, wait, state.row)
        return None, trouble, time.monotonic() - begin

    async def _pause(self, trouble: Trouble, stop: Stop, state: Attempts) -> None:
        """Wait before the next attempt, or say why there is none."""
        if trouble.kind == "refused":
            raise ItemFault("refused", trouble.reason)
        if trouble.kind == "truncated":
            raise ItemFault("truncated", trouble.reason)
        if trouble.kind == "item":
            raise ItemFault("error", trouble.reason)
        if state.made >= self._judge.max_attempts:
            raise ItemFault("error", f"{state.made} attempts failed, the last with: {trouble.reason}")
        delay = min(_BACKOFF_MAX_S, _BACKOFF_S * 2 ** (state.made - 1)) * random.uniform(0.75, 1)
        if trouble.wait_s is not None:
            # Never early, and not all at the same moment.
            delay = max(delay if trouble.kind == "server" else 0.0, trouble.wait_s) + random.uniform(0.01, 0.1)
        assert state.began is not None
        left = self._judge.deadline_s - (time.monotonic() - state.began)
        if delay > left:
            if trouble.wait_s is not None and trouble.wait_s > self._judge.deadline_s:
                self._breaker.held(trouble.wait_s, state.row)
            raise ItemFault("error", f"judge.deadline_s ({self._judge.deadline_s:g} s) is over: {trouble.reason}")
        state.waited_s += delay
        if await stop.sleep(delay):
            raise Stopped

    def _account(self, body: dict[str, Any], chars: int, log: CallLog) -> float:
        """Add what an answered call took to `log`; returns its cost, USD."""
        prompt, completion = _tokens(body)
        if prompt is None or completion is None:
            prompt, completion = (round(n) for n in self.meter.estimate(chars))
            log.details["usage_estimated"] = True
        else:
            self.meter.observe(chars, prompt, completion)
        spent = cost(self._price, prompt, completion)
        log.calls += 1
        log.prompt_tokens += prompt
        log.completion_tokens += completion
        log.cost_usd += spent
        for name in ("model", "system_fingerprint"):
            value = body.get(name)
            if isinstance(value, str) and value:
                setattr(log, "served_model" if name == "model" else "fingerprint", value[:400])
        return spent


def _tokens(body: dict[str, Any]) -> tuple[int | None, int | None]:
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None, None
    found = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    prompt, completion = (_count(v) for v in found)
    return prompt, completion


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none (NaN, infinity, a text, more than any window holds)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value)


def _total_tokens(body: dict[str, Any]) -> float | None:
    prompt, completion = _tokens(body)
    return None if prompt is None or completion is None else float(prompt + completion)
