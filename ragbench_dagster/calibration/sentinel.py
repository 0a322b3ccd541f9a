"""The sentinel: a fixed sample of labelled rows that the judge grades afresh every night.

Its flips against the accepted reference show whether the judge has moved. The reference is a person's
decision, so it lies beside the labels (`calibration/accepted.json`), not in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragbench_dagster.calibration import judged
from ragbench_dagster.calibration.judged import Identity, Progress, passing_of, summary_of
from ragbench_dagster.calibration.rows import CalibrationRow, read_calibration
from ragbench_dagster.calibration.stats.drift import alarm_count, tail
from ragbench_dagster.calibration.stats.paired import mcnemar
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import spending
from ragbench_dagster.records import Verdict
from ragbench_dagster.store import Workspace, digest, read_json, write_json

REPEATS = 5  # fresh judgements a row when the reference is accepted; their majority stands
LEAST_SCORED = 3  # of them, or the row is no reference
SALT = "sentinel-v1"
ACCEPT = "calibrate --accept"  # what pays for a reference


def labelled(rows: Sequence[CalibrationRow], metric: str) -> list[CalibrationRow]:
    """The rows that people labelled for `metric`, tonight's drawn samples left out."""
    return [row for row in rows if metric in row.human and row.sample is None]


def sentinel_rows(rows: Sequence[CalibrationRow], metric: str, size: int) -> list[CalibrationRow]:
    """The fixed sample of `size` rows: those with the smallest salted hash, so that new rows change few."""
    own = sorted(labelled(rows, metric), key=lambda row: digest(SALT, row.key))
    return sorted(own[:size], key=lambda row: row.key)


def judge_sentinel(
    ws: Workspace, day: str, rows: Sequence[CalibrationRow], progress: Progress = None
) -> dict[str, tuple[list[CalibrationRow], list[Verdict]]]:
    """Metric to its sentinel rows and tonight's verdicts on them: the first money of a night, for without these no
    judged metric decides.

    Raises:
        UserError: a judge that cannot be asked.
    """
    found = {}
    for metric in ws.settings.judged_metrics:
        own = sentinel_rows(rows, metric, ws.settings.calibration.sentinel)
        found[metric] = own, judged.judge_round(ws, metric, [r.item for r in own], day, progress, day)
    return found


