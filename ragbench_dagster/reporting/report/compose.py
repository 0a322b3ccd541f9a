"""From the store's files to the view of a night. A missing part becomes a sentence, never an error."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from msgspec.structs import asdict, replace

from ragbench_dagster.metrics import is_judged
from ragbench_dagster.reporting.gate.production import asked, production_lines
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.report import cases, judges, standings
from ragbench_dagster.reporting.report.charts import Point, trend_svg
from ragbench_dagster.reporting.report.page_data import Card, Chart, Gate, NightView, Table
from ragbench_dagster.reporting.report.sanitise import flat, number, percent
from ragbench_dagster.reporting.report.section import SECTIONS
from ragbench_dagster.results import GateDecision, GateRow, Manifest
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
    gate = ws.result(day, GateDecision)
    table = night.table if (night.folder / "scores.parquet").exists() else None
    failing = cases.failing_counts(table) if table is not None else {}
    embedded = _embedded(manifest)
    compared = {**summary, "systems": asked(summary.get("systems", {}))}
    found = standings.cards(compared, gate, manifest.metrics, failing, embedded)
    slices, left = standings.worst_slices(compared, gate)
    trends, note = _trends(summary, found)
    judged = any(is_judged(m) for m in manifest.metrics)
    return NightView(
        day=day,
        workspace=flat(ws.root.name, 60),
        gate=_gate(gate),
        release=flat(manifest.release or "none", 120),
        examples=manifest.examples,
        sample=manifest.sample,
        judge=flat(manifest.judge_label or "none", 300),
        weak_judge=judged and any(embedded.values()),
        systems=sorted(manifest.systems),
        warnings=[flat(w, 300) for w in manifest.warnings],
        production=[
            (name, metric, flat(words, 300)) for name, metric, words in production_lines(summary.get("systems", {}))
        ],
        cards=found,
        trends=trends,
        trend_note=note,
        slices=slices,
        slices_left=left,
        judges=judges.judge_rows(night.calibration, embedded),
        judge_note=flat((summary.get("drift") or {}).get("line") or "", 400),
        latencies=judges.latencies(summary),
        splits=standings.splits(compared),
        leaderboard=(read_json(night.folder / "leaderboard.json") or {}).get("rows", []),
        pairwise=_pairwise(summary.get("pairwise") or {}),
        worth=_worth(summary.get("pairwise") or {}),
        cases=cases.worst_cases(night) if table is not None else cases.Cases([], 0),
        conditions=_conditions(manifest),
        command=f"ragbench run --date {day} --sample {ws.sample}" if ws.sample else f"ragbench reproduce {day}",
        tables={name: section.table(night) for name, section in SECTIONS.items() if section.table is not None},
    )


def _gate(gate: GateDecision | None) -> Gate:
    if gate is None:
        return Gate("none", SAYS["none"], [], [], [])
    return Gate(
        gate.verdict,
        SAYS[gate.verdict],
        [flat(r, 500) for r in gate.reasons],
        [flat(n, 500) for n in gate.notes],
        [_flat_row(row) for row in gate.rows[:MOST_TESTS]],
    )


def _flat_row(row: GateRow) -> GateRow:
    return replace(row, **{name: flat(v, 200) for name, v in asdict(row).items() if isinstance(v, str)})


def _embedded(manifest: Manifest) -> dict[str, bool]:
    """Metric -> graded by the embedded judge, with the overrides of `judge.metrics`."""
    judge = manifest.judge
    own, evaluators = judge.get("metrics") or {}, judge.get("evaluators") or {}
    return {
        metric: metric not in evaluators
        and (own.get(metric) or {}).get("provider", judge.get("provider", "embedded")) == "embedded"
        for metric in manifest.metrics
        if is_judged(metric)
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


def _pairwise(found: dict[str, Any]) -> Table:
    """Pairs of systems: wins, ties and losses of the first, and how often the judge's two orders disagreed."""
    columns = ["candidate", "baseline", "n", "wins", "ties", "losses", "win share", "position bias", "compared by"]
    rows = []
    for pair in found.get("pairs") or []:
        share = pair.get("win_share") or {}
        rows.append(
            [
                pair["candidate"], pair["baseline"], pair["n"], pair["wins"], pair["ties"], pair["losses"],
                f"{number(share.get('value'))} [{number(share.get('low'))}, {number(share.get('high'))}]",
                percent(pair.get("position_bias")), flat(pair.get("basis") or "", 60),
            ]
        )  # fmt: skip
    return Table(columns, rows)


def _worth(found: dict[str, Any]) -> Table:
    """The systems' worth where three or more met (Bradley-Terry with ties, Davidson), the best first."""
    systems = ((found.get("worth") or {}).get("systems") or {}).items()
    rows = [[name, w["log_worth"], w["error"], w["share"]] for name, w in systems]
    rows.sort(key=lambda r: (-(r[1] if r[1] is not None else float("-inf")), r[0]))
    return Table(["system", "log worth", "standard error", "share of worth"], rows)


def _conditions(manifest: Manifest) -> list[tuple[str, str]]:
    found: list[tuple[str, Any]] = [
        ("release", manifest.release),
        ("examples", manifest.examples),
        ("sample", manifest.sample),
        ("judge", manifest.judge_model),
        ("judge revision", manifest.judge.get("revision")),
        ("code version", manifest.code_version),
        ("settings hash", manifest.settings_hash),
    ]
    found += [(f"system {name}", version) for name, version in sorted(manifest.systems.items())]
    found += [(f"template {metric}", mark) for metric, mark in sorted(manifest.templates.items())]
    return [(flat(key, 80), flat(value, 200)) for key, value in found if value is not None]
