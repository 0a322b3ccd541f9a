"""The night's summary as plain tables for a terminal: `{title, columns, rows}` each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ragbench_dagster.errors import UserError
from ragbench_dagster.metrics import is_judged, metric_of
from ragbench_dagster.reporting.gate.guards import answer_rows
from ragbench_dagster.reporting.gate.production import asked, headline, production_lines
from ragbench_dagster.reporting.latency import words
from ragbench_dagster.reporting.night_results import Mask, Night, Scores, nights_before
from ragbench_dagster.results import Manifest
from ragbench_dagster.store import Workspace, read_json
from ragbench_dagster.text.format import decimal

NIGHTS = 7
FAILED = ["system", "answered at first", "answered when asked again", "still missing", "errors in time"]
_PART = ["system", "metric", "dimension", "part", "n", "value", "low", "high", "coverage"]
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
    rows = pd.DataFrame([row for _, _, m in _figures(systems) for row in m["slices"]], columns=_PART)
    rows = rows[(rows["dimension"] == "category") & rows["value"].notna()]
    rows = rows.assign(harm=(1 - rows["value"]) * rows["n"], figure=[_band(row) for row in rows.to_dict("records")])
    rows = rows.sort_values(["harm", "system", "metric", "part"], ascending=[False, True, True, True])
    shown = _in_turn(rows)[["system", "metric", "part", "figure", "n", "coverage"]]
    title = f"By category, the most harmful {PARTS}" if len(shown) > PARTS else "By category"
    return _table(title, ["system", "metric", "category", "value, 95 %", "n", "coverage"], _cells(shown.head(PARTS)))


def _in_turn(rows: pd.DataFrame) -> pd.DataFrame:
    """The first row of every system, then the second, ..., so that none crowds out the others."""
    place = rows.groupby("system").cumcount()
    return rows.assign(place=place).sort_values(["place", "system"])


def _cells(frame: pd.DataFrame) -> list[list[Any]]:
    """A frame's rows as lists, None where a value is missing."""
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def _status(systems: dict[str, Any]) -> dict[str, Any]:
    figures = _figures(systems)
    counts = pd.DataFrame([m["overall"]["statuses"] for *_, m in figures]).fillna(0).astype(int).sort_index(axis=1)
    rows = [[name, metric, *row] for (name, metric, _), row in zip(figures, counts.to_numpy().tolist(), strict=True)]
    return _table("By status", ["system", "metric", *counts], rows)


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
    cases = pd.DataFrame([{"system": name, **case} for name, system in systems.items() for case in system["worst"]])
    columns = ["system", "example", "metric", "category", "score", "weight", "why"]
    if cases.empty:
        return _table("Worst cases", columns, [])
    cases["feedback"] = cases["feedback"].fillna("").str[:160]
    shown = _in_turn(cases)[["system", "example_id", "metric", "category", "score", "weight", "feedback"]]
    return _table("Worst cases", columns, _cells(shown.head(20)))


def _trend(summary: dict[str, Any]) -> dict[str, Any]:
    points = pd.DataFrame(
        [
            {"system": name, "metric": metric, "day": point["day"], "figure": _point(point)}
            for name, metrics in summary.get("trend", {}).items()
            for metric, points in metrics.items()
            for point in points
        ],
        columns=["system", "metric", "day", "figure"],
    )
    shown = points.pivot(index=["system", "metric"], columns="day", values="figure").iloc[:, -NIGHTS:]
    if shown.shape[1] < 2:
        return _table("", [], [])
    title = "Last nights (* release, system, judge or template changed)"
    return _table(title, ["system", "metric", *shown], _cells(shown.reset_index()))


def _point(point: dict[str, Any]) -> str | None:
    return None if point["value"] is None else decimal(point["value"]) + ("*" if point["marks"] else "")


# The last nights of every system and metric, and where their conditions changed.

TREND_NIGHTS = 30


