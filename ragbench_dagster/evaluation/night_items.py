"""From a night's answers to the items a judge grades, and back to records.SCORES rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ragbench_dagster.evaluation.session import Session
from ragbench_dagster.records import SCORES, Item, Verdict
from ragbench_dagster.store import rows_table

_ROWS = 500  # rows turned into Python objects together
_READ = ["example_id", "status", "response", "contexts", "error"]
_ABOUT = ["example_id", "query", "history", "category", "expected_answer", "conflict", "synthetic", "weight"]


class ReleaseLike(Protocol):
    """What is read of a dataset.Release."""

    @property
    def examples(self) -> pa.Table: ...


class NightItems:
    """The answered examples of a night as items, made anew each time they are asked for.

    Answers to examples that the release does not hold (a smaller sample was asked for) are left out.
    """

    def __init__(self, responses: pa.Table, release: ReleaseLike) -> None:
        self.about: dict[str, dict[str, Any]] = {
            row["example_id"]: row for row in release.examples.select(_ABOUT).to_pylist()
        }
        self._responses = responses.select(_READ).sort_by("example_id")
        self.count = sum(1 for _ in self())

    def rows(self) -> Iterator[tuple[dict[str, Any], Item | None]]:
        """Every response of the release with its item, None where there is no answer to grade."""
        for batch in self._responses.to_batches(max_chunksize=_ROWS):
            for row in batch.to_pylist():
                about = self.about.get(row["example_id"])
                if about is None:
                    continue
                answered = row["status"] == "scored" and row["response"] is not None
                yield row, _item(row, about) if answered else None

    def __call__(self) -> Iterator[Item]:
        return (item for _, item in self.rows() if item is not None)


def _item(row: dict[str, Any], about: dict[str, Any]) -> Item:
    return Item(
        row["example_id"],
        about["query"],
        row["response"],
        tuple(text for text in row["contexts"] or () if text),
        about["expected_answer"],
        tuple(about["history"] or ()),
    )


def value_of(verdict: Verdict) -> float | None:
    """What tables average: the passing share, or the score of an evaluator that does not say what passes."""
    if verdict.status != "scored":
        return None
    return verdict.score if verdict.passing is None else float(verdict.passing)


def score_row(system: str, metric: str, about: dict[str, Any], verdict: Verdict, key: str | None) -> dict[str, Any]:
    """One row of records.SCORES; `about` is the example's row of the release."""
    return {
        "system": system,
        "metric": metric,
        "example_id": about["example_id"],
        "status": verdict.status,
        "score": verdict.score,
        "passing": verdict.passing,
        "value": value_of(verdict),
        "weight": about["weight"],
        "category": about["category"],
        "in_gate": not (about["conflict"] or about["synthetic"]),
        "feedback": verdict.feedback,
        "key": key,
    }


def score_rows(system: str, metrics: Sequence[str], items: NightItems, session: Session) -> tuple[pa.Table, list[str]]:
    """(records.SCORES sorted by metric and example, the models that served the verdicts).

    An example without an answer has the status of its response: a failed system is no verdict of 0.
    """
    served: set[str] = set()
    tables: list[pa.Table] = []
    for metric in sorted(metrics):
        rows: list[dict[str, Any]] = []
        judged = session.verdicts((metric, item) for item in items())
        for row, item in items.rows():
            about = items.about[row["example_id"]]
            key: str | None = None
            if item is None:
                status: Any = row["status"] if row["status"] != "scored" else "not_applicable"
                verdict = Verdict(status, feedback=row["error"] or "no answer to judge")
            else:
                _, _, key, verdict = next(judged)
                served.update([verdict.served_model] if verdict.served_model else [])
            rows.append(score_row(system, metric, about, verdict, key))
            if len(rows) >= _ROWS:  # Arrow holds a night in a tenth of what Python's rows take
                tables.append(rows_table(rows, SCORES))
                rows.clear()
        tables.append(rows_table(rows, SCORES))
    return (pa.concat_tables(tables).combine_chunks() if tables else rows_table([], SCORES)), sorted(served)
