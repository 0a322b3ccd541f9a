"""summary[D]: the figures of a night. Written to summary.json and, one row a figure, to summary.parquet.

summary.json:

    {day, release, examples, sample, judge: label, systems: {NAME: {
        version,
        metrics: {METRIC: {
            overall: ROW, slices: [ROW, ...],
            change: {baseline, total, shared, judge, system, dataset, unscored: {value, low, high}, n_shared,
                     judged_afresh} | null,           # parts add up to the total
            ppi: {value, low, high, weight} | null,          # check of the point where tonight's labels were used
            hint: text | null}},
        latency: {n, p50_ms, p95_ms, p99_ms: {value, low, high}, mean_ms, histogram, first_token, answers},
        cost: {judge_usd, per_question_usd} | null,
        attempts: outages.Outage | null,
        requests: production.production | null,     # of logged answers; their metrics above are comparisons' only
        worst: [{example_id, metric, category, score, value, weight, status, feedback}, ...]   # at most 20
     }},
     trend: {NAME: {METRIC: [{day, value, low, high, n, coverage, conditions, marks}, ...]}},
     pairwise: [...], judges: [calibration.night.agreement_rows, ...],
     drift: {drifted, line}}

ROW: {system, metric, dimension, part, n, value, low, high, clusters, independent (questions that n counts like),
      note, coverage, statuses: {STATUS: n}, left_out,
      per_request: {value, low, high, n (sampled requests), n_effective, note, corrected (overall rows of judge
                    metrics)},
      corrected: {method: labels|calibration|humans_only|none, value, low, high, reason, note} | null,
      delta: {baseline, value, low, high, n, gains, losses, clusters, releases (linked), not_comparable} | null,
      mean_score, p10, p50, p90 (overall rows of judge metrics)}

`dimension` is "overall", a column of `slices`, or "age" (new, known). Values are means per question; null
where nothing was scored, never 0.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from ragbench_dagster.calibration.calibrate import agreement_rows, drift_line
from ragbench_dagster.calibration.labelled_answers import read_calibration
from ragbench_dagster.metrics import bases
from ragbench_dagster.reporting import latency, night_tables
from ragbench_dagster.reporting.baselines import Baseline, Baselines, Pairs
from ragbench_dagster.reporting.comparability import (
    Linked,
    baseline_for,
    change_dict,
    change_in,
    follow,
    needs_links,
    split_of,
)
from ragbench_dagster.reporting.estimates import judge_cost, make_row
from ragbench_dagster.reporting.failures import hint
from ragbench_dagster.reporting.gate.guards import outage_of
from ragbench_dagster.reporting.gate.production import headline, production
from ragbench_dagster.reporting.judge_correction import Corrector, correctors
from ragbench_dagster.reporting.night_results import Mask, Night, Scores
from ragbench_dagster.reporting.night_tables import summary_tables, trend, worst_rows
from ragbench_dagster.reporting.pairwise import pairwise_results
from ragbench_dagster.results import GateDecision
from ragbench_dagster.stats.change import Chain
from ragbench_dagster.store import Workspace, finite, read_json, write_json, write_table

__all__ = ["SUMMARY", "read_summary", "summarise", "summary_for_json", "summary_tables"]

_text, _number = pa.string(), pa.float64()
SUMMARY = pa.schema(
    [
        ("system", _text), ("metric", _text), ("dimension", _text), ("part", _text),
        ("n", pa.int64()), ("coverage", _number),
        ("value", _number), ("low", _number), ("high", _number),
        ("per_request", _number), ("per_request_low", _number), ("per_request_high", _number),
        ("n_effective", _number),
        ("corrected", _number), ("corrected_low", _number), ("corrected_high", _number), ("correction", _text),
        ("delta", _number), ("delta_low", _number), ("delta_high", _number), ("baseline", _text),
        ("mean_score", _number),
    ]
)  # fmt: skip
# The columns that stand one level down in a ROW.
_NESTED = {
    **{f"{name}{end}": f"{name}.{end[1:] or 'value'}"
       for name in ("per_request", "corrected", "delta") for end in ("", "_low", "_high")},
    "n_effective": "per_request.n_effective", "correction": "corrected.method", "baseline": "delta.baseline",
}  # fmt: skip


def summarise(ws: Workspace, day: str) -> dict[str, Any]:
    """The figures of the night `day`; writes summary.json and summary.parquet.

    Raises:
        UserError: no such night; a broken release; `slices` names no column.
    """
    night = Night.open(ws, day)
    dims = night_tables.dimensions(night)
    fixes = correctors(night, read_calibration(ws))
    baselines = Baselines(night)
    systems: dict[str, Any] = {}
    for name in night.systems:
        metrics = {
            metric: metric_figures(night, scores, dims, fixes.get((name, metric)), baselines)
            for (system, metric), scores in night.scores.items()
            if system == name
        }
        for metric, found in metrics.items():
            found["hint"] = hint(metric, metrics, failed=_below_floor(night, metric, found["overall"]))
        systems[name] = {
            "version": night.manifest.systems[name],
            "metrics": metrics,
            "latency": latency.describe(night, name),
            "cost": judge_cost(night, name),
            "requests": production(night, name),
            "attempts": attempts.as_dict() if (attempts := outage_of(night, name)) else None,
            "worst": worst_rows(night, name),
        }
    drifted, line = drift_line(night.calibration)
    summary = {
        "day": day,
        "release": night.manifest.release,
        "examples": night.manifest.examples,
        "sample": night.manifest.sample,
        "judge": night.manifest.judge_label,
        "systems": systems,
        "trend": trend(night, systems),
        "pairwise": pairwise_results(night),
        "judges": agreement_rows(night.calibration),
        "drift": {"drifted": drifted, "line": line},
    }
    summary = finite(summary)
    write_json(night.folder / "summary.json", summary)
    write_table(night.folder / "summary.parquet", flat(summary))
    return summary


def metric_figures(
    night: Night, scores: Scores, dims: pd.DataFrame, fix: Corrector | None, baselines: Baselines
) -> dict[str, Any]:
    """Overall row, slices, change and check of one system and metric."""
    baseline = baseline_for(baselines, scores.system, scores.metric)
    pairs = baselines.pairs(baseline, scores) if baseline else None
    differs = baselines.differs(baseline, scores.metric) if baseline else None
    linked: Linked | str | None = None
    if baseline and not differs and needs_links(baselines, baseline):
        linked = follow(baselines, baseline, scores)
        differs = linked if isinstance(linked, str) else None
    rows = []
    for dimension, part, where in night_tables.parts(scores, dims):
        row = make_row(scores, where, dimension, part, fix, full=dimension == night_tables.OVERALL)
        chain = _linked(linked, dimension, part)
        row["delta"] = (
            change_dict(chain, baseline, None) if baseline and chain else _delta(baseline, pairs, where, differs)
        )
        rows.append(row)
    return {
        "overall": rows[0],
        "slices": rows[1:],
        "change": split_of(night, baseline, pairs) if baseline and pairs else None,
        "ppi": fix.ppi(scores, scores.counted) if fix else None,
    }


def _linked(linked: Linked | str | None, dimension: str, part: str) -> Chain | None:
    """The change since the accepted night over its later releases; None where the paired one stands."""
    if not isinstance(linked, Linked) or dimension not in (night_tables.OVERALL, "category"):
        return None
    found = linked.change(None if dimension == night_tables.OVERALL else part)
    return found if isinstance(found, Chain) else None


def _below_floor(night: Night, metric: str, row: dict[str, Any]) -> bool:
    """True where the figure that the gate looks at lies below its floor."""
    threshold = night.ws.settings.thresholds.get(metric)
    floor = threshold.min if threshold else None
    corrected = (row["corrected"] or {}).get("value")
    value = row["value"] if corrected is None else corrected
    return floor is not None and value is not None and value < floor


def _delta(baseline: Baseline | None, pairs: Pairs | None, where: Mask, differs: str | None) -> dict[str, Any] | None:
    if baseline is None or pairs is None:
        return None
    return change_dict(change_in(pairs, where), baseline, differs)


def flat(summary: dict[str, Any]) -> pa.Table:
    """summary.json's rows as one table."""
    figures = [m for system in summary["systems"].values() for m in system["metrics"].values()]
    rows = pd.json_normalize([row for m in figures for row in (m["overall"], *m["slices"])])
    frame = rows.reindex(columns=[_NESTED.get(name, name) for name in SUMMARY.names]).set_axis(SUMMARY.names, axis=1)
    return pa.Table.from_pandas(frame, SUMMARY, preserve_index=False).replace_schema_metadata()


