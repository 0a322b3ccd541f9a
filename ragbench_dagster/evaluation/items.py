"""From a night's answers to the items a judge grades, and back to records.SCORES rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from ragbench_dagster.evaluation.applicability import Given, given, unmet
from ragbench_dagster.evaluation.judge_session import Session
from ragbench_dagster.records import FAILED, SCORES, Item, Verdict
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
        self.count = 0
        self.given: Given = given(self._answers())

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

    def _answers(self) -> Iterator[tuple[bool, bool, bool]]:
        """(answered, with a text, with passages) of each; counts the items on the way."""
        for row, item in self.rows():
            self.count += item is not None
            yield row["status"] == "scored", item is not None, any((t or "").strip() for t in row["contexts"] or ())

    def verdict(
        self, needs: Collection[str], row: dict[str, Any], item: Item | None, judged: Verdict | None
    ) -> Verdict:
        """What stands in the table for one answer and metric.

        Whether the metric applies comes first: what cannot be judged whatever the answer says is neither a failure
        of the system nor one of the judge.

        Args:
            needs: what the metric cannot do without (see `applicability`).
            row: the row of records.RESPONSES.
            item: its answer; None where there is none.
            judged: the judge's verdict on it; None where there is nothing to judge.
        """
        why = unmet(needs, self.about[row["example_id"]], item, self.given)
        if judged is not None:
            return Verdict("not_applicable", feedback=why) if why and judged.status != "not_applicable" else judged
        if why and row["status"] not in ("scored", "not_applicable"):
            return Verdict("not_applicable", feedback=why)
        return _unanswered(row)


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
    """What tables average: the passing share, or the score of an evaluator that does not say what passes.

    A failure of the system is 0; what the judge could not judge is unknown.
    """
    if verdict.status == "failed":
        return 0.0
    if verdict.status != "scored":
        return None
    return verdict.score if verdict.passing is None else float(verdict.passing)


def _unanswered(response: dict[str, Any]) -> Verdict:
    """What is said of an answer that cannot be graded: the system failed, or there is none to grade."""
    why = response["error"] or "no answer to judge"
    if response["status"] in FAILED:
        return Verdict("failed", passing=False, feedback=why)
    return Verdict("not_applicable" if response["status"] == "scored" else response["status"], feedback=why)


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


def score_rows(
    system: str, needs: Mapping[str, Collection[str]], items: NightItems, session: Session
) -> tuple[pa.Table, list[str]]:
    """(records.SCORES sorted by metric and example, the models that served the verdicts).

    An example at which the system failed has status `failed` and counts as 0, where the metric applies.

    Args:
        system: its name.
        needs: metric to what it cannot do without.
        items: the night's answers.
        session: holds the verdicts on them.
    """
    served: set[str] = set()
    tables: list[pa.Table] = []
    for metric in sorted(needs):
        rows: list[dict[str, Any]] = []
        judged = session.verdicts((metric, item) for item in items())
        for row, item in items.rows():
            _, _, key, verdict = next(judged) if item is not None else (metric, item, None, None)
            served.update([verdict.served_model] if verdict and verdict.served_model else [])
            about = items.about[row["example_id"]]
            rows.append(score_row(system, metric, about, items.verdict(needs[metric], row, item, verdict), key))
            if len(rows) >= _ROWS:  # Arrow holds a night in a tenth of what Python's rows take
                tables.append(rows_table(rows, SCORES))
                rows.clear()
        tables.append(rows_table(rows, SCORES))
    return (pa.concat_tables(tables).combine_chunks() if tables else rows_table([], SCORES)), sorted(served)
