"""The night's summary as plain tables for a terminal: `{title, columns, rows}` each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.errors import UserError
from ragbench_dagster.records import COUNTED
from ragbench_dagster.reporting.gate.guards import answer_rows
from ragbench_dagster.reporting.gate.production import asked, headline, production_lines
from ragbench_dagster.reporting.latency import words
from ragbench_dagster.reporting.night_results import Mask, Night, Scores, nights_before
from ragbench_dagster.settings import is_judged
from ragbench_dagster.store import Workspace, read_json
from ragbench_dagster.text.format import decimal

NIGHTS = 7
FAILED = ["system", "answered at first", "answered when asked again", "still missing", "errors in time"]
PARTS = 12  # categories shown, the most harmful first


def summary_tables(ws: Workspace, day: str) -> list[dict[str, Any]]:
    """Production, overall, by category, by status, failures, latency, judge, change, worst cases, trend, pairs; empty ones left out."""
    summary = read_json(ws.night(day) / "summary.json") or {}
    systems: dict[str, Any] = summary.get("systems", {})
    compared = asked(systems)
    found = [
        _table(
            "Production, by the logged answers of its own requests",
            ["system", "metric", "figure"],
            [list(line) for line in production_lines(systems)],
        ),
        _overall(compared),
        _categories(compared),
        _status(systems),
        _table("Questions that failed when first asked", FAILED, answer_rows(systems)),
        _latency(systems),
        _judges(summary),
        _changes(compared),
        _pairs(summary),
        _worst(systems),
        _trend(summary),
    ]
    return [table for table in found if table["rows"]]


def _table(title: str, columns: list[str], rows: list[list[Any]]) -> dict[str, Any]:
    return {"title": title, "columns": columns, "rows": rows}


def _figures(systems: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(name, metric, m) for name, s in systems.items() for metric, m in s["metrics"].items()]


def _band(row: dict[str, Any] | None) -> str | None:
    """`0.913 [0.880, 0.938]`, None where unknown."""
    if row is None or row.get("value") is None:
        return None
    if row.get("low") is None or row.get("high") is None:
        return decimal(row["value"])
    return f"{decimal(row['value'])} [{decimal(row['low'])}, {decimal(row['high'])}]"


def _signed(delta: dict[str, Any]) -> str | None:
    if delta.get("value") is None:
        return None
    if delta["low"] is None or delta["high"] is None:
        return decimal(delta["value"], signed=True)
    return "{} [{}, {}]".format(*(decimal(delta[key], signed=True) for key in ("value", "low", "high")))


def _overall(systems: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for name, metric, m in _figures(systems):
        row = m["overall"]
        fix, delta = row["corrected"] or {}, row["delta"] or {}
        shown = _band(fix) or ("–" if not fix else f"none: {fix['reason']}")
        traffic = _band(row["per_request"])
        rows.append([name, metric, _band(row), row["n"], row["coverage"], traffic, shown, _signed(delta)])
    columns = ["system", "metric", "per question, 95 %", "n", "coverage", "per request, 95 %", "corrected for the judge",
               "change, paired"]  # fmt: skip
    return _table("Scores", columns, rows)


def _categories(systems: dict[str, Any]) -> dict[str, Any]:
    """The parts that cost most (rows times shortfall), each system's worst in turn."""
    found: dict[str, list[tuple[float, list[Any]]]] = {name: [] for name in systems}
    for name, metric, m in _figures(systems):
        for row in m["slices"]:
            if row["dimension"] == "category" and row["value"] is not None:
                cells = [name, metric, row["part"], _band(row), row["n"], row["coverage"]]
                found[name].append((-(1 - row["value"]) * row["n"], cells))
    rows = _in_turn([[cells for _, cells in sorted(own, key=lambda r: (r[0], r[1][:3]))] for own in found.values()])
    title = f"By category, the most harmful {PARTS}" if len(rows) > PARTS else "By category"
    return _table(title, ["system", "metric", "category", "value, 95 %", "n", "coverage"], rows[:PARTS])


def _in_turn(lists: list[list[list[Any]]]) -> list[list[Any]]:
    """The first of every list, then the second, ..., so that none crowds out the others."""
    return [row for place in zip_longest(*lists) for row in place if row is not None]


def _status(systems: dict[str, Any]) -> dict[str, Any]:
    names = sorted({s for _, _, m in _figures(systems) for s in m["overall"]["statuses"]})
    rows = [[n, metric, *(m["overall"]["statuses"].get(s, 0) for s in names)] for n, metric, m in _figures(systems)]
    return _table("By status", ["system", "metric", *names], rows)


