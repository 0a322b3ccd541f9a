"""The logged answers as a system: what people really got for a question, on the night or shortly before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragbench_dagster.dataset.canonical import form_of
from ragbench_dagster.evaluation.systems.system import Answer, Clock, Example, System
from ragbench_dagster.plugins import file_digest
from ragbench_dagster.settings import LoggedSystem
from ragbench_dagster.store import Workspace, digest, read_table
from ragbench_dagster.traffic.timestamps import last_days

_COLUMNS = ["request_key", "timestamp", "query", "history", "response", "source_nodes", "latency_ms", "follow_up"]


@dataclass(frozen=True, slots=True)
class _Candidate:
    order: tuple[bool, Any, str]  # answered, time, request key: the greatest wins
    answer: Answer


def files(ws: Workspace, day: str, max_age_days: int) -> list[Path]:
    """The scrubbed requests in the store that logged answers are taken from."""
    paths = [ws.traffic(d) / "scrubbed.parquet" for d in last_days(day, max_age_days + 1)]
    return [path for path in paths if path.exists()]


def fingerprint(ws: Workspace, day: str, max_age_days: int) -> str:
    """Hash of what those files hold, with their days."""
    return digest([[path.parent.name, file_digest(path)] for path in files(ws, day, max_age_days)])


class LoggedAnswers(System):
    """Answers an example with the latest logged answer of its cluster; none is `not_applicable`.

    `load` finds the answers of a night; before it, every example is `not_applicable`.
    """

    kind = "logged"
    calls = False
    scrubbed = True

    def __init__(self, name: str, settings: LoggedSystem, version: str, ws: Workspace) -> None:
        super().__init__(name, settings, version)
        self._ws = ws
        self.max_age_days = settings.max_age_days
        self._found: dict[str, _Candidate] = {}

    def load(self, day: str, forms: pa.Table) -> None:
        """Find the logged answer of every example, for the night `day`.

        Args:
            day: the night, ISO date.
            forms: records.FORMS of the release.
        """
        known = dict(zip(forms["form"].to_pylist(), forms["example_id"].to_pylist(), strict=True))
        self._found = {}
        for path in files(self._ws, day, self.max_age_days):
            for row in _rows(read_table(path, _COLUMNS)):
                if row["follow_up"] and not row["history"]:
                    continue  # means nothing alone, so it is no example's question
                example = known.get(form_of(row["query"], row["history"] or []))
                if example is None:
                    continue
                candidate = _candidate(row)
                held = self._found.get(example)
                if candidate is not None and (held is None or candidate.order > held.order):
                    self._found[example] = candidate

    async def ask(self, example: Example, clock: Clock) -> Answer:
        found = self._found.get(example["example_id"])
        return found.answer if found else Answer("not_applicable")


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=4096):
        yield from batch.to_pylist()


def _candidate(row: dict[str, Any]) -> _Candidate | None:
    nodes = row["source_nodes"] or []
    if row["response"] is None and not nodes:
        return None
    answer = Answer(
        "scored",
        response=row["response"],
        contexts=tuple(node["text"] for node in nodes if node["text"] is not None),
        retrieved_ids=tuple(node["node_id"] for node in nodes),
        retrieved_scores=tuple(node["score"] for node in nodes),
        latency_ms=row["latency_ms"],
    )
    return _Candidate((row["response"] is not None, row["timestamp"], row["request_key"]), answer)


def build(name: str, settings: LoggedSystem, version: str, ws: Workspace) -> LoggedAnswers:
    """The logged answers; `load` reads those of a night."""
    return LoggedAnswers(name, settings, version, ws)
