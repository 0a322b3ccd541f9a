"""One limiter a provider: requests a minute, tokens a minute, and a concurrency that it finds by itself.

Every HTTP attempt of every evaluator asks here first. How it behaves:

* Requests and tokens are spread evenly (GCRA, the virtual scheduling of ITU-T I.371): the next one may go when the
  one before has used up its share of the minute. Half a second's worth may be caught up, so that a late event loop
  loses nothing, and the pace is 1 % below the limit, so that a server's sliding window never sees one too many.
* Tokens are estimated before and corrected by the usage that the provider reports.
* Concurrency starts at `start`, grows by one a success (doubling each round trip) until the first 429, later by one
  a round; it never exceeds `max`. A 429 halves it, once an episode: answers to what was sent before the halving say
  nothing new. Errors of the server (5xx, time-outs) hold it where it is.
* A 429 holds back its own item; a second one, of another row and without a success between them, holds back everybody
  until the provider's wait is over. A row that is refused again and again says nothing of the others.
* So do eight server faults in a row, for up to two seconds: a provider that is down is not stormed.
* Attempts that follow a fault go first: they are the oldest.

What is paced is kept for the life of the process, across event loops, so that a night's second system does not start
the minute again. Loops of several threads may ask at the same time (a judge session's and `background_loop.py`'s):
they share the pace and the concurrency, and who waits is woken on its own loop. What a closed loop left is forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Concurrency

Outcome = Literal["ok", "rate", "fault", "none"]
_PACE = 0.99  # of the limit
_CATCH_UP_S = 0.5
_FAULTS = 8  # in a row, from which on everybody is held back
_FAULT_HOLD_S = 2.0


class TooLong(Exception):
    """Everybody is held back for longer than this item may take; the seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(slots=True)
class Permit:
    """Leave for one HTTP attempt."""

    sent_at: float
    tokens: float
    loop: asyncio.AbstractEventLoop  # whose attempt it is


@dataclass(slots=True)
class Pace:
    """An even pace of `per_minute` units."""

    per_minute: float | None
    due: float = 0.0  # when what was let through so far is used up, by the clock

    def free_at(self) -> float:
        return self.due - _CATCH_UP_S if self.per_minute else 0.0

    def take(self, now: float, units: float) -> None:
        if self.per_minute:
            self.due = max(now, self.due) + self.cost(units)

    def give_back(self, units: float) -> None:
        if self.per_minute:
            self.due -= self.cost(units)

    def cost(self, units: float) -> float:
        assert self.per_minute is not None
        return units * 60 / (self.per_minute * _PACE)


