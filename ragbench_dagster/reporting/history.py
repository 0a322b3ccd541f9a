"""Every night of the store in one table, and the best value a metric ever had. Reads only.

Nights made under different conditions (release, judge, template) stand side by side here without being ranked as
one experiment: each row carries its conditions, so that the reader sees what else changed.
"""

from __future__ import annotations

from typing import Any

from ragbench_dagster.metrics import metric_of
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.store import Workspace


def nights(ws: Workspace) -> list[str]:
    """Days of the store that have a finished summary, oldest first."""
    folder = ws.night("x").parent
    return sorted(p.parent.name for p in folder.glob("????-??-??/summary.json"))


def history_rows(ws: Workspace, best: str | None = None) -> list[dict[str, Any]]:
    """One row for each night and system, newest first; with `best`, the metric's values, best first.

    Args:
        best: a metric's name as in `run --json` (`answer_relevancy`, `hit_rate@5`, `latency_p95_ms`).

    Returns:
        Rows with equal keys. With `best`: value, interval, n, and under which system version, judge, template,
        release and code it was reached; ties go to the older night. Empty where no night has the metric.
    """
    found = [(day, name, figures) for day in nights(ws) for name, figures in _systems(ws, day)]
    if best is not None:
        return _best(ws, found, best)
    columns = list(dict.fromkeys(metric for _, _, figures in found for metric in figures))
    rows = []
    for day, name, figures in reversed(found):
        conditions = _conditions(ws, day)
        row = {"date": day, "system": name, "gate": conditions["gate"]}
        row |= {metric: _value(figures.get(metric)) for metric in columns}
        rows.append(row | {"release": conditions["release"], "judge": conditions["judge"]})
    return rows


def _systems(ws: Workspace, day: str) -> list[tuple[str, dict[str, Any]]]:
    from ragbench_dagster.reporting.summary import summary_for_json

    return sorted(summary_for_json(ws, day)["systems"].items())


def _value(figure: Any) -> Any:
    return figure.get("value") if isinstance(figure, dict) else figure


def _best(ws: Workspace, found: list[tuple[str, str, dict[str, Any]]], metric: str) -> list[dict[str, Any]]:
    rows = []
    for day, name, figures in found:
        figure = figures.get(metric)
        value = _value(figure)
        if value is None:
            continue
        facts = figure if isinstance(figure, dict) else {}
        conditions = _conditions(ws, day)
        rows.append(
            {
                "date": day,
                "system": name,
                "metric": metric,
                "value": value,
                **{key: facts.get(key) for key in ("low", "high", "n", "coverage")},
                "system_version": conditions["systems"].get(name),
                "judge": conditions["judge"],
                "template": conditions["templates"].get(metric),
                "release": conditions["release"],
                "code_version": conditions["code_version"],
                "gate": conditions["gate"],
            }
        )
    sign = -1 if metric_of(metric).higher_is_better else 1
    return sorted(rows, key=lambda r: (sign * r["value"], r["date"], r["system"]))


def _conditions(ws: Workspace, day: str) -> dict[str, Any]:
    manifest = ws.result(day, Manifest) or Manifest(release="")
    gate = ws.result(day, GateDecision)
    return {
        "release": manifest.release,
        "systems": manifest.systems,
        "judge": manifest.judge_model,
        "templates": manifest.templates,
        "code_version": manifest.code_version,
        "gate": gate.verdict if gate else None,
    }
