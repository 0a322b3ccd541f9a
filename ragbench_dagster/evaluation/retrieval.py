"""Retrieval metrics of a system's stored answers against a release's labels, and what makes them meaningless.

Re-chunking changes every id: labels then name ids that nothing has, and every metric would read 0.0 as if the
system had failed. Such labels are `not_applicable` (unknown is not zero). How they are told:

* the corpus has some of the labels' ids: a label is unknown where neither the corpus nor the system has any of
  its ids, and a system none of whose ids is in the corpus or the labels returns ids of another kind;
* it has none, or there is no corpus: only if the system returned none of the labels' ids to any question are
  they unknown, all of them. One label alone cannot be told from a passage that the system always misses.

Only the corpus and the system's own answers decide, so that the order in which systems ran changes nothing.

A system that returns no passage with an id for any question does not retrieve, or does not tell what: no ranking of
its can be right or wrong. One that returns passages for some questions is 0 where it returns none. All this is asked
before the status of an answer: a failure counts only where the metric applies.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.retrieval_metrics import METRICS, as_id, expected_grades, metrics_at_k, stage_retrieval
from ragbench_dagster.records import FAILED, SCORES
from ragbench_dagster.store import rows_table

__all__ = ["k_warnings", "metrics_at_k", "score_retrieval", "stage_retrieval", "unknown_labels"]

_ANSWER = ["example_id", "status", "retrieved_ids", "error"]
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
    answers = {row["example_id"]: row for row in responses.select(_ANSWER).to_pylist()}
    examples = release.examples.select(_COLUMNS).to_pylist()
    unknown = unknown_labels(examples, answers.values(), corpus_ids)
    silent = silence(answers.values())
    rows: list[dict[str, Any]] = []
    for example in examples:
        answer = answers.get(example["example_id"])
        why = _inapplicable(example, example["example_id"] in unknown) or silent
        values, status, why = ({}, "not_applicable", why) if why else _values(example, answer, ks)
        rows += [_row(system, metric, example, status, values.get(metric), why) for metric in wanted]
    rows.sort(key=lambda row: (row["metric"], row["example_id"]))
    return rows_table(rows, SCORES)


def _inapplicable(example: dict[str, Any], unknown: bool) -> str:
    """Why no answer to the question could be scored; "" where one could."""
    if not example["expected_doc_ids"]:
        return "no expected ids"
    try:
        grades = expected_grades(example["expected_doc_ids"], example["expected_grades"])
    except ValueError as fault:
        raise UserError(f"labels: example {example['example_id']}: {fault}") from fault
    if not any(grade >= 1 for grade in grades.values()):
        return "no expected id has a grade of 1 or more"
    return "the label's ids are in neither the corpus nor the system" if unknown else ""


def _values(
    example: dict[str, Any], answer: dict[str, Any] | None, ks: Sequence[int]
) -> tuple[dict[str, float | None], str, str]:
    """(values, status, why) of an example that the metrics apply to; values are empty unless it is `scored`."""
    if answer is None:
        return {}, "not_applicable", "not asked"
    failed = answer["status"] in FAILED
    if answer["status"] != "scored" and not failed:
        return {}, answer["status"], "the system gave no answer"
    retrieved = [] if failed else answer["retrieved_ids"] or []  # a failed system retrieved nothing
    values: dict[str, float | None] = {}
    for k in ks:
        values |= metrics_at_k(example["expected_doc_ids"], retrieved, k, example["expected_grades"])
    return (values, "failed", answer["error"] or "the system failed") if failed else (values, "scored", "")


def silence(answers: Collection[dict[str, Any]]) -> str:
    """Why no answer of the system can be scored: it tells no id of any passage. "" where it does, or never answered."""
    answered = [row["retrieved_ids"] or [] for row in answers if row["status"] == "scored"]
    if not answered or any(as_id(name) is not None for ids in answered for name in ids):
        return ""
    return "the system returned no id with any passage" if any(answered) else "the system returned no passages at all"


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
    """One line for each k that is larger than any list the system returned; one where it returned nothing at all.

    Args:
        responses: records.RESPONSES of the system.
        metrics: names with an explicit k; others are passed over.
    """
    wanted = [metric for metric in metrics if metric.partition("@")[2].isdigit()]
    why = silence(responses.select(["status", "retrieved_ids"]).to_pylist()) if wanted else ""
    if why:
        return [f"{why}: {', '.join(wanted)} do not apply to it"]
    longest = max((len(ids or []) for ids in responses["retrieved_ids"].to_pylist()), default=0)
    if longest == 0:
        return []
    return [
        f"{metric}: the system returned at most {longest} ids, so a k above {longest} measures nothing more"
        for metric in wanted
        if int(metric.partition("@")[2]) > longest
    ]