def _latency(systems: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for name, system in systems.items():
        times = system["latency"]
        if times["n"]:
            rows.append([name, *(words(times[f"p{q}_ms"]) for q in (50, 95, 99)), times["mean_ms"], times["n"]])
    return _table("Latency of the system itself, ms", ["system", "p50", "p95", "p99", "mean", "n"], rows)


def _judges(summary: dict[str, Any]) -> dict[str, Any]:
    columns = ["metric", "labelled", "kappa, 95 %", "people's own kappa", "balanced accuracy", "drift",
               "probes that fooled it", "usable"]  # fmt: skip
    rows = [
        [metric, n, _band({"value": kappa, "low": low, "high": high}), people, balanced, drift, fooled, usable]
        for metric, n, kappa, balanced, drift, fooled, usable, people, low, high in summary.get("judges", [])
    ]
    return _table("The judge against people", columns, rows)


def _changes(systems: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for name, metric, m in _figures(systems):
        if found := m["change"]:
            rows.append([name, metric, found["baseline"], found["total"],
                         *(_band(found.get(part)) for part in ("judge", "system", "dataset", "unscored"))])  # fmt: skip
    columns = ["system", "metric", "since", "change", "judge", "system's part", "dataset", "not scored on both"]
    return _table("What changed", columns, rows)


def _pairs(summary: dict[str, Any]) -> dict[str, Any]:
    rows = [
        [f"{p['candidate']} against {p['baseline']}", p["n"], p["wins"], p["ties"], p["losses"], _band(p["win_share"]),
         p["position_bias"]]
        for p in summary.get("pairwise", {}).get("pairs", [])
    ]  # fmt: skip
    columns = ["pair", "n", "win", "tie", "loss", "win share, ties half", "position bias"]
    return _table("Side by side", columns, rows)


def _worst(systems: dict[str, Any]) -> dict[str, Any]:
    keys = ("example_id", "metric", "category", "score", "weight")
    rows = _in_turn(
        [
            [[name, *(w[k] for k in keys), (w["feedback"] or "")[:160]] for w in system["worst"]]
            for name, system in systems.items()
        ]
    )
    columns = ["system", "example", "metric", "category", "score", "weight", "why"]
    return _table("Worst cases", columns, rows[:20])


def _trend(summary: dict[str, Any]) -> dict[str, Any]:
    trend: dict[str, Any] = summary.get("trend", {})
    days = sorted({p["day"] for metrics in trend.values() for points in metrics.values() for p in points})[-NIGHTS:]
    if len(days) < 2:
        return _table("", [], [])
    rows = []
    for name, metrics in trend.items():
        for metric, points in metrics.items():
            at = {p["day"]: p for p in points}
            cells = [_point(at.get(day)) for day in days]
            rows.append([name, metric, *cells])
    return _table("Last nights (* release, system, judge or template changed)", ["system", "metric", *days], rows)


def _point(found: dict[str, Any] | None) -> str | None:
    if found is None or found["value"] is None:
        return None
    return decimal(found["value"]) + ("*" if found["marks"] else "")


# The last nights of every system and metric, and where their conditions changed.

TREND_NIGHTS = 30


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


def trend(
    night: Night, systems: dict[str, Any], nights: int = TREND_NIGHTS
) -> dict[str, dict[str, list[dict[str, Any]]]]:
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


# The worst cases of a night: scored below everybody else, heaviest first. No text of questions.

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


# The parts that figures are shown for: categories, columns that the user names, new and known questions.

OVERALL = "overall"
AGE = "age"  # "new": first asked in the last seven days of the window
MOST_PARTS = 50  # of a dimension; the smallest are shown together
REST = "(all others)"
NONE = "(none)"


def dimensions(night: Night) -> dict[str, dict[str, str]]:
    """Dimension -> example_id -> part, for the settings' `slices` and the age of a question.

    Raises:
        UserError: `slices` names a column that the release lacks.
    """
    table = night.examples
    ids = table["example_id"].to_pylist()
    found: dict[str, dict[str, str]] = {}
    for name in night.ws.settings.slices:
        if name not in table.column_names:
            known = ", ".join(c for c in table.column_names if c not in ("example_id", "query", "history"))
            raise UserError(f"ragbench.yaml: slices: the release has no column {name!r}; it has {known}")
        found[name] = _parts(ids, table[name].to_pylist())
    first = table["first_day"].to_pylist()
    last = [d for d in table["last_day"].to_pylist() if d is not None]
    if last:
        edge: date = max(last) - timedelta(days=6)
        ages = ["known" if d is not None and d < edge else "new" for d in first]
        if len(set(ages)) > 1:
            found[AGE] = dict(zip(ids, ages, strict=True))
    return found


def _parts(ids: list[str], values: list[Any]) -> dict[str, str]:
    names = [NONE if v is None or v == "" else str(v) for v in values]
    kept = {name for name, _ in sorted(Counter(names).items(), key=lambda c: (-c[1], c[0]))[:MOST_PARTS]}
    return {i: name if name in kept else REST for i, name in zip(ids, names, strict=True)}


def parts(scores: Scores, dims: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, Mask]]:
    """(dimension, part, mask) over the rows of `scores`, the whole first, then by name."""
    yield OVERALL, OVERALL, np.ones(len(scores.ids), dtype=bool)
    for dimension, of in dims.items():
        own = np.array([of.get(i, NONE) for i in scores.ids.tolist()], dtype=object)
        for part in sorted(set(own.tolist())):
            yield dimension, part, own == part