def read_summary(ws: Workspace, day: str) -> dict[str, Any]:
    """summary.json of the night; empty where it was never made."""
    return read_json(ws.night(day) / "summary.json") or {}


def summary_for_json(ws: Workspace, day: str) -> dict[str, Any]:
    """`{systems: {NAME: {METRIC: {value, low, high, n, coverage, ...}}}, gate: {verdict, reasons}}` of `run --json`."""
    summary = read_summary(ws, day)
    systems: dict[str, Any] = {}
    for name, system in summary.get("systems", {}).items():
        found: dict[str, Any] = {}
        for metric, figures in system["metrics"].items():
            row = figures["overall"]
            found[metric] = headline(system, metric)
            if metric in ((system.get("requests") or {}).get("metrics") or {}):
                found[metric] |= {"per": "request", "words": system["requests"]["metrics"][metric]["words"]}
                continue
            found[metric]["per_request"] = row["per_request"]["value"]
            if row["corrected"] is not None:
                found[metric]["corrected"] = row["corrected"]
            if "mean_score" in row:
                found[metric]["mean_score"] = row["mean_score"]
        times = system["latency"]
        asked = sum(n for status, n in times["answers"].items() if status != "not_applicable")
        for metric in bases("latency"):
            found[metric] = {
                **times[metric.removeprefix("latency_")],
                "n": times["n"],
                "coverage": min(1.0, times["n"] / asked) if asked else None,
            }
        systems[name] = found
    gate = ws.result(day, GateDecision)
    decided = {"verdict": gate.verdict if gate else None, "reasons": gate.reasons if gate else []}
    return finite({"systems": systems, "gate": decided})
