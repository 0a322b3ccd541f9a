"""What production answered in the last seven days: sampled requests, each with the answer that its user got.

A release's questions with their latest logged answer are another thing: a question counts there by its window's
weight, whatever it was answered on the other days. So production is measured on its requests, and the release's
logged answers serve comparisons and labels alone.

    store/nights/DAY/SYSTEM/requests.parquet            records.REQUESTS: which requests, what they stand for
    store/nights/DAY/SYSTEM/request_retrieval.parquet   records.SCORES, example_id being the request's key
    store/nights/DAY/SYSTEM/request_verdicts.parquet    the same of the judge

A request's label is that of the release's question that it asks. Equal questions with equal answers are judged once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragbench_dagster.dataset.canonical import form_of
from ragbench_dagster.records import EXAMPLES, REQUESTS, RESPONSES
from ragbench_dagster.store import Workspace, digest, read_table, rows_table, write_table
from ragbench_dagster.traffic.timestamps import last_days

WEEK = 7  # days, the night's own the last
_COLUMNS = [
    "request_key", "user_key", "conversation_key", "day", "query", "history", "response", "source_nodes", "category",
    "weight", "follow_up", "question",
]  # fmt: skip
_LABEL = ["expected_doc_ids", "expected_grades", "expected_answer"]


@dataclass(frozen=True)
class LoggedWeek:
    """The logged requests of a week, as a night's answers (`responses`) to examples of their own.

    Attributes:
        requests: records.REQUESTS.
        responses: records.RESPONSES; example_id is the request's key.
        examples: records.EXAMPLES, the request's question with its label.
        facts: {first, last, sampled, unanswered}: days, requests of theirs that are sampled questions, and how many
            of those the logs hold no answer of.
    """

    requests: pa.Table
    responses: pa.Table
    examples: pa.Table
    facts: dict[str, Any]


def logged_week(ws: Workspace, day: str, forms: pa.Table, examples: pa.Table, most: int) -> LoggedWeek:
    """The requests of the seven days that end with `day`.

    Args:
        ws: the workspace.
        day: the night, ISO date.
        forms: records.FORMS of the night's release, which find a request's label.
        examples: records.EXAMPLES of the release.
        most: requests that are judged at most; of more, a systematic sample by day, category and hash.
    """
    days = last_days(day, WEEK)
    rows: list[dict[str, Any]] = []
    for path in (ws.traffic(d) / "scrubbed.parquet" for d in days):
        rows += _questions(read_table(path, _COLUMNS)) if path.exists() else []
    answered = [row for row in rows if row["response"] is not None or row["source_nodes"]]
    facts = {"first": days[0], "last": days[-1], "sampled": len(rows), "unanswered": len(rows) - len(answered)}
    kept = sorted(_some(answered, most), key=lambda row: row["request_key"])
    labels = _labels(forms, examples)
    return LoggedWeek(
        rows_table([_request(row) for row in kept], REQUESTS),
        rows_table([_response(row) for row in kept], RESPONSES),
        rows_table([_example(row, labels) for row in kept], EXAMPLES),
        facts,
    )


def write_week(ws: Workspace, day: str, name: str, week: LoggedWeek) -> None:
    """Write requests.parquet of system `name`."""
    facts = {key: str(value) for key, value in week.facts.items()}
    write_table(ws.night(day, name) / "requests.parquet", week.requests, facts)


def _questions(table: pa.Table) -> list[dict[str, Any]]:
    """Requests that ask something: placeholders alone do not, nor does a follow-up without its conversation."""
    return [row for row in table.to_pylist() if row["question"] and (row["history"] or not row["follow_up"])]


def _some(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most `most` rows at equal distances, by day, category and hash; each then stands for more requests."""
    if len(rows) <= most:
        return rows
    ordered = sorted(rows, key=lambda row: (row["day"], row["category"] or "", digest(row["request_key"])))
    factor = len(rows) / most
    kept = [ordered[int((place + 0.5) * factor)] for place in range(most)]
    return [{**row, "weight": row["weight"] * factor} for row in kept]


def _labels(forms: pa.Table, examples: pa.Table) -> dict[str, dict[str, Any]]:
    """Normal form -> label of its question; questions whose labels contradict each other have none."""
    about = {row["example_id"]: row for row in examples.select(["example_id", "conflict", *_LABEL]).to_pylist()}
    pairs = zip(forms["form"].to_pylist(), forms["example_id"].to_pylist(), strict=True)
    return {form: about[name] for form, name in pairs if name in about and not about[name]["conflict"]}


def _request(row: dict[str, Any]) -> dict[str, Any]:
    asker = row["user_key"] or row["conversation_key"] or row["request_key"]
    return {**{key: row[key] for key in ("request_key", "day", "category", "weight")}, "asker": asker}


def _response(row: dict[str, Any]) -> dict[str, Any]:
    nodes = row["source_nodes"] or []
    return {
        "example_id": row["request_key"],
        "status": "scored",
        "response": row["response"],
        "contexts": [node["text"] for node in nodes if node["text"] is not None],
        "retrieved_ids": [node["node_id"] for node in nodes],
        "retrieved_scores": [node["score"] for node in nodes],
    }


def _example(row: dict[str, Any], labels: dict[str, dict[str, Any]]) -> dict[str, Any]:
    label = labels.get(form_of(row["query"], row["history"] or []), {})
    return {
        "example_id": row["request_key"],
        **{key: row[key] for key in ("query", "history", "category", "weight")},
        **{key: label.get(key) for key in _LABEL},
        "conflict": False,
        "synthetic": False,
    }