def spent(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """{calls, cost_usd} of those verdicts that were made in this run."""
    fresh = [v for v in verdicts if not v.details.get("from_ledger")]
    calls = sum(v.attempts or int(v.status == "scored") for v in fresh)
    return {"calls": calls, "cost_usd": sum(v.cost_usd for v in fresh)}


def reference_path(ws: Workspace) -> Path:
    return ws.calibration / "accepted.json"


def accepted(ws: Workspace, metric: str, identity: Identity) -> dict[str, Any] | None:
    """The accepted reference of this metric and this very judge; None where nobody accepted one."""
    found = (read_json(reference_path(ws)) or {}).get("metrics", {}).get(metric)
    return found if found and found.get("identity", {}).get("hash") == identity.as_dict()["hash"] else None


def accept_reference(
    ws: Workspace, who: str, why: str, progress: Progress = None, when: str | None = None
) -> dict[str, Any]:
    """Record the judge as it answers now: five fresh judgements of each sentinel row, the majority stands.

    Args:
        who: the person who accepts.
        why: the reason, in one line.
        when: ISO time; default now (UTC).

    Returns:
        What `calibration/accepted.json` now holds.

    Raises:
        UserError: no name or reason; no labelled rows; a judge that did not answer.
    """
    if not who.strip() or not why.strip():
        raise UserError("calibrate --accept: say who accepts the judge and why")
    when = when or datetime.now(UTC).isoformat(timespec="seconds")
    rows = read_calibration(ws)
    metrics = {}
    for metric in ws.settings.judged_metrics:
        sentinel = sentinel_rows(rows, metric, ws.settings.calibration.sentinel)
        if not sentinel:
            continue
        rounds = [
            judged.judge_round(ws, metric, [row.item for row in sentinel], f"accept {when} {i + 1}", progress, ACCEPT)
            for i in range(REPEATS)
        ]
        metrics[metric] = _majority(ws, metric, sentinel, rounds)
    if not metrics:
        raise UserError(f"{ws.calibration.name}/: no labelled rows for any judged metric; label some first")
    found = {"who": who.strip(), "why": why.strip(), "when": when, "metrics": metrics}
    write_json(reference_path(ws), found)
    spending.finish(ws, ACCEPT)
    return found


def _majority(
    ws: Workspace, metric: str, sentinel: Sequence[CalibrationRow], rounds: Sequence[Sequence[Verdict]]
) -> dict[str, Any]:
    reference: dict[str, int] = {}
    noise = judgements = 0
    threshold = fitted_threshold(ws, metric, sentinel, rounds[0])
    for place, row in enumerate(sentinel):
        votes = [p for one in rounds if (p := passing_of(one[place], threshold)) is not None]
        if len(votes) < LEAST_SCORED or 2 * sum(votes) == len(votes):
            continue
        verdict = int(2 * sum(votes) > len(votes))
        reference[row.key] = verdict
        noise += sum(v != verdict for v in votes)
        judgements += len(votes)
    if not reference:
        raise UserError(f"calibrate --accept: the judge gave no verdict for {metric}; see `ragbench doctor`")
    return {
        "identity": judged.identify(ws, metric).as_dict(),
        "verdicts": reference,
        "noise": noise,
        "judgements": judgements,
        "threshold": threshold,
        **summary_of([v for one in rounds for v in one]),
    }


def fitted_threshold(
    ws: Workspace, metric: str, rows: Sequence[CalibrationRow], verdicts: Sequence[Verdict]
) -> float | None:
    """The score from which on a log-probability judge's verdict passes; None for judges that say pass or fail."""
    import numpy as np

    from ragbench_dagster.calibration.stats.graded import best_threshold

    judge = ws.settings.judge.for_metric(metric)
    if judge.provider == "embedded" or judge.read != "logprobs":
        return None
    if judge.logprob_threshold is not None:
        return judge.logprob_threshold
    pairs = [
        (row.human[metric], v.score)
        for row, v in zip(rows, verdicts, strict=True)
        if metric in row.human and v.status == "scored" and v.score is not None
    ]
    if not pairs:
        return None
    human, scores = np.array(pairs, dtype=float).T
    return best_threshold(human, scores)


def drift(
    reference: dict[str, Any] | None,
    tonight: dict[str, int | None],
    verdicts: Sequence[Verdict],
    alarm: float,
    evaluators: int,
) -> dict[str, Any]:
    """Tonight's sentinel against the accepted reference.

    Args:
        reference: of `accepted`, or None.
        tonight: row key -> 0 or 1, None where not scored.
        verdicts: the same rows' verdicts, for the served model and the status mix.
        alarm: false alarms a night over all evaluators.
        evaluators: evaluators with a sentinel.
    """
    now = summary_of(verdicts)
    if reference is None:
        return {"state": "not set up", "message": "no accepted reference: ragbench calibrate --accept", **now}
    known = {k: v for k, v in reference["verdicts"].items() if tonight.get(k) is not None}
    to_fail = sum(1 for k, v in known.items() if v == 1 and tonight[k] == 0)
    to_pass = sum(1 for k, v in known.items() if v == 0 and tonight[k] == 1)
    flips, rows = to_fail + to_pass, len(known)
    count = alarm_count(reference["noise"], reference["judgements"], rows, alarm, evaluators)
    causes = []
    if rows and flips >= count:
        causes.append(f"{flips} of {rows} sentinel verdicts flipped, its own noise explains at most {count - 1}")
    before = set(reference.get("models", []))
    if before and now["models"] and not set(now["models"]) <= before:
        causes.append("the provider now serves another model than the accepted one")
    return {
        "state": "drifted" if causes else "steady",
        "causes": causes,
        "flips": flips,
        "rows": rows,
        "alarm_at": count,
        "to_pass": to_pass,
        "to_fail": to_fail,
        "direction_p": mcnemar(to_pass, to_fail),
        "notes": _notes(reference, now),
        **now,
    }


def _notes(reference: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Changes worth knowing that close nothing by themselves."""
    notes = []
    prints = set(reference.get("fingerprints", []))
    if prints and now["fingerprints"] and not set(now["fingerprints"]) <= prints:
        notes.append("the provider's system fingerprint is new")
    was, total = reference.get("statuses", {}), sum(reference.get("statuses", {}).values())
    lost_before = total - was.get("scored", 0)
    rows = sum(now["statuses"].values())
    lost = rows - now["statuses"].get("scored", 0)
    if total and rows and tail(lost, rows, lost_before + 1, total - lost_before + 1) <= 0.01:
        notes.append(f"{lost} of {rows} sentinel rows got no verdict, {lost_before} of {total} when accepted")
    return notes
