"""The last nights of every system and metric, and where their conditions changed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ragbench_dagster.reporting.night import Night, nights_before
from ragbench_dagster.reporting.production import headline
from ragbench_dagster.settings import is_judged
from ragbench_dagster.store import Workspace, read_json

NIGHTS = 30


def conditions(manifest: dict[str, Any], calibration: dict[str, Any], system: str, metric: str) -> dict[str, Any]:
    """What a figure was made under: a change of any of these is marked."""
    judged = is_judged(metric)
    identity = calibration.get("metrics", {}).get(metric, {}).get("identity", {}) if judged else {}
    return {
        "release": manifest.get("release"),
        "system": manifest.get("systems", {}).get(system),
        "judge": identity.get("judge"),
        "template": identity.get("template_hash"),
    }


def point(day: str, row: dict[str, Any], made_under: dict[str, Any]) -> dict[str, Any]:
    return {
        "day": day,
        "value": row["value"],
        "low": row["low"],
        "high": row["high"],
        "n": row["n"],
        "coverage": row["coverage"],
        "conditions": made_under,
        "marks": [],
    }


def trend(night: Night, systems: dict[str, Any], nights: int = NIGHTS) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """System -> metric -> points, oldest first, tonight last. Marks name what changed since the point before."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {
        name: {
            metric: [
                point(night.day, headline(system, metric), conditions(night.manifest, night.calibration, name, metric))
            ]
            for metric in system["metrics"]
        }
        for name, system in systems.items()
    }
    for day in nights_before(night.ws, night.day)[: nights - 1]:
        summary, manifest, calibration = _read(night.ws, day)
        for name, metrics in found.items():
            for metric, points in metrics.items():
                then = summary.get("systems", {}).get(name, {})
                if metric in then.get("metrics", {}):
                    points.insert(
                        0, point(day, headline(then, metric), conditions(manifest, calibration, name, metric))
                    )
    for metrics in found.values():
        for points in metrics.values():
            for before, after in pairwise(points):
                was, now = before["conditions"], after["conditions"]
                after["marks"] = [name for name in sorted(now) if was[name] != now[name]]
    return found


def _read(ws: Workspace, day: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    folder = ws.night(day)
    summary, manifest, calibration = (
        read_json(folder / f"{name}.json") or {} for name in ("summary", "manifest", "calibration")
    )
    return summary, manifest, calibration
