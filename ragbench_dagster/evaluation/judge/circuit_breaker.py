"""Decides when going on is pointless: the key is refused, the quota is gone, a setting is wrong, the provider is down.

Then the whole run stops with one line instead of failing item by item. A fault that only the settings can mend opens
it at once; faults that may pass open it when nothing has succeeded for long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge.provider_errors import SETTINGS, Trouble
from ragbench_dagster.settings import Judge

_IN_A_ROW = 20  # failed attempts without a success between them
_PATIENCE_S = 30.0  # seconds without a success, once there was one; a third of it before
_REFUSED_CONNECTIONS = 3  # before the first success: nobody listens there
_BAD_REQUESTS = 5  # 400s before the first success: it is the request, not the item
_PAGES = 4  # web pages before the first success: it is no chat API; a gateway that sends some answers in between


class Breaker:
    """Watches all attempts at one provider.

    Args:
        judge: named in the line that says what to do.
        clock: monotonic seconds.
    """

    def __init__(self, judge: Judge, clock: Callable[[], float] = time.monotonic) -> None:
        self._judge = judge
        self._clock = clock
        self._succeeded = False
        self._since: float | None = None  # the first attempt, or the last success
        self._row = 0
        self._bad_requests = 0
        self._pages = 0
        self._rates = 0
        self._held: set[str] = set()  # rows that were asked to wait too long since the last success

    def sent(self) -> None:
        if self._since is None:
            self._since = self._clock()

    def success(self) -> None:
        """The provider answered as it should; a filtered or too long prompt counts too."""
        self._succeeded = True
        self._since = self._clock()
        self._row = self._bad_requests = self._rates = 0
        self._held.clear()

    def check(self, trouble: Trouble) -> None:
        """Note a failed attempt.

        Raises:
            UserError: going on is pointless; the line says what to do.
        """
        kind = trouble.kind
        if kind in ("refused", "truncated"):
            self.success()
            return
        if kind in SETTINGS and not (self._succeeded and kind in ("dns", "tls", "address")):
            raise UserError(self._line(trouble))
        silent = self._clock() - (self._since if self._since is not None else self._clock())
        if kind == "item":
            self._bad_requests += 1
            if not self._succeeded and self._bad_requests >= _BAD_REQUESTS:
                raise UserError(
                    f"judge: the provider refuses every request: {trouble.reason}; see judge: in ragbench.yaml"
                )
            return
        self._row += 1
        if kind == "rate":
            self._rates += 1
            # Waiting is right while the limit may heal within an item's time.
            if self._rates == self._row >= _IN_A_ROW and silent > max(self._judge.deadline_s, _PATIENCE_S):
                raise UserError(
                    f"judge: rate limited for {silent:.0f} s without a break: {trouble.reason}; run again later"
                )
            return
        if kind == "page":
            self._pages += 1
            if not self._succeeded and self._pages >= _PAGES:
                raise UserError(self._line(trouble))
        if kind == "connect" and not self._succeeded and self._row >= _REFUSED_CONNECTIONS:
            raise UserError(self._line(trouble))
        patience = _PATIENCE_S if self._succeeded else _PATIENCE_S / 3
        if self._row >= _IN_A_ROW and silent > patience:
            raise UserError(
                f"judge: the provider is down: {self._row} attempts in a row failed, the last with {trouble.reason}; "
                "run again later"
            )

    def held(self, seconds: float, row: str) -> None:
        """The provider asks `row` to wait for longer than an item may take.

        Raises:
            UserError: it has asked five rows, and nothing has succeeded meanwhile.
        """
        self._held.add(row)
        if len(self._held) >= _BAD_REQUESTS:
            raise UserError(
                f"judge: the provider asks to wait {seconds:.0f} s, longer than judge.deadline_s "
                f"({self._judge.deadline_s:g} s); run again later"
            )

    def _line(self, trouble: Trouble) -> str:
        judge = self._judge
        base = judge.api_base or "the default address"
        env = judge.api_key_env or "judge.api_key_env"
        lines = {
            "key": f"judge: the key is refused ({trouble.reason}); set {env} to a valid one",
            "quota": f"judge: the quota is used up ({trouble.reason}); top it up and run again",
            "model": f"judge.model {judge.model!r}: the provider does not have it ({trouble.reason})",
            "address": f"judge.api_base {base}: not the address of a chat API ({trouble.reason})",
            "page": f"judge.api_base {base}: a web page answers there, not a chat API ({trouble.reason}); correct it, or "
            "sign in to what stands between",
            "dns": f"judge.api_base {base}: {trouble.reason}; correct it, or check the network",
            "tls": f"judge.api_base {base}: {trouble.reason}; check the certificate, and http against https",
            "connect": f"judge.api_base {base}: nobody answers there; start the server, or correct it",
        }
        if trouble.kind == "parameter":
            return f"{_setting(trouble.parameter)}: the provider does not take it ({trouble.reason})"
        return lines.get(trouble.kind, f"judge: {trouble.reason}")


def _setting(parameter: str) -> str:
    """The setting that sends a request parameter, with what to set instead."""
    known = {
        "max_tokens": "judge.max_tokens (set judge.max_completion_tokens instead)",
        "max_completion_tokens": "judge.max_completion_tokens (set judge.max_tokens instead)",
        "temperature": "judge.temperature (null: not sent)",
        "seed": "judge.seed (leave it out)",
        "logprobs": "judge.read (text instead of logprobs)",
        "top_logprobs": "judge.read (text instead of logprobs)",
        "model": "judge.model",
    }
    return known.get(parameter, f"judge.extra.{parameter}")
