"""The night's summary as plain tables for a terminal: `{title, columns, rows}` each."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from ragbench_dagster.number_words import decimal
from ragbench_dagster.reporting.latency import words
from ragbench_dagster.reporting.outages import answer_rows
from ragbench_dagster.reporting.production import asked, production_lines
from ragbench_dagster.store import Workspace, read_json

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
