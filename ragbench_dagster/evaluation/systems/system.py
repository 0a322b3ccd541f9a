"""What a system under test is, and how one answer is asked for: timed, bounded in time, faults typed.

A kind of system only implements `ask`. Checkpoints, identical questions and scrubbing belong in `answers.py`.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.records import AnswerStatus
from ragbench_dagster.settings import SystemBase

Example = Mapping[str, Any]  # a row of records.EXAMPLES; example_id, query and history are read


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system said to one question.

    `status` is `scored` (it answered), `error`, `timed_out`, `refused` or `not_applicable`. Passages, ids and scores run
    side by side in rank order; an id is None for a passage without one. Times are the system's own, in ms.
    """

    status: AnswerStatus
    response: str | None = None
    contexts: tuple[str, ...] = ()
    retrieved_ids: tuple[str | None, ...] = ()
    retrieved_scores: tuple[float | None, ...] = ()
    error: str | None = None  # class and short reason, never text under test
    latency_ms: float | None = None
    first_token_ms: float | None = None
    limit_ms: float | None = None  # timed_out: it would have taken longer than this
    started: float | None = None  # epoch seconds at which the call began; None: no call


class ItemError(Exception):
    """One question failed. The message is stored: a class and a short reason, never text under test."""


def shown(message: str) -> str:
    """What the user's own code said when it failed, fit to be shown."""
    from ragbench_dagster.traffic.scrubbing.redact import redact  # loads recognisers

    return redact(message, limit=200)


class Clock:
    """Measures one call. A system restarts it when its own work begins, and stops it when that ends."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.end: float | None = None
        self.first: float | None = None

    def start(self) -> None:
        """The system's own work begins now: what came before was queueing or back-off."""
        self.begin = time.perf_counter()
        self.end = self.first = None

    def stop(self) -> None:
        self.end = time.perf_counter()

    def token(self) -> None:
        """A piece of the answer arrived; the first one counts."""
        if self.first is None:
            self.first = time.perf_counter()

    @property
    def latency_ms(self) -> float:
        return ((self.end or time.perf_counter()) - self.begin) * 1000

    @property
    def first_token_ms(self) -> float | None:
        return None if self.first is None else (self.first - self.begin) * 1000


class System(ABC):
    """A system under test.

    Attributes:
        name: its name in `ragbench.yaml`.
        kind: engine, retriever, http or logged.
        version: changes when its answers may change.
        calls: whether an answer costs a call to an engine or a provider.
        pure: whether an answer depends on the question and the version alone, so that nights can share it.
        scrubbed: whether its answers are free of personal data already.
        retrieves_only: whether it gives passages and no answer.
        times_itself: whether `ask` keeps to `timeout_s` itself, because it also waits in queues.
    """

    kind: str
    calls = True
    pure = False
    scrubbed = False
    retrieves_only = False
    times_itself = False

    @property
    def fixed(self) -> bool:
        """Whether asking again gives the same answer: looked up, or retrieved from an index that does not change."""
        return self.pure or self.retrieves_only or not self.calls

    def __init__(self, name: str, settings: SystemBase, version: str) -> None:
        self.name = name
        self.settings = settings
        self.version = version

    @abstractmethod
    async def ask(self, example: Example, clock: Clock) -> Answer:
        """The answer to one question; may raise anything."""

    async def answer(self, example: Example) -> Answer:
        """The answer to one question, within `timeout_s`; a fault is an Answer of status `error` or `timed_out`.

        Raises:
            UserError: a fault of the system as a whole, which every further question would meet too.
        """
        clock = Clock()
        try:
            async with asyncio.timeout(None if self.times_itself else self.settings.timeout_s) as patience:
                answer = await self.ask(example, clock)
        except TimeoutError as fault:
            if not (self.times_itself or patience.expired()):  # the system's own patience ended before ours
                return Answer("timed_out", error=describe(fault), limit_ms=clock.latency_ms)
            limit = self.settings.timeout_s
            return Answer("timed_out", error=f"Timeout: no answer within {limit:g} s", limit_ms=limit * 1000)
        except UserError:
            raise
        except ItemError as fault:
            return Answer("error", error=str(fault), latency_ms=clock.latency_ms)
        except Exception as fault:
            return Answer("error", error=describe(fault), latency_ms=clock.latency_ms)
        if answer.status != "scored" or answer.latency_ms is not None or not self.calls:
            return answer  # a looked-up answer whose latency is unknown is not a fast one
        first = clock.first_token_ms if answer.first_token_ms is None else answer.first_token_ms
        return replace(answer, latency_ms=clock.latency_ms, first_token_ms=first)

    async def aclose(self) -> None:
        """Free what the system holds open."""
        return


def describe(fault: BaseException) -> str:
    """Class and place of an exception. Not its message, which may quote the question."""
    frames = traceback.extract_tb(fault.__traceback__)
    if not frames:
        return type(fault).__name__
    last = frames[-1]
    return f"{type(fault).__name__} in {last.name} ({last.filename.rsplit('/', 1)[-1]}:{last.lineno})"


def full_query(example: Example) -> str:
    """The question with its earlier turns before it, for a system that takes one text."""
    return "\n".join([*(example.get("history") or ()), example["query"]])
