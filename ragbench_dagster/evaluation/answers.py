"""Has a system answer a release, and keeps what it said. Grading belongs in `judge_runner.py` and `retrieval.py`.

    store/nights/DAY/SYSTEM/responses.parquet   records.RESPONSES, the same bytes for the same answers
    store/nights/DAY/SYSTEM/timings.parquet     records.TIMINGS
    store/nights/DAY/SYSTEM/attempts.json       how the calls went: attempts.Attempts
    store/cache/answers/SYSTEM.db               answers as they arrived; may be deleted

A night whose release, system version and inputs are unchanged is read back without a call. Answers that failed
are asked again. Everything is scrubbed before it is written anywhere (design rule 1).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ragbench_dagster.evaluation import concurrency, spending
from ragbench_dagster.evaluation.asks import asks_for, drop_extras, extra_file, heavy_of, jobs, write_extra
from ragbench_dagster.evaluation.checkpoint import Attempt, Checkpoint
from ragbench_dagster.evaluation.concurrency import Meter, Progress, Stop, pull
from ragbench_dagster.evaluation.kept_texts import cleaner
from ragbench_dagster.evaluation.systems import Answer, Example, System, build_system, system_settings
from ragbench_dagster.evaluation.systems.logged import LoggedAnswers, fingerprint
from ragbench_dagster.records import FAILED, RESPONSES, TIMINGS
from ragbench_dagster.store import (
    Workspace,
    digest,
    read_table,
    rows_table,
    table_metadata,
    write_json,
    write_table,
)
from ragbench_dagster.traffic.scan import scrub_mark

# Asks a system the questions of a night: each once, what failed again later, each answer kept as it arrives.
#
# Questions are asked in the order of their hash, never by category, so that errors which stand together in time
# say something about the system's hours and not about its questions. What failed in the first pass is asked again
# after `retry_after_s`, since an outage passes and a fault of the system stays. Every call is noted with its time
# as it ends: a run that is killed while it waits goes on waiting, and asks nothing twice.


class Ask(NamedTuple):
    """One asking of one example: 0 is its answer, higher ones show how much answers vary from ask to ask."""

    example_id: str
    number: int


@dataclass(frozen=True)
class Attempts:
    """How the calls of a night went. Counts are of examples, but for the calls of the first pass.

    Attributes:
        asked: examples that the system was asked, or had answered before.
        failed_first: of them, failed in the first pass.
        missing: still without an answer at the end.
        order: the calls of the first pass by their time, as lengths of runs: so many answered, so many failed, so
            many answered, ...
    """

    asked: int
    failed_first: int
    missing: int
    order: list[int]

    def as_dict(self) -> dict[str, Any]:
        """For attempts.json; `answered_first` is the share answered in the first pass."""
        share = 1 - self.failed_first / self.asked if self.asked else None
        return {**self.__dict__, "mended": max(0, self.failed_first - self.missing), "answered_first": share}


class Asking:
    """One night's asking of one system.

    Args:
        system: who is asked.
        checkpoint: where answers and calls are kept; None for looked-up answers.
        night: names the night in the checkpoint.
        shared: what the key of every answer starts from.
        clean: takes personal data out of an answer.
    """

    def __init__(
        self,
        system: System,
        checkpoint: Checkpoint | None,
        night: str,
        shared: str,
        clean: Callable[[Example, Answer], Answer],
    ) -> None:
        self._system, self._checkpoint = system, checkpoint
        self._night, self._shared = night, shared
        self._clean = clean
        self._answers: dict[str, Answer] = {}
        self._past: dict[str, list[Attempt]] = {}
        for attempt in checkpoint.attempts(night) if checkpoint else ():
            self._past.setdefault(attempt.key, []).append(attempt)
        self._asked: dict[str, list[Ask]] = {}
        self.calls = 0

    async def all(
        self, asks: Iterable[tuple[Example, int]], waits: Sequence[float] | None, progress: Progress | None, stop: Stop
    ) -> Mapping[Ask, Answer]:
        """The answer of every ask; of those there are, if a stop was asked for.

        Args:
            asks: examples, each with the number of the ask.
            waits: seconds after the first pass at which failed questions are asked again; None: this night was
                finished before, and what is missing is asked once, at once.
            progress: called as (label, done, total).
            stop: ends it early.
        """
        examples: dict[str, Example] = {}
        for example, number in asks:
            key = self._key(example, number)
            examples.setdefault(key, example)
            self._asked.setdefault(key, []).append(Ask(example["example_id"], number))
        for key in examples:
            held = self._checkpoint.get(key) if self._checkpoint else None
            if held is not None and (held.status not in FAILED or key in self._past):
                self._answers[key] = held
        meter = Meter(f"{self._system.name} answers", len(examples), progress)
        meter.add(len(self._answers), fresh=False)
        # One thread scrubs and commits, so that neither delays the answers that are still being timed.
        with ThreadPoolExecutor(1, thread_name_prefix="ragbench-commit") as writer:
            try:
                again = self._failed() if waits is None else []
                new = [key for key in examples if key not in self._answers]
                await self._pass([*new, *again], examples, writer, meter, stop)
                for number, wait in enumerate(waits or (), 1):
                    left = [key for key in self._failed() if len(self._past.get(key, ())) <= number]
                    if not left or await self._wait(wait, len(left), meter, progress, stop):
                        break
                    await self._pass(left, examples, writer, meter, stop)
            finally:
                await self._system.aclose()
        meter.show()
        return {ask: self._answers[key] for key, own in self._asked.items() for ask in own if key in self._answers}

    def attempts(self) -> Attempts:
        """How it went; after `all`."""
        own = {key: sum(ask.number == 0 for ask in asks) for key, asks in self._asked.items()}
        first = [self._past[key][0] for key in own if key in self._past]
        first.sort(key=lambda attempt: (attempt.started, attempt.key))
        wrong = [attempt.status in FAILED for attempt in first]
        return Attempts(
            asked=sum(own.values()),
            failed_first=sum(own[attempt.key] for attempt in first if attempt.status in FAILED),
            missing=sum(own[key] for key in self._failed()),
            order=_runs(wrong),
        )

    def _key(self, example: Example, number: int) -> str:
        again = [f"ask {number}"] if number else []
        return digest(self._shared, example["query"], list(example["history"] or ()), *again)

    def _failed(self) -> list[str]:
        return [key for key in self._asked if key in self._answers and self._answers[key].status in FAILED]

    async def _pass(
        self,
        keys: list[str],
        examples: Mapping[str, Example],
        writer: ThreadPoolExecutor,
        meter: Meter,
        stop: Stop,
    ) -> None:
        """Ask each of these questions once, in the order of their keys, which are hashes."""
        here = asyncio.get_running_loop()

        async def ask(key: str) -> None:
            began = time.time()
            answer = await self._system.answer(examples[key])
            fresh = key not in self._answers
            self.calls += self._system.calls
            if self._system.calls:
                answer = replace(answer, started=began)
            await here.run_in_executor(writer, self._keep, key, examples[key], answer)
            meter.add(int(fresh))

        if keys:
            await pull(sorted(keys), ask, min(self._system.settings.concurrency, len(keys)), stop)

    def _keep(self, key: str, example: Example, answer: Answer) -> None:
        clean = self._clean(example, answer)
        if self._checkpoint is not None:
            past = self._past.setdefault(key, [])
            attempt = Attempt(key, len(past), clean.status, clean.started or 0.0, time.time())
            self._checkpoint.put(self._night, attempt, clean)
            past.append(attempt)
        self._answers[key] = clean

    async def _wait(self, wait: float, left: int, meter: Meter, progress: Progress | None, stop: Stop) -> bool:
        """Wait until `wait` seconds after the end of the first pass; True where a stop was asked for."""
        ended = max((past[0].ended for past in self._past.values()), default=0.0)
        # A clock that was set back must not make a night wait for days.
        remaining = min(wait, ended + wait - time.time())
        if remaining > 0 and progress is not None:
            words = f"{self._system.name} waits {remaining:.0f}s to ask again what failed: {left} questions"
            progress(words, meter.done, meter.total)
        return await stop.sleep(remaining)


def _runs(wrong: Sequence[bool]) -> list[int]:
    """Lengths of the runs of equal values, the first of them of False (0 where the first value is True)."""
    lengths = [0]
    for place, value in enumerate(wrong):
        if value != (wrong[place - 1] if place else False):
            lengths.append(0)
        lengths[-1] += 1
    return lengths


# Has a system answer a release, and keeps what it said. Grading belongs in `judge_runner.py` and `retrieval.py`.

_CODE = "1"  # raised when stored answers must be made anew


class ReleaseLike(Protocol):
    """What is read of a dataset.Release."""

    @property
    def id(self) -> str: ...
    @property
    def examples(self) -> pa.Table: ...
    @property
    def forms(self) -> pa.Table: ...


@dataclass(frozen=True)
class AnswerRun:
    """The answers of one system on one night.

    `calls` counts calls made now to an engine or endpoint: 0 where everything was there.
    """

    responses: pa.Table
    timings: pa.Table
    calls: int
    version: str


def answer_release(
    ws: Workspace, day: str, name: str, release: ReleaseLike, progress: Progress | None = None
) -> AnswerRun:
    """Ask system `name` every question of `release` and write its answers for the night `day`.

    Args:
        ws: the workspace.
        day: the night, ISO date.
        name: a system of `ragbench.yaml`, or a built-in one.
        release: the dataset.
        progress: called as (label, done, total), a few times a second.

    Raises:
        UserError: a fault of the system as a whole, or of the store; finished answers are kept.
        Interrupted: a signal came; finished answers are kept.
    """
    system = build_system(name, system_settings(ws, name), ws)
    asks = asks_for(ws.settings, system.fixed, bool(ws.sample))
    heavy = heavy_of(release.examples) if asks > 1 else []
    inputs = _inputs(ws, day, system, release, [asks, heavy] if heavy else [])
    folder = ws.night(day, name)
    paths = folder / "responses.parquet", folder / "timings.parquet"
    finished = all(path.exists() for path in paths) and _noted(paths[0], b"inputs") == inputs
    if finished:
        responses, timings = read_table(paths[0]), read_table(paths[1])
        extra = extra_file(folder, "responses")
        more = read_table(extra, ["status"])["status"].to_pylist() if heavy and extra.exists() else []
        if not set(FAILED) & {*responses["status"].to_pylist(), *more} and bool(heavy) == bool(more):
            return AnswerRun(responses, timings, 0, system.version)
    if isinstance(system, LoggedAnswers):
        system.load(day, release.forms)
    examples = release.examples.select(["example_id", "query", "history", "category"]).to_pylist()
    store = ws.store / "cache" / "answers" / f"{name}.db"
    with Checkpoint(store) if system.calls else nullcontext() as checkpoint:
        shared = digest(_CODE, system.version, "" if system.pure else day, scrub_mark(ws))
        if ws.settings.judge.provider != "embedded":
            spending.enter(ws, day)  # an engine may ask the judge's LLM
        asking = Asking(system, checkpoint, digest(inputs, day, ws.sample), shared, cleaner(ws, system))
        waits = None if finished else system.settings.retry_after_s
        answers = concurrency.run(lambda stop: asking.all(jobs(examples, heavy, asks), waits, progress, stop))
    responses, timings = _tables(examples, answers)
    metadata = {"inputs": inputs, "release": release.id, "system": name, "version": system.version}
    metadata |= {"fixed": "1"} if system.fixed else {}
    asked_again = [e for e in examples if e["example_id"] in set(heavy)]
    drop_extras(folder)
    write_extra(
        folder, "responses", [(k, _tables(asked_again, answers, k)[0]) for k in range(1, asks) if heavy], metadata
    )
    write_table(paths[1], timings)
    if system.calls:
        write_json(folder / "attempts.json", asking.attempts().as_dict())
    write_table(paths[0], responses, metadata)  # last: its inputs say that all the others are there
    return AnswerRun(responses, timings, asking.calls, system.version)


def _inputs(ws: Workspace, day: str, system: System, release: ReleaseLike, asks: list[Any]) -> str:
    """Hash of all that the answers of this night depend on."""
    parts: list[Any] = [_CODE, release.id, release.examples.num_rows, system.name, system.version]
    if isinstance(system, LoggedAnswers):
        parts.append(fingerprint(ws, day, system.max_age_days))
    else:
        parts.append(scrub_mark(ws))
    parts += asks
    return digest(*parts)


def stored_version(ws: Workspace, day: str, name: str) -> str:
    """The version of the system that gave the answers of the night; empty where there are none."""
    return _noted(ws.night(day, name) / "responses.parquet", b"version")


def _noted(path: Path, key: bytes) -> str:
    """What the metadata of a responses file say; empty where it cannot be read."""
    return table_metadata(path).get(key, b"").decode("utf-8", "replace")


def stored_fixed(ws: Workspace, day: str, name: str) -> bool:
    """Whether the system that gave the answers of the night always gives a question the same answer."""
    return _noted(ws.night(day, name) / "responses.parquet", b"fixed") == "1"


def _tables(examples: Sequence[Example], answers: Mapping[Ask, Answer], ask: int = 0) -> tuple[pa.Table, pa.Table]:
    said: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    for example in sorted(examples, key=lambda row: row["example_id"]):
        name = example["example_id"]
        answer = answers[Ask(name, ask)]
        parts = [answer.response, list(answer.contexts), list(answer.retrieved_ids)]
        said.append(
            {
                "example_id": name,
                "status": answer.status,
                "response": answer.response,
                "contexts": list(answer.contexts),
                "retrieved_ids": list(answer.retrieved_ids),
                "retrieved_scores": list(answer.retrieved_scores),
                "answer_hash": digest(parts) if answer.status == "scored" else None,
                "error": answer.error,
            }
        )
        began = None if answer.started is None else datetime.fromtimestamp(answer.started, UTC)
        times.append(
            {
                "example_id": name,
                "latency_ms": answer.latency_ms,
                "first_token_ms": answer.first_token_ms,
                "limit_ms": answer.limit_ms,
                "started": began,
            }
        )
    return rows_table(said, RESPONSES), rows_table(times, TIMINGS)
