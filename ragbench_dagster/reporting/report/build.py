"""From the store's files to the view of a night. A missing part becomes a sentence, never an error."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from ragbench_dagster.reporting.night import Night
from ragbench_dagster.reporting.report import cases, judges, standings
from ragbench_dagster.reporting.report.charts import Point, trend_svg
from ragbench_dagster.reporting.report.text import flat, number
from ragbench_dagster.reporting.report.view import Card, Chart, Gate, NightView, Table
from ragbench_dagster.store import Workspace, read_json

TREND_BYTES = 450_000  # of all trend charts with their tables
MOST_TESTS = 200
LETTERS = {"release": "R", "system": "S", "judge": "J", "template": "T"}
SAYS = {
    "pass": "This night is fine: every primary test clears its limit.",
    "fail": "This night is worse than it may be.",
    "inconclusive": "This night could not be decided: the reasons say what would.",
    "none": "No gate has decided this night.",
}


def night_view(ws: Workspace, day: str) -> NightView:
    """Everything on the page of the night `day`.

    Raises:
        UserError: no such night, or a damaged file.
    """
    night = Night.open(ws, day)
    manifest = night.manifest
    summary = read_json(night.folder / "summary.json") or {}
    gate = read_json(night.folder / "gate.json") or {}
    table = night.table if (night.folder / "scores.parquet").exists() else None
    failing = cases.failing_counts(table) if table is not None else {}
    embedded = _embedded(manifest)
    found = standings.cards(summary, gate, manifest.get("metrics") or [], failing, embedded)
    slices, left = standings.worst_slices(summary, gate)
    trends, note = _trends(summary, found)
    judged = any("@" not in m for m in manifest.get("metrics") or [])
    return NightView(
        day=day,
        workspace=flat(ws.root.name, 60),
        gate=_gate(gate),
        release=flat(manifest.get("release") or "none", 120),
        examples=manifest.get("examples"),
        sample=manifest.get("sample"),
        judge=flat(manifest.get("judge_label") or "none", 300),
        weak_judge=judged and any(embedded.values()),
        systems=sorted(manifest.get("systems") or {}),
        warnings=[flat(w, 300) for w in manifest.get("warnings") or []],
        cards=found,
        trends=trends,
        trend_note=note,
        slices=slices,
        slices_left=left,
        judges=judges.judge_rows(night.calibration, embedded),
        judge_note=flat((summary.get("drift") or {}).get("line") or "", 400),
        latencies=judges.latencies(summary),
        splits=standings.splits(summary),
        leaderboard=(read_json(night.folder / "leaderboard.json") or {}).get("rows", []),
        pairwise=_pairwise((summary.get("pairwise") or {}).get("pairs") or []),
        cases=cases.worst_cases(night) if table is not None else cases.Cases([], 0),
        conditions=_conditions(manifest),
        command=f"ragbench reproduce {day}" + (f" --sample {ws.sample}" if ws.sample else ""),
    )


def _gate(gate: dict[str, Any]) -> Gate:
    verdict = gate.get("verdict") or "none"
    tests = [{k: flat(v, 200) if isinstance(v, str) else v for k, v in t.items()} for t in gate.get("rows") or []]
    return Gate(
        verdict,
        SAYS[verdict],
        [flat(r, 500) for r in gate.get("reasons") or []],
        [flat(n, 500) for n in gate.get("notes") or []],
        tests[:MOST_TESTS],
    )


def _embedded(manifest: dict[str, Any]) -> dict[str, bool]:
    """Metric -> graded by the embedded judge, with the overrides of `judge.metrics`."""
    judge = manifest.get("judge") or {}
    own, evaluators = judge.get("metrics") or {}, judge.get("evaluators") or {}
    return {
        metric: metric not in evaluators
        and (own.get(metric) or {}).get("provider", judge.get("provider", "embedded")) == "embedded"
        for metric in manifest.get("metrics") or []
        if "@" not in metric
    }


def _trends(summary: dict[str, Any], found: list[Card]) -> tuple[list[Chart], str]:
    """A chart for each metric with two nights or more, and a sentence where there is none."""
    trend = summary.get("trend") or {}
    series = list(trend)
    charts: list[Chart] = []
    for card in found:
        own = {name: points[card.metric] for name, points in trend.items() if points.get(card.metric)}
        nights = {p["day"] for points in own.values() for p in points if p["value"] is not None}
        if len(nights) > 1:
            charts.append(_trend(len(charts), card, own, series))
    if not charts:
        return [], "The trend begins with the second night: so far there is one with scores, or none."
    sizes = list(accumulate(len(c.svg) + 110 * len(c.rows) for c in charts))
    kept = sum(size <= TREND_BYTES for size in sizes)
    return charts[:kept], f"{len(charts) - kept} more metrics are in summary.json." if kept < len(charts) else ""


def _trend(place: int, card: Card, own: dict[str, list[dict[str, Any]]], series: list[str]) -> Chart:
    points, marks, rows = [], dict[str, set[str]](), []
    for name, nights in own.items():
        for p in nights:
            points.append(Point(name, p["day"], p["value"], p["low"], p["high"]))
            marks.setdefault(p["day"], set()).update(LETTERS.get(m, "?") for m in p["marks"])
            changed = ", ".join(p["marks"])
            rows.append([p["day"], name, p["value"], p["low"], p["high"], p["n"], changed])
    letters = [(day, "".join(sorted(m))) for day, m in sorted(marks.items()) if m]
    floors = {s.floor for s in card.standings if s.floor is not None}
    svg = trend_svg(points, series, letters, min(floors) if floors else None)
    says = f"{card.title} over {len({p.night for p in points})} nights. " + " ".join(
        _trend_says(name, nights) for name, nights in own.items()
    )
    columns = ["night", "system", "value", "low", "high", "n", "changed"]
    return Chart(
        f"trend-{place}", card.title, svg, says, columns, sorted(rows, key=lambda r: (r[0], r[1]), reverse=True)
    )


def _trend_says(name: str, nights: list[dict[str, Any]]) -> str:
    known = [p for p in nights if p["value"] is not None]
    if not known:
        return f"{name}: no value."
    values = [p["value"] for p in known]
    return (
        f"{name}: {number(values[0])} on {known[0]['day']}, {number(values[-1])} on {known[-1]['day']}, "
        f"between {number(min(values))} and {number(max(values))}."
    )


def _pairwise(rows: list[dict[str, Any]]) -> Table:
    """Whatever the pairwise results hold, flattened: nested figures as `value [low, high]`."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return Table([c.replace("_", " ") for c in columns], [[_plain(row.get(c)) for c in columns] for row in rows])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if "value" in value:
            return f"{number(value['value'])} [{number(value.get('low'))}, {number(value.get('high'))}]"
        return ", ".join(f"{k} {_plain(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(str(_plain(v)) for v in value)
    return value


def _conditions(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    judge = manifest.get("judge") or {}
    found = [
        ("release", manifest.get("release")),
        ("examples", manifest.get("examples")),
        ("sample", manifest.get("sample")),
        ("judge", judge.get("model") or judge.get("provider")),
        ("judge revision", judge.get("revision")),
        ("code version", manifest.get("code_version")),
        ("settings hash", manifest.get("settings_hash")),
    ]
    found += [(f"system {name}", version) for name, version in sorted((manifest.get("systems") or {}).items())]
    found += [(f"template {metric}", mark) for metric, mark in sorted((manifest.get("templates") or {}).items())]
    return [(flat(key, 80), flat(value, 200)) for key, value in found if value is not None]
