"""Pairs of systems side by side (`pairwise: [[candidate, baseline]]`): win, tie, loss, position bias, worth.

    store/nights/DAY/pairwise.parquet   one row an example and pair

A judge with a model compares the two answers in both orders; a disagreement of the orders is a tie and counts
as position bias. The embedded judge cannot compare answers: there the two scores of one metric are compared,
and the result says so. A system that failed at a question loses against one that answered it, without a judge.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from ragbench_dagster.calibration.judged_rows import Progress
from ragbench_dagster.errors import UserError
from ragbench_dagster.metrics import PAIRWISE, stand_ins
from ragbench_dagster.records import FAILED, Item, Verdict
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.stats.preference import davidson, win_share
from ragbench_dagster.store import Workspace, read_table, rows_table, write_table

PAIRS = pa.schema(
    [
        ("candidate", pa.string()),
        ("baseline", pa.string()),
        ("example_id", pa.string()),
        ("status", pa.string()),
        ("score", pa.float64()),  # 1: the candidate is better, 0: the baseline, 0.5: tie; null unless scored
        ("position_bias", pa.bool_()),  # the two orders disagreed; null where no judge compared
        ("basis", pa.string()),  # judge, or the metric whose scores were compared
    ]
)


def judge_pairs(ws: Workspace, day: str, progress: Progress = None) -> dict[str, Any]:
    """Compare the configured pairs and write pairwise.parquet; nothing where none are configured.

    Returns:
        `{pairs, calls, cost_usd}` of this run; verdicts in the ledger cost nothing.

    Raises:
        UserError: a pair names a system without answers tonight; a judge that cannot be asked.
    """
    night = Night.open(ws, day)
    rows: list[dict[str, Any]] = []
    fresh: list[Verdict] = []
    for candidate, baseline in ws.settings.pairwise:
        for name in (candidate, baseline):
            if name not in night.systems:
                raise UserError(f"ragbench.yaml: pairwise: the system {name!r} has no answers on {day}")
        if ws.settings.judge.for_metric(PAIRWISE).provider == "embedded":
            rows += _by_score(night, candidate, baseline)
        else:
            own, made = _by_judge(night, candidate, baseline, progress)
            rows += own
            fresh += made
    if rows or ws.settings.pairwise:
        rows.sort(key=lambda r: (r["candidate"], r["baseline"], r["example_id"]))
        write_table(night.folder / "pairwise.parquet", rows_table(rows, PAIRS))
    return {
        "pairs": len(ws.settings.pairwise),
        "calls": sum(v.attempts or int(v.status == "scored") for v in fresh),
        "cost_usd": sum(v.cost_usd for v in fresh),
    }


def _by_judge(
    night: Night, candidate: str, baseline: str, progress: Progress
) -> tuple[list[dict[str, Any]], list[Verdict]]:
    from ragbench_dagster.evaluation.judge_runner import judge_items

    rows: list[dict[str, Any]] = []
    items: list[Item] = []
    about = {e["example_id"]: e for e in night.examples.to_pylist()}
    one, other = _answers(night, candidate), _answers(night, baseline)
    for name in sorted(one.keys() & other.keys()):
        example = about.get(name)
        if example is None or example["conflict"] or example["synthetic"]:
            continue
        failed = one[name]["status"] in FAILED, other[name]["status"] in FAILED
        if any(failed):
            rows.append(_row(candidate, baseline, name, "scored", _failures(*failed), None, "judge"))
            continue
        if one[name]["response"] == other[name]["response"]:
            rows.append(_row(candidate, baseline, name, "scored", 0.5, False, "judge"))
            continue
        contexts = tuple(c for c in one[name]["contexts"] or () if c)
        history = tuple(example["history"] or ())
        items.append(
            Item(name, example["query"], one[name]["response"], contexts, example["expected_answer"], history,
                 other[name]["response"])
        )  # fmt: skip
    verdicts = judge_items(night.ws, PAIRWISE, items, progress=progress, run=night.day)
    for item, verdict in zip(items, verdicts, strict=True):
        biased = bool(verdict.details.get("position_bias")) if verdict.status == "scored" else None
        rows.append(_row(candidate, baseline, item.example_id, verdict.status, verdict.score, biased, "judge"))
    return rows, [v for v in verdicts if not v.details.get("from_ledger")]


def _answers(night: Night, system: str) -> dict[str, dict[str, Any]]:
    table = night.responses(system, ["example_id", "status", "response", "contexts"])
    return {
        row["example_id"]: row
        for row in table.to_pylist()
        if row["status"] in FAILED or (row["status"] == "scored" and row["response"] is not None)
    }


def _failures(candidate: bool, baseline: bool) -> float:
    """The comparison where a system failed: who answered wins; neither is a tie."""
    return 0.5 if candidate and baseline else float(baseline)


def _by_score(night: Night, candidate: str, baseline: str) -> list[dict[str, Any]]:
    metric = next((m for m in stand_ins() if {(candidate, m), (baseline, m)} <= night.scores.keys()), None)
    if metric is None:
        return []
    one, other = night.scores[candidate, metric], night.scores[baseline, metric]
    rows = []
    for place in np.flatnonzero(one.counted):
        there = other.place.get(one.ids[place])
        if there is not None and other.counted[there]:
            a, b = one.score[place], other.score[there]
            score = 0.5 if abs(a - b) < 1e-9 else float(a > b)
            if one.failed[place] or other.failed[there]:
                score = _failures(bool(one.failed[place]), bool(other.failed[there]))
            rows.append(_row(candidate, baseline, one.ids[place], "scored", score, None, metric))
    return rows


def _row(
    candidate: str, baseline: str, name: str, status: str, score: float | None, biased: bool | None, basis: str
) -> dict[str, Any]:
    return {
        "candidate": candidate,
        "baseline": baseline,
        "example_id": name,
        "status": status,
        "score": score if status == "scored" else None,
        "position_bias": biased,
        "basis": basis,
    }


def pairwise_results(night: Night) -> dict[str, Any]:
    """`{pairs: [{candidate, baseline, n, wins, ties, losses, win_share: {value, low, high}, position_bias, basis,
    statuses}], worth: {systems: {NAME: {log_worth, share, error}}, nu, smoothed} | null}`.

    `worth` (Davidson) stands where three systems or more met.
    """
    path = night.folder / "pairwise.parquet"
    if not path.exists():
        return {"pairs": [], "worth": None}
    rows = read_table(path).to_pylist()
    pairs = [
        _result(candidate, baseline, list(own))
        for (candidate, baseline), own in groupby(rows, key=lambda r: (r["candidate"], r["baseline"]))
    ]
    return {"pairs": pairs, "worth": _worth(pairs)}


def _result(candidate: str, baseline: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    scored = [r for r in rows if r["status"] == "scored"]
    wins, losses = sum(r["score"] == 1 for r in scored), sum(r["score"] == 0 for r in scored)
    ties = len(scored) - wins - losses
    share, interval = win_share(wins, ties, losses)
    compared = [r for r in scored if r["position_bias"] is not None]
    statuses: dict[str, int] = {}
    for row in rows:
        statuses[row["status"]] = statuses.get(row["status"], 0) + 1
    return {
        "candidate": candidate,
        "baseline": baseline,
        "n": len(scored),
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "win_share": {
            "value": share,
            "low": interval[0] if interval else None,
            "high": interval[1] if interval else None,
        },
        "position_bias": sum(r["position_bias"] for r in compared) / len(compared) if compared else None,
        "basis": rows[0]["basis"],
        "statuses": dict(sorted(statuses.items())),
    }


def _worth(pairs: list[dict[str, Any]]) -> dict[str, Any] | None:
    names = sorted({name for pair in pairs for name in (pair["candidate"], pair["baseline"])})
    if len(names) < 3:
        return None
    wins, ties = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for pair in pairs:
        i, j = names.index(pair["candidate"]), names.index(pair["baseline"])
        wins[i, j] += pair["wins"]
        wins[j, i] += pair["losses"]
        ties[i, j] += pair["ties"]
        ties[j, i] += pair["ties"]
    found = davidson(names, wins, ties)
    if found is None:
        return None
    return {
        "systems": {
            name: {"log_worth": found.log_worth[i], "share": found.share[i], "error": found.errors[i]}
            for i, name in enumerate(names)
        },
        "nu": None if found.log_nu is None else float(np.exp(found.log_nu)),
        "smoothed": found.smoothed,
    }
