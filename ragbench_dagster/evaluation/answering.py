"""Has a system answer a release, and keeps what it said. Grading belongs in `judging.py` and `retrieval.py`.

    store/nights/DAY/SYSTEM/responses.parquet   records.RESPONSES, the same bytes for the same answers
    store/nights/DAY/SYSTEM/timings.parquet     records.TIMINGS
    store/nights/DAY/SYSTEM/attempts.json       how the calls went: attempts.Attempts
    store/cache/answers/SYSTEM.db               answers as they arrived; may be deleted

A night whose release, system version and inputs are unchanged is read back without a call. Answers that failed
are asked again. Everything is scrubbed before it is written anywhere (design rule 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ragbench_dagster.evaluation import loop, spending
from ragbench_dagster.evaluation.asks import asks_for, drop_extras, extra_file, heavy_of, jobs, write_extra
from ragbench_dagster.evaluation.attempts import Ask, Asking
from ragbench_dagster.evaluation.checkpoint import Checkpoint
from ragbench_dagster.evaluation.cleaning import cleaner
from ragbench_dagster.evaluation.runner import Progress
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
        answers = loop.run(lambda stop: asking.all(jobs(examples, heavy, asks), waits, progress, stop))
    responses, timings = _tables(examples, answers)
    metadata = {"inputs": inputs, "release": release.id, "system": name, "version": system.version}
    metadata |= {"fixed": "1"} if system.fixed else {}
    asked_again = [e for e in examples if e["example_id"] in set(heavy)]
    drop_extras(folder)
    write_extra(
        folder, "responses", [(k, _tables(asked_again, answers, k)[0]) for k in range(1, asks) if heavy], metadata
    )
    write_table(paths[0], responses, metadata)
    write_table(paths[1], timings)
    if system.calls:
        write_json(folder / "attempts.json", asking.attempts().as_dict())
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
