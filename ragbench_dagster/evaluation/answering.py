"""Has a system answer a release, and keeps what it said. Grading belongs in `judging.py` and `retrieval.py`.

    store/nights/DAY/SYSTEM/responses.parquet   records.RESPONSES, the same bytes for the same answers
    store/nights/DAY/SYSTEM/timings.parquet     records.TIMINGS
    store/cache/answers/SYSTEM.db               answers as they arrived; may be deleted

A night whose release, system version and inputs are unchanged is read back without a call. Answers that failed
are asked again. Everything is scrubbed before it is written anywhere (design rule 1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ragbench_dagster.evaluation import loop, spending
from ragbench_dagster.evaluation.checkpoint import Checkpoint
from ragbench_dagster.evaluation.cleaning import cleaner
from ragbench_dagster.evaluation.loop import Stop
from ragbench_dagster.evaluation.runner import Meter, Progress, pull
from ragbench_dagster.evaluation.systems import Answer, Example, System, build_system, system_settings
from ragbench_dagster.evaluation.systems.logged import LoggedAnswers, fingerprint
from ragbench_dagster.records import RESPONSES, TIMINGS
from ragbench_dagster.store import Workspace, digest, read_table, rows_table, table_metadata, write_table
from ragbench_dagster.traffic.scan import scrub_mark

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
    inputs = _inputs(ws, day, system, release)
    folder = ws.night(day, name)
    paths = folder / "responses.parquet", folder / "timings.parquet"
    if all(path.exists() for path in paths) and _noted(paths[0], b"inputs") == inputs:
        responses, timings = read_table(paths[0]), read_table(paths[1])
        if "error" not in responses["status"].to_pylist():
            return AnswerRun(responses, timings, 0, system.version)
    if isinstance(system, LoggedAnswers):
        system.load(day, release.forms)
    examples = release.examples.select(["example_id", "query", "history", "category"]).to_pylist()
    store = ws.store / "cache" / "answers" / f"{name}.db"
    with Checkpoint(store) if system.calls else nullcontext() as checkpoint:
        shared = digest(_CODE, system.version, "" if system.pure else day, scrub_mark(ws))
        run = _Run(system, checkpoint, shared, cleaner(ws, system))
        if ws.settings.judge.provider != "embedded":
            spending.enter(ws, day)  # an engine may ask the judge's LLM
        answers = loop.run(partial(run.all, examples, progress))
    responses, timings = _tables(examples, answers)
    metadata = {"inputs": inputs, "release": release.id, "system": name, "version": system.version}
    write_table(paths[0], responses, metadata)
    write_table(paths[1], timings)
    return AnswerRun(responses, timings, run.calls, system.version)


def _inputs(ws: Workspace, day: str, system: System, release: ReleaseLike) -> str:
    """Hash of all that the answers of this night depend on."""
    parts: list[Any] = [_CODE, release.id, release.examples.num_rows, system.name, system.version]
    if isinstance(system, LoggedAnswers):
        parts.append(fingerprint(ws, day, system.max_age_days))
    else:
        parts.append(scrub_mark(ws))
    return digest(*parts)


def stored_version(ws: Workspace, day: str, name: str) -> str:
    """The version of the system that gave the answers of the night; empty where there are none."""
    return _noted(ws.night(day, name) / "responses.parquet", b"version")


def _noted(path: Path, key: bytes) -> str:
    """What the metadata of a responses file say; empty where it cannot be read."""
    return table_metadata(path).get(key, b"").decode("utf-8", "replace")


class _Run:
    """One pass over a release: bounded workers, each question once, each answer committed when it is there."""

    def __init__(
        self, system: System, checkpoint: Checkpoint | None, shared: str, clean: Callable[[Example, Answer], Answer]
    ) -> None:
        self._system = system
        self._checkpoint = checkpoint
        self._shared = shared
        self._clean = clean
        self._answers: dict[str, Answer] = {}
        self.calls = 0

    async def all(self, examples: Sequence[Example], progress: Progress | None, stop: Stop) -> dict[str, Answer]:
        """example_id to answer; of those there are, if a stop was asked for."""
        groups: dict[str, list[Example]] = {}
        for example in examples:
            key = digest(self._shared, example["query"], list(example["history"] or ()))
            groups.setdefault(key, []).append(example)
        meter = Meter(f"{self._system.name} answers", len(groups), progress)
        pending = [(key, same[0]) for key, same in groups.items() if not self._held(key)]
        meter.add(len(groups) - len(pending), fresh=False)
        # One thread scrubs and commits, so that neither delays the answers that are still being timed.
        with ThreadPoolExecutor(1, thread_name_prefix="ragbench-commit") as writer:
            here = asyncio.get_running_loop()

            async def ask(job: tuple[str, Example]) -> None:
                answer = await self._system.answer(job[1])
                self.calls += self._system.calls
                await here.run_in_executor(writer, self._keep, *job, answer)
                meter.add()

            try:
                await pull(pending, ask, min(self._system.settings.concurrency, len(pending)), stop)
            finally:
                await self._system.aclose()
        meter.show()
        return {
            e["example_id"]: self._answers[key] for key, same in groups.items() for e in same if key in self._answers
        }

    def _held(self, key: str) -> bool:
        held = self._checkpoint.get(key) if self._checkpoint else None
        if held is None or held.status == "error":  # what failed is asked again
            return False
        self._answers[key] = held
        return True

    def _keep(self, key: str, example: Example, answer: Answer) -> None:
        clean = self._clean(example, answer)
        if self._checkpoint is not None:
            self._checkpoint.put(key, clean)
        self._answers[key] = clean


def _tables(examples: Sequence[Example], answers: dict[str, Answer]) -> tuple[pa.Table, pa.Table]:
    said: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    for example in sorted(examples, key=lambda row: row["example_id"]):
        name = example["example_id"]
        answer = answers[name]
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
        times.append({"example_id": name, "latency_ms": answer.latency_ms, "first_token_ms": answer.first_token_ms})
    return rows_table(said, RESPONSES), rows_table(times, TIMINGS)
