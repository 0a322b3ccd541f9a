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

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ragbench_dagster.errors import UserError
from ragbench_dagster.metrics import Hits, formulas, metric_of
from ragbench_dagster.records import FAILED, SCORES
from ragbench_dagster.store import rows_table

# Retrieval metrics at k are pure functions of ids; their formulas belong to `metrics`. What a system is belongs in
# `systems/`. Ids are compared as text. A retrieved null is a passage without an id: it keeps its rank and matches nothing.
# Repeated ids count once, at their first rank. Nothing retrieved is 0; nothing expected is None.


def as_id(value: Any) -> str | None:
    """An id as text; None for a passage without one (null or blank).

    Raises:
        ValueError: the value is a list or an object, which is no id.
    """
    if value is None:
        return None
    if isinstance(value, Mapping | list | tuple | set):
        raise ValueError("an id is text or a number")
    text = value if isinstance(value, str) else str(value)
    return text if text.strip() else None


def expected_grades(expected: Any, grades: Sequence[float | None] | None = None) -> dict[str, float]:
    """The expected ids with their grades (1 where none is given).

    Args:
        expected: ids; or `{id, grade}` objects; or a mapping of id to grade; None for an unlabelled question.
        grades: grades beside a list of ids.

    Raises:
        ValueError: a null among the ids, or a grade that is no finite number.
    """
    if expected is None:
        return {}
    if isinstance(expected, str | int | float):
        raise ValueError("expected must be a list of ids")
    if isinstance(expected, Mapping):
        pairs: list[tuple[Any, Any]] = list(expected.items())
    else:
        listed = list(expected)
        beside = list(grades) if grades is not None else [None] * len(listed)
        if len(beside) != len(listed):
            raise ValueError(f"{len(listed)} expected ids and {len(beside)} grades")
        pairs = [
            (e.get("id"), e.get("grade", 1)) if isinstance(e, Mapping) else (e, 1 if g is None else g)
            for e, g in zip(listed, beside, strict=True)
        ]
    found: dict[str, float] = {}
    for raw, grade in pairs:
        key = as_id(raw)
        if key is None:
            raise ValueError("expected holds a null, which can match nothing; remove it")
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not math.isfinite(grade):
            raise ValueError("a grade is a finite number")
        found.setdefault(key, float(grade))
    return found


def ranking(retrieved: Iterable[Any]) -> list[str | None]:
    """Retrieved ids as text, repeats dropped (keep first); nulls keep their ranks."""
    seen: set[str] = set()
    out: list[str | None] = []
    for raw in retrieved:
        key = as_id(raw)
        if key is not None:
            if key in seen:
                continue
            seen.add(key)
        out.append(key)
    return out


def metrics_at_k(
    expected: Any, retrieved: Iterable[Any], k: int, grades: Sequence[float | None] | None = None
) -> dict[str, float | None]:
    """All retrieval metrics of one question at one k, as `{"hit_rate@5": ...}`.

    Args:
        expected: the relevant ids, see `expected_grades`; none that is relevant (grade >= 1): not applicable.
        retrieved: ids in rank order.
        k: ranks looked at, 1 or more.
        grades: grades beside `expected`; NDCG uses them, the others count a grade of 1 or more as relevant.

    Returns:
        Metric to value; every value is None where nothing is expected.

    Raises:
        ValueError: k below 1, or ids or grades that cannot be read.
    """
    if k < 1:
        raise ValueError("k is 1 or more")
    wanted = expected_grades(expected, grades)
    relevant = {key for key, grade in wanted.items() if grade >= 1}
    if not relevant:
        return {f"{base}@{k}": None for base, _ in formulas()}
    top = ranking(retrieved)[:k]
    ranks = [i for i, key in enumerate(top, 1) if key in relevant]
    gains = [max(wanted.get(key, 0.0), 0.0) if key is not None else 0.0 for key in top]
    ideal = sorted((grade for grade in wanted.values() if grade > 0), reverse=True)[:k]
    hits = Hits(ranks, len(relevant), gains, ideal, k)
    return {f"{base}@{k}": formula(hits) for base, formula in formulas()}


def stage_retrieval(rows: Iterable[Mapping[str, Any]], ks: Sequence[int], summary: bool) -> Iterator[dict[str, Any]]:
    """The filter `ragbench stage retrieval`: `{query_id, expected, retrieved}` -> the row with its metrics.

    Args:
        rows: decoded JSON Lines; `expected` may hold `{id, grade}` objects, or be a mapping of id to grade.
        ks: the ranks to cut at.
        summary: yield one object instead: per metric `{mean, n, not_applicable}`, and `queries`.

    Raises:
        UserError: a row that cannot be read; the line names it.
    """
    cuts = sorted(set(ks))
    totals: dict[str, list[float]] = {f"{base}@{k}": [] for k in cuts for base, _ in formulas()}
    count = 0
    for count, row in enumerate(rows, 1):
        values = _row_metrics(row, cuts, count)
        if not summary:
            yield {**row, **values}
            continue
        for name, value in values.items():
            if value is not None:
                totals[name].append(value)
    if summary:
        means: dict[str, Any] = {
            name: {
                "mean": math.fsum(found) / len(found) if found else None,
                "n": len(found),
                "not_applicable": count - len(found),
            }
            for name, found in totals.items()
        }
        yield {"queries": count, **means}


def _row_metrics(row: Mapping[str, Any], ks: Sequence[int], number: int) -> dict[str, float | None]:
    if not isinstance(row, Mapping):
        raise UserError(f"row {number}: must be an object with query_id, expected and retrieved")
    retrieved = row.get("retrieved")
    if not isinstance(retrieved, list | tuple):
        raise UserError(f"row {number}: retrieved must be a list of ids; write [] where nothing was retrieved")
    values: dict[str, float | None] = {}
    for k in ks:
        try:
            values.update(metrics_at_k(row.get("expected"), retrieved, k, row.get("grades")))
        except (ValueError, TypeError) as fault:
            raise UserError(f"row {number}: {fault}") from fault
    return values


# Retrieval metrics of a system's stored answers against a release's labels, and what makes them meaningless.

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
    wanted = [metric.name for metric in map(metric_of, metrics) if metric.k is not None]
    ks = sorted({metric.k for metric in map(metric_of, wanted) if metric.k is not None})
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
    wanted = [metric for metric in map(metric_of, metrics) if metric.k is not None]
    why = silence(responses.select(["status", "retrieved_ids"]).to_pylist()) if wanted else ""
    if why:
        return [f"{why}: {', '.join(metric.name for metric in wanted)} do not apply to it"]
    longest = max((len(ids or []) for ids in responses["retrieved_ids"].to_pylist()), default=0)
    if longest == 0:
        return []
    return [
        f"{metric.name}: the system returned at most {longest} ids, so a k above {longest} measures nothing more"
        for metric in wanted
        if metric.k is not None and metric.k > longest
    ]
