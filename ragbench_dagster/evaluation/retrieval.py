"""Retrieval metrics of a system's stored answers against a release's labels, and what makes them meaningless.

Re-chunking changes every id: labels then name ids that nothing has, and every metric would read 0.0 as if the
system had failed. Such labels are `not_applicable` (unknown is not zero). How they are told:

* the corpus has some of the labels' ids: a label is unknown where neither the corpus nor the system has any of
  its ids, and a system none of whose ids is in the corpus or the labels returns ids of another kind;
* it has none, or there is no corpus: only if the system returned none of the labels' ids to any question are
  they unknown, all of them. One label alone cannot be told from a passage that the system always misses.

Only the corpus and the system's own answers decide, so that the order in which systems ran changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.retrieval_metrics import METRICS, metrics_at_k, stage_retrieval
from ragbench_dagster.records import SCORES
from ragbench_dagster.store import rows_table

__all__ = ["k_warnings", "metrics_at_k", "score_retrieval", "stage_retrieval", "unknown_labels"]

_COLUMNS = [
    "example_id", "category", "weight", "conflict", "synthetic", "expected_doc_ids", "expected_grades",
]  # fmt: skip


class HasExamples(Protocol):
    """What is read of a dataset.Release."""

    @property
    def examples(self) -> pa.Table: ...


def score_retrieval(
    responses: pa.Table,
    release: HasExamples,
    metrics: Sequence[str],
    system: str = "",
    corpus_ids: Collection[str] = frozenset(),
) -> pa.Table:
    """One row per example and metric (records.SCORES), sorted by metric and example_id.

    Args:
        responses: records.RESPONSES of the system.
        release: its examples carry the labels.
        metrics: names with an explicit k, such as `hit_rate@5`; others are passed over.
        system: the system's name, for the column.
        corpus_ids: the ids of the corpus; empty where there is none.

    Raises:
        UserError: a label that cannot be read.
    """
    wanted = [metric for metric in metrics if metric.partition("@")[0] in METRICS and "@" in metric]
    ks = sorted({int(metric.partition("@")[2]) for metric in wanted})
    answers = {
        row["example_id"]: row for row in responses.select(["example_id", "status", "retrieved_ids"]).to_pylist()
    }
    examples = release.examples.select(_COLUMNS).to_pylist()
    unknown = unknown_labels(examples, answers.values(), corpus_ids)
    rows: list[dict[str, Any]] = []
    for example in examples:
        answer = answers.get(example["example_id"])
        values, status, why = _values(example, answer, ks, example["example_id"] in unknown)
        rows += [_row(system, metric, example, status, values.get(metric), why) for metric in wanted]
    rows.sort(key=lambda row: (row["metric"], row["example_id"]))
    return rows_table(rows, SCORES)


def _values(
    example: dict[str, Any], answer: dict[str, Any] | None, ks: Sequence[int], unknown: bool
) -> tuple[dict[str, float | None], str, str]:
    """(values, status, why) of one example; values are empty unless the status is `scored`."""
    if not example["expected_doc_ids"]:
        return {}, "not_applicable", "no expected ids"
    if unknown:
        return {}, "not_applicable", "the label's ids are in neither the corpus nor the system"
    if answer is None:
        return {}, "not_applicable", "not asked"
    if answer["status"] != "scored":
        return {}, answer["status"], "the system gave no answer"
    values: dict[str, float | None] = {}
    for k in ks:
        try:
            values |= metrics_at_k(
                example["expected_doc_ids"], answer["retrieved_ids"] or [], k, example["expected_grades"]
            )
        except ValueError as fault:
            raise UserError(f"labels: example {example['example_id']}: {fault}") from fault
    if all(value is None for value in values.values()):
        return {}, "not_applicable", "no expected id has a grade of 1 or more"
    return values, "scored", ""


def _row(
    system: str, metric: str, example: dict[str, Any], status: str, value: float | None, why: str
) -> dict[str, Any]:
    return {
        "system": system,
        "metric": metric,
        "example_id": example["example_id"],
        "status": status,
        "score": value,
        "passing": None,
        "value": value,
        "weight": example["weight"],
        "category": example["category"],
        "in_gate": not (example["conflict"] or example["synthetic"]),
        "feedback": why,
        "key": None,
    }


def unknown_labels(
    examples: Collection[dict[str, Any]], answers: Collection[dict[str, Any]], corpus_ids: Collection[str]
) -> set[str]:
    """example_id of every label that no ranking could meet, by the rule above."""
    labelled = {row["example_id"]: set(row["expected_doc_ids"]) for row in examples if row["expected_doc_ids"]}
    returned = {i for row in answers for i in row["retrieved_ids"] or [] if i is not None}
    corpus = set(corpus_ids)
    named = set().union(*labelled.values())
    if corpus & named:
        if returned and not returned & (corpus | named):
            return set(labelled)
        known = corpus | returned
        return {name for name, ids in labelled.items() if not ids & known}
    if returned & named or not (corpus or returned):
        return set()
    return set(labelled)


def k_warnings(responses: pa.Table, metrics: Sequence[str]) -> list[str]:
    """One line for each k that is larger than any list the system returned.

    Args:
        responses: records.RESPONSES of the system.
        metrics: names with an explicit k; others are passed over.
    """
    longest = max((len(ids or []) for ids in responses["retrieved_ids"].to_pylist()), default=0)
    if longest == 0:
        return []
    return [
        f"{metric}: the system returned at most {longest} ids, so a k above {longest} measures nothing more"
        for metric in metrics
        if metric.partition("@")[2].isdigit() and int(metric.partition("@")[2]) > longest
    ]