def conditions(manifest: Manifest, calibration: dict[str, Any], system: str, metric: str) -> dict[str, Any]:
    """What a figure was made under: a change of any of these is marked."""
    judged = is_judged(metric)
    identity = calibration.get("metrics", {}).get(metric, {}).get("identity", {}) if judged else {}
    return {
        "release": manifest.release,
        "system": manifest.systems.get(system),
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
    stored = {day: _read(night.ws, day) for day in nights_before(night.ws, night.day)[: nights - 1]}
    stored[night.day] = ({"systems": systems}, night.manifest, night.calibration)
    points = pd.DataFrame(
        [
            (name, metric, point(day, headline(system, metric), conditions(manifest, calibration, name, metric)))
            for day, (summary, manifest, calibration) in sorted(stored.items())
            for name, system in summary.get("systems", {}).items()
            for metric in system.get("metrics", {})
            if metric in systems.get(name, {}).get("metrics", {})
        ],
        columns=["system", "metric", "point"],
    )
    found: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in systems}
    for (name, metric), series in points.groupby(["system", "metric"])["point"]:
        for before, after in pairwise(series):
            was, now = before["conditions"], after["conditions"]
            after["marks"] = [condition for condition in sorted(now) if was[condition] != now[condition]]
        found[name][metric] = series.tolist()
    return found


def _read(ws: Workspace, day: str) -> tuple[dict[str, Any], Manifest, dict[str, Any]]:
    folder = ws.night(day)
    summary, calibration = (read_json(folder / f"{name}.json") or {} for name in ("summary", "calibration"))
    return summary, ws.result(day, Manifest) or Manifest(release=""), calibration


# The worst cases of a night: scored below everybody else, heaviest first. No text of questions.

MOST = 20


CASE = ["example_id", "metric", "category", "score", "value", "weight", "status", "feedback"]


def worst_rows(night: Night, system: str, limit: int = MOST) -> list[dict[str, Any]]:
    """At most `limit` counted rows with the lowest value, the heaviest first; full marks are never listed."""
    return [{name: row[name] for name in CASE} for row in select(night, limit, system=system)]


def select(night: Night, limit: int, **wanted: str | None) -> list[dict[str, Any]]:
    """The `limit` worst failing rows of the score table: by value, then weight, then score, then name.

    Args:
        night: whose table it is.
        limit: of rows.
        wanted: column -> the value that a row must have there; None: any.
    """
    rows = night.frame[night.frame["value"] < 1.0]
    for column, value in wanted.items():
        if value is not None:
            rows = rows[rows[column] == value]
    rows = rows.assign(heavy=rows["weight"].fillna(0.0), known=rows["score"].fillna(0.0))
    order = {"value": True, "heavy": False, "known": True, "metric": True, "example_id": True, "system": True}
    rows = rows.sort_values(list(order), ascending=list(order.values())).head(limit)[["system", *CASE]]
    cases = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return [{**case, "feedback": case["feedback"] or metric_of(case["metric"]).why(case["value"])} for case in cases]


# The parts that figures are shown for: categories, columns that the user names, new and known questions.

OVERALL = "overall"
AGE = "age"  # "new": first asked in the last seven days of the window
MOST_PARTS = 50  # of a dimension; the smallest are shown together
REST = "(all others)"
NONE = "(none)"


def dimensions(night: Night) -> pd.DataFrame:
    """The part of every example (the index) in each dimension (the columns): the settings' `slices`, and its age.

    Raises:
        UserError: `slices` names a column that the release lacks.
    """
    table, slices = night.examples, night.ws.settings.slices
    for name in slices:
        if name not in table.column_names:
            known = ", ".join(c for c in table.column_names if c not in ("example_id", "query", "history"))
            raise UserError(f"ragbench.yaml: slices: the release has no column {name!r}; it has {known}")
    values = {name: table[name].to_pylist() for name in slices}
    parts = pd.DataFrame(values, pd.Index(table["example_id"].to_pylist()), dtype=object)
    parts = parts.where(parts.notna() & (parts != ""), NONE).map(str).apply(_largest)
    days = table.select(["first_day", "last_day"]).to_pandas(date_as_object=False)
    age = np.where(days["first_day"] < days["last_day"].max() - pd.Timedelta(days=6), "known", "new")
    return parts.assign(**{AGE: age}) if days["last_day"].notna().any() and len(set(age)) > 1 else parts


def _largest(parts: pd.Series) -> pd.Series:
    sizes = parts.groupby(parts).size().sort_values(ascending=False, kind="stable")
    return parts.where(parts.isin(sizes.index[:MOST_PARTS]), REST)


def parts(scores: Scores, dims: pd.DataFrame) -> Iterator[tuple[str, str, Mask]]:
    """(dimension, part, mask) over the rows of `scores`, the whole first, then by name."""
    yield OVERALL, OVERALL, np.ones(len(scores.ids), dtype=bool)
    for dimension, part in dims.reindex(scores.ids).fillna(NONE).astype("category").items():
        for name in part.cat.categories:
            yield str(dimension), name, part.array == name
