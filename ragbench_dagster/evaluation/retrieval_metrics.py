"""Retrieval metrics at k, as trec_eval defines them. What a system is belongs in `systems/`.

All are pure functions of ids. With `rel(i)` = 1 where rank i holds a relevant id, R relevant ids and `g` the
grades (1 for binary labels):

    hit_rate@k   1 if any of the first k is relevant
    mrr@k        1 / rank of the first relevant id among the first k, else 0
    precision@k  relevant ids among the first k / k            (k, not the number returned)
    recall@k     relevant ids among the first k / R
    ap@k         sum of precision@i * rel(i) for i <= k, / R   (trec_eval's map_cut)
    ndcg@k       DCG / ideal DCG, gain g (linear, as trec_eval), discount log2(rank + 1)

Ids are compared as text. A retrieved null is a passage without an id: it keeps its rank and matches nothing.
Repeated ids count once, at their first rank. Nothing retrieved is 0; nothing expected is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragbench_dagster.errors import UserError

METRICS = ("hit_rate", "mrr", "precision", "recall", "ap", "ndcg")


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
    """All six metrics of one question at one k, as `{"hit_rate@5": ...}`.

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
        return {f"{name}@{k}": None for name in METRICS}
    top = ranking(retrieved)[:k]
    ranks = [i for i, key in enumerate(top, 1) if key in relevant]
    gains = [max(wanted.get(key, 0.0), 0.0) if key is not None else 0.0 for key in top]
    ideal = sorted((grade for grade in wanted.values() if grade > 0), reverse=True)[:k]
    values = {
        "hit_rate": 1.0 if ranks else 0.0,
        "mrr": 1.0 / ranks[0] if ranks else 0.0,
        "precision": len(ranks) / k,
        "recall": len(ranks) / len(relevant),
        "ap": sum(found / rank for found, rank in enumerate(ranks, 1)) / len(relevant),
        "ndcg": _dcg(gains) / _dcg(ideal),
    }
    return {f"{name}@{k}": values[name] for name in METRICS}


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


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
    totals: dict[str, list[float]] = {f"{name}@{k}": [] for k in cuts for name in METRICS}
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
