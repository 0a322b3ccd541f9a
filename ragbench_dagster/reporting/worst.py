"""The worst cases of a night: scored below everybody else, heaviest first. No text of questions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.records import COUNTED
from ragbench_dagster.reporting.night import Night

MOST = 20


def worst_rows(night: Night, system: str, limit: int = MOST) -> list[dict[str, Any]]:
    """At most `limit` counted rows with the lowest value, the heaviest first; full marks are never listed."""
    rows = select(night, system)
    return [
        {k: row[k] for k in ("example_id", "metric", "category", "score", "value", "weight", "status", "feedback")}
        for row in rows[:limit]
    ]


def select(
    night: Night, system: str | None = None, metric: str | None = None, category: str | None = None
) -> list[dict[str, Any]]:
    """Failing rows of the score table, worst first: value, then weight, then score, then id."""
    table = night.table
    counts = pc.is_in(table["status"], pa.array(COUNTED))
    keep = pc.and_(counts, pc.less(table["value"], 1.0))
    for name, wanted in (("system", system), ("metric", metric), ("category", category)):
        if wanted is not None:
            keep = pc.and_(keep, pc.equal(table[name], wanted))
    rows: list[dict[str, Any]] = table.filter(keep).to_pylist()
    rows.sort(key=_order)
    for row in rows:
        row["feedback"] = row["feedback"] or why(row["metric"], row["value"])
    return rows


def why(metric: str, value: float) -> str | None:
    """What a low retrieval score means; judge metrics bring their own feedback."""
    base, _, k = metric.partition("@")
    if not k:
        return None
    if base == "precision":
        return f"{value:.0%} of the first {k} are expected"
    if value == 0:
        return f"no expected document among the first {k}"
    if base == "mrr":
        return f"the first expected document stands at rank {round(1 / value)}"
    return f"{base} of the first {k} is {value:.2f}"


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    score = row["score"] if row["score"] is not None else 0.0
    return (row["value"], -(row["weight"] or 0.0), score, row["metric"], row["example_id"], row["system"])
