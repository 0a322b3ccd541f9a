"""The worst cases of a night: scored below everybody else, heaviest first. No text of questions."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from ragbench_dagster.reporting.night import Night

MOST = 20


def worst_rows(night: Night, system: str, limit: int = MOST) -> list[dict[str, Any]]:
    """At most `limit` scored rows with the lowest value, the heaviest first; full marks are never listed."""
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
    keep = pc.and_(pc.equal(table["status"], "scored"), pc.less(table["value"], 1.0))
    for name, wanted in (("system", system), ("metric", metric), ("category", category)):
        if wanted is not None:
            keep = pc.and_(keep, pc.equal(table[name], wanted))
    rows: list[dict[str, Any]] = table.filter(keep).to_pylist()
    rows.sort(key=_order)
    return rows


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    score = row["score"] if row["score"] is not None else 0.0
    return (row["value"], -(row["weight"] or 0.0), score, row["metric"], row["example_id"], row["system"])
