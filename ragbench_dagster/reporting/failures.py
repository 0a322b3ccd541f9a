"""`ragbench failures`: failing cases with the judge's feedback, from the store alone."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.metrics import Metric, metric_of
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.night_tables import select
from ragbench_dagster.store import Workspace, finite
from ragbench_dagster.text.format import safe_terminal

MOST_TEXT = 2_000  # characters shown of a question, an answer or a feedback


def failing_cases(
    ws: Workspace,
    day: str,
    metric: str | None = None,
    category: str | None = None,
    system: str | None = None,
    limit: int = 20,
) -> list[dict[str, Any]]:
    """The failing cases of a night, worst first; nothing is run.

    Returns:
        `{example_id, system, metric, category, status, score, value, weight, query, response, feedback}` each;
        text is stripped of control characters and workflow commands, and cut at 2,000 characters.

    Raises:
        UserError: no such night, system or metric.
    """
    night = Night.open(ws, day)
    for name, wanted, known in (
        ("system", system, night.systems),
        ("metric", metric, sorted({m for _, m in night.scores})),
    ):
        if wanted is not None and wanted not in known:
            raise UserError(f"--{name} {safe_terminal(wanted)}: not in this night; it has {', '.join(known) or 'none'}")
    rows = select(night, limit, system=system, metric=metric, category=category)
    ids = {row["example_id"] for row in rows}
    queries = _column(night.examples, "query", ids)
    answers = {
        name: _column(night.responses(name, ["example_id", "response"]), "response", ids)
        for name in sorted({row["system"] for row in rows})
    }
    return [
        finite(
            {
                **{k: row[k] for k in ("example_id", "system", "metric", "status", "score", "value", "weight")},
                "category": safe(row["category"]),
                "query": safe(queries.get(row["example_id"])),
                "response": safe(answers[row["system"]].get(row["example_id"])),
                "feedback": safe(row["feedback"]),
            }
        )
        for row in rows
    ]


def safe(text: str | None) -> str | None:
    if text is None:
        return None
    cut = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + " [cut]"
    return safe_terminal(cut)


def _column(table: Any, name: str, ids: set[str]) -> dict[str, str]:
    pairs = zip(table["example_id"].to_pylist(), table[name].to_pylist(), strict=True)
    return {example: value for example, value in pairs if example in ids}


# One hint for each low or failed metric; the hints belong to `metrics`.


def hint(metric: str, metrics: dict[str, Any], failed: bool = False) -> str | None:
    """What to look at for `metric` of one system; None where it is neither low nor failed.

    Args:
        metrics: the system's `metrics` of the summary.
        failed: the gate failed this metric.
    """
    what = metric_of(metric)
    if what.family == "availability":
        return what.hint if failed else None
    value = metrics[metric]["overall"]["value"]
    if value is None:
        return None
    if what.found_by and _far_below_hits(what, value, metrics):
        return what.hint
    if not failed and value >= what.low:
        return None
    worst = worst_category(metrics[metric])
    return what.hint if worst is None else f"{what.hint}; {worst} stands out: are its documents stale or missing?"


def _far_below_hits(metric: Metric, value: float, metrics: dict[str, Any]) -> bool:
    """Found but ranked low: MRR at half the hit rate or less."""
    hits = (row["overall"]["value"] for name, row in metrics.items() if metric_of(name).base == metric.found_by)
    return any(hit is not None and hit >= 0.3 and value <= hit / 2 for hit in hits)


def worst_category(found: dict[str, Any]) -> str | None:
    """The category whose whole interval lies below the overall one's, the lowest of them."""
    low = found["overall"]["low"]
    if low is None:
        return None
    below = [
        (row["value"], row["part"])
        for row in found["slices"]
        if row["dimension"] == "category" and row["high"] is not None and row["high"] < low
    ]
    return f"category {min(below)[1]}" if below else None