class Limiter:
    """Lets attempts through at the pace a provider allows.

    Args:
        rpm: requests a minute; None: not limited.
        tpm: tokens a minute, prompt and completion together; None: not limited.
        concurrency: attempts in flight.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        rpm: float | None,
        tpm: float | None,
        concurrency: Concurrency,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests, self._tokens = Pace(rpm), Pace(tpm)
        self._bounds = concurrency
        self._clock = clock
        self.limit = float(concurrency.start)
        self._doubling = True
        self._backed_off_at = float("-inf")
        self._held_until = float("-inf")
        self._faults_in_a_row = 0
        self._refused: set[object] = set()  # rows that got a 429 since the last success
        self.limited_by = ""
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, int, Callable[[], float], asyncio.Future[Permit]]] = []
        self._count = 0
        self._sent: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
        self._timers: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()

    @property
    def in_flight(self) -> int:
        """Attempts under way on all loops that are still there."""
        return sum(n for loop, n in self._sent.items() if not loop.is_closed())

    async def acquire(self, tokens: Callable[[], float], again: bool = False, within_s: float | None = None) -> Permit:
        """Wait for leave to send one attempt.

        Args:
            tokens: estimates prompt and completion together, at the moment of leave: what was learnt in the queue counts.
            again: the attempt follows a fault; it goes first.
            within_s: seconds that the item has left; None: no bound.

        Raises:
            TooLong: the provider's own wait is longer than that.
        """
        running = asyncio.get_running_loop()
        with self._lock:
            held = self._held_until - self._clock()
            if within_s is not None and held > within_s:
                raise TooLong(held)
            self._wake()  # whoever a closed loop left before this one is passed over
            if not self._waiting and (permit := self._grant(tokens(), running)) is not None:
                return permit
            future: asyncio.Future[Permit] = running.create_future()
            self._count += 1
            heapq.heappush(self._waiting, (0 if again else 1, self._count, tokens, future))
            self._wake()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release(future.result(), "none")  # let through, but nobody is there any more
            raise

    def release(
        self,
        permit: Permit,
        outcome: Outcome,
        used: float | None = None,
        wait_s: float | None = None,
        row: str = "",
    ) -> None:
        """An attempt ended.

        Args:
            permit: of the attempt.
            outcome: `ok`, `rate` (429), `fault` (the server's) or `none` (says nothing of the provider).
            used: tokens that the provider reports; None keeps the estimate.
            wait_s: how long the provider asks to wait.
            row: whose attempt it was; "": a row of its own.
        """
        with self._lock:
            self._sent[permit.loop] -= 1
            if used is not None:
                self._tokens.give_back(permit.tokens - used)
            now = self._clock()
            if outcome == "ok":
                self._faults_in_a_row = 0
                self._refused.clear()
                if self.in_flight + 1 >= int(self.limit):  # it was used: more may be asked for
                    step = 1.0 if self._doubling else 1 / self.limit
                    self.limit = min(self._bounds.max, self.limit + step)
            elif outcome == "rate":
                self._refused.add(row or object())
                if permit.sent_at > self._backed_off_at:
                    self._backed_off_at = now
                    self._doubling = False
                    self.limit = max(self._bounds.min, self.limit / 2)
                if len(self._refused) > 1:
                    self._held_until = max(self._held_until, now + (wait_s if wait_s is not None else 1.0))
            elif outcome == "fault":
                self._faults_in_a_row += 1
                rounds = self._faults_in_a_row // _FAULTS
                if rounds:
                    self._held_until = max(self._held_until, now + min(_FAULT_HOLD_S, 0.1 * 2**rounds))
            self._wake()

    def _grant(self, tokens: float, loop: asyncio.AbstractEventLoop) -> Permit | None:
        now = self._clock()
        if self.in_flight >= int(self.limit):
            self.limited_by = "concurrency"
            return None
        if self._free_at() > now:
            return None
        self._sent[loop] = self._sent.get(loop, 0) + 1
        self._requests.take(now, 1)
        self._tokens.take(now, tokens)
        return Permit(now, tokens, loop)

    def _free_at(self) -> float:
        reasons = (
            (self._held_until, "the provider's faults"),
            (self._requests.free_at(), "requests a minute"),
            (self._tokens.free_at(), "tokens a minute"),
        )
        moment, why = max(reasons)
        if moment > self._clock():
            self.limited_by = why
        return moment

    def _wake(self) -> None:
        """Let through whoever may go now, and come back when the next may. The lock is held."""
        while self._waiting:
            tokens, future = self._waiting[0][2:]
            loop = future.get_loop()
            if not (future.done() or loop.is_closed()):  # neither cancelled nor left behind
                permit = self._grant(tokens(), loop)
                if permit is None:
                    self._come_back(loop)
                    return
                _on(loop, self._deliver, future, permit)
            heapq.heappop(self._waiting)

    def _deliver(self, future: asyncio.Future[Permit], permit: Permit) -> None:
        if future.done():  # cancelled before it came
            self.release(permit, "none")
        else:
            future.set_result(permit)

    def _come_back(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set a timer on the loop of the first who waits; a loop has one that rings early rather than two."""
        free_at = self._free_at()
        if self.in_flight < int(self.limit) and self._timers.get(loop, float("inf")) > free_at:
            self._timers[loop] = free_at
            _on(loop, loop.call_later, max(0.0, free_at - self._clock()), self._ring)

    def _ring(self) -> None:
        with self._lock:
            self._timers.pop(asyncio.get_running_loop(), None)
            self._wake()


def _on(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *arguments: object) -> None:
    """Call on `loop`: now where it is the running one, else as its next turn; never where it is closed meanwhile."""
    if loop is asyncio._get_running_loop():
        call(*arguments)
    else:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(call, *arguments)


limiters: dict[tuple[object, ...], Limiter] = RUNTIME.registry("limiters")


def shared_limiter(provider: str, rpm: float | None, tpm: float | None, concurrency: Concurrency) -> Limiter:
    """The one limiter of `provider` (its address and the name of its key) in this process."""
    key = (provider, rpm, tpm, concurrency)
    return limiters.setdefault(key, Limiter(rpm, tpm, concurrency))
