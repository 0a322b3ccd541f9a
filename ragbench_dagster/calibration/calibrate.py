"""judge_calibration[D]: the judge against people, against its former self, and against trickery.

Written to `calibration.json` of the night:

    {day, rows, reference: {who, when, why} | null,
     metrics: {METRIC: {
        identity: {judge, evaluator, version, template_hash, hash}, pinned, key_missing,
        n, table, accuracy, balanced_accuracy, sensitivity, specificity, kappa, reason, roc_auc, spearman, ci,
        left_out: {STATUS: n}, human: {rows, agreement, kappa, ci} | null,
        threshold, threshold_source, cross_fitted: {...} | null, graded: {...} | null,
        sentinel: {size, verdicts: {ROW_KEY: 0|1|null}, human: {ROW_KEY: 0|1}, coverage, scores: {ROW_KEY: x}},
        drift: {state: steady|warning|drifted|not set up, alarm, causes, line, odd, rows, alarm_at, p, notes, ...},
        probes: {n, fooled, share, ci, kinds, blocked, controls_passed, statuses} | null,
        usable: bool, closed: [{kind, reason}: why the gate must not trust this judge]}}}

Every sentinel row is judged afresh each night (the night's date is in the ledger key, so a night run again
pays nothing), all other rows and the probes once a week (the Monday's date is). Where the budget is short, the
sentinel comes first, then the night's answers, then all else of the week: without the first two nothing decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ragbench_dagster.calibration import judged_rows, probes, sentinel
from ragbench_dagster.calibration.agreement import evaluator_agreement, human_agreement
from ragbench_dagster.calibration.judged_rows import Progress, passing_of
from ragbench_dagster.calibration.labelled_answers import CalibrationRow, read_calibration
from ragbench_dagster.calibration.sentinel import accept_reference, accepted, alarmed_before, read_reference
from ragbench_dagster.evaluation import spending
from ragbench_dagster.records import Verdict
from ragbench_dagster.stats import agreement_tables
from ragbench_dagster.stats.agreement_tables import Table, describe
from ragbench_dagster.stats.intervals import Floats
from ragbench_dagster.store import Workspace, read_json, write_json

WARNING = "warning"  # the kind of what bars PASS tonight and closes nothing else

__all__ = ["accept_reference", "agreement_rows", "calibrate", "calibrate_now", "drift_line"]


def calibrate(ws: Workspace, day: str, progress: Progress = None) -> dict[str, Any]:
    """Judge the sentinel, weekly all labelled rows, and the probes; write `calibration.json`.

    Returns:
        What was written, and `calls` and `cost_usd` of this run.

    Raises:
        UserError: broken calibration files; a judge that cannot be asked (wrong key, wrong URL).
    """
    rows = read_calibration(ws)
    reference = read_reference(ws)
    metrics = ws.settings.judged_metrics
    watched = sum(1 for metric in metrics if sentinel.labelled(rows, metric))
    fresh = sentinel.judge_sentinel(ws, day, rows, progress)
    found = {metric: _metric(ws, day, metric, rows, fresh[metric], watched, progress) for metric in metrics}
    # a run again makes no call, so what was called is returned and not stored (same input, same bytes)
    spent = {name: sum(m.pop(name) for m in found.values()) for name in ("calls", "cost_usd")}
    result = {
        "day": day,
        "rows": len(rows),
        "reference": {k: reference.get(k) for k in ("who", "when", "why")} if reference else None,
        "metrics": found,
    }
    write_json(ws.night(day) / "calibration.json", result)
    stored = read_json(ws.night(day) / "calibration.json")
    assert isinstance(stored, dict)
    return {**stored, **spent}


def _metric(
    ws: Workspace,
    day: str,
    metric: str,
    rows: Sequence[CalibrationRow],
    tried_tonight: tuple[list[CalibrationRow], list[Verdict]],
    watched: int,
    progress: Progress,
) -> dict[str, Any]:
    judge = ws.settings.judge.for_metric(metric)
    own = sentinel.labelled(rows, metric)
    identity = judged_rows.identify(ws, metric)
    result: dict[str, Any] = {"pinned": judge.pinned or identity.local, "identity": identity.as_dict()}
    fresh_rows, fresh = tried_tonight
    fresh_keys = {row.key for row in fresh_rows}
    other_rows = [row for row in own if row.key not in fresh_keys]
    week = judged_rows.week_of(day)
    others = judged_rows.judge_round(ws, metric, [r.item for r in other_rows], f"week {week}", progress, day)
    own, verdicts = [*fresh_rows, *other_rows], [*fresh, *others]
    reference = accepted(ws, metric, identity)
    threshold, source = _threshold(ws, metric, own, verdicts, reference)
    result |= {"threshold": threshold, "threshold_source": source}
    result |= _agreement(metric, own, verdicts, threshold, peeks=source in ("fitted", "accepted"))
    tonight = {row.key: passing_of(v, threshold) for row, v in zip(fresh_rows, fresh, strict=True)}
    scored = sum(v is not None for v in tonight.values())
    result["sentinel"] = {
        "size": len(fresh_rows),
        "verdicts": tonight,
        "human": {row.key: row.human[metric] for row in fresh_rows},
        "coverage": scored / len(fresh_rows) if fresh_rows else None,
    }
    if threshold is not None:  # so that a later threshold can read these verdicts anew
        result["sentinel"]["scores"] = sentinel.scores_of(fresh_rows, fresh)
    alarm = ws.settings.calibration.drift_alarm
    before = alarmed_before(ws, day, metric, reference)
    result["drift"] = sentinel.drift(reference, tonight, fresh, alarm, watched, before)
    shipped = probes.load_probes(metric)
    tried = judged_rows.judge_round(ws, metric, [p.item for p in shipped], f"week {week}", progress, day)
    result["probes"] = probes.probe_result(shipped, tried, threshold) if shipped else None
    result["human"] = human_agreement(own, metric)
    everything = [*verdicts, *tried]
    # what the ledger holds needs no key: a night can be made again without one
    unanswered = not own or any(v.status == "error" for v in fresh)
    result["key_missing"] = judged_rows.key_missing(judge) and not identity.local and unanswered
    result["closed"] = closed_by(ws, result)
    result["usable"] = all(entry["kind"] == WARNING for entry in result["closed"])
    return result | sentinel.spent(everything)


def _threshold(
    ws: Workspace,
    metric: str,
    rows: Sequence[CalibrationRow],
    verdicts: Sequence[Verdict],
    reference: dict[str, Any] | None,
) -> tuple[float | None, str | None]:
    """The accepted threshold where there is one, so that it does not wander from night to night."""
    if reference is not None and reference.get("threshold") is not None:
        return reference["threshold"], "accepted"
    fitted = sentinel.fitted_threshold(ws, metric, rows, sentinel.scores_of(rows, verdicts))
    if fitted is None:
        return None, None
    by_hand = ws.settings.judge.for_metric(metric).logprob_threshold is not None
    return fitted, "settings" if by_hand else "fitted"


def _agreement(
    metric: str, rows: Sequence[CalibrationRow], verdicts: Sequence[Verdict], threshold: float | None, peeks: bool
) -> dict[str, Any]:
    """The table against people.

    Args:
        peeks: the threshold was fitted to these labels; each row is then judged by one that never saw it.
    """
    kept = [(row, v, p) for row, v in zip(rows, verdicts, strict=True) if (p := passing_of(v, threshold)) is not None]
    human: Floats = np.array([row.human[metric] for row, _, _ in kept], dtype=float)
    passing: Floats = np.array([p for _, _, p in kept], dtype=float)
    has_scores = bool(kept) and all(v.score is not None for _, v, _ in kept)
    scores: Floats | None = np.array([v.score for _, v, _ in kept], dtype=float) if has_scores else None
    ids = [row.key for row, _, _ in kept]
    if peeks and scores is not None:
        unseen = agreement_tables.cross_fitted(human, scores, ids)
        if unseen is None:
            result = evaluator_agreement(human[:0], passing[:0], None)
            result["reason"] = "too few labelled answers of a class to fit a threshold without peeking; label more"
        else:
            result = evaluator_agreement(human, unseen, scores)
    else:
        result = evaluator_agreement(human, passing, scores)
    result["left_out"] = judged_rows.statuses([v for v in verdicts if v.status != "scored"])
    result["cross_fitted"] = _cross_fitted(human, scores, ids)
    result["graded"] = _graded(metric, kept)
    return result


def _cross_fitted(human: Floats, scores: Floats | None, ids: list[str]) -> dict[str, Any] | None:
    """What a fitted threshold would give on rows it never saw; None for scores of two values."""
    if scores is None or len(np.unique(scores)) <= 2:
        return None
    verdicts = agreement_tables.cross_fitted(human, scores, ids)
    if verdicts is None:
        return None
    figures = describe(Table.of(human, verdicts))
    return {"threshold": agreement_tables.best_threshold(human, scores), **figures}


def _graded(metric: str, kept: Sequence[tuple[CalibrationRow, Verdict, int]]) -> dict[str, Any] | None:
    """People's grades (the median of the raters) against the judge's, where people graded and not only passed."""
    pairs = [
        (float(np.median(row.raters[metric])), v.score)
        for row, v, _ in kept
        if row.raters.get(metric) and v.score is not None
    ]
    if len({a for a, _ in pairs} | {0.0, 1.0}) <= 2:
        return None
    people, judge = np.array(pairs, dtype=float).T
    rho, rho_ci = agreement_tables.spearman(people, judge)
    whole = bool((people == people.round()).all() and (judge == judge.round()).all())
    return {
        "n": len(pairs),
        "spearman": rho,
        "weighted_kappa": agreement_tables.weighted_kappa(people, judge) if whole else None,
        "ci": {
            "spearman": rho_ci,
            "weighted_kappa": agreement_tables.weighted_kappa_interval(people, judge) if whole else None,
        },
    }


def closed_by(ws: Workspace, found: dict[str, Any]) -> list[dict[str, str]]:
    """Why the gate must not trust this judge, `{kind, reason}` each; empty where it may.

    Kinds: key, floating, unchecked, disagrees, drifted, warning, sentinel, probes. A warning bars PASS alone.
    """
    settings, enough = ws.settings.calibration, ws.settings.gate.min_coverage
    if found["key_missing"]:
        return [{"kind": "key", "reason": "no judge key in this run"}]
    reasons: list[tuple[str, str]] = []
    if not found["pinned"]:
        reasons.append(("floating", "the judge floats: name a dated model or set judge.revision"))
    kappa, least = found["kappa"], settings.min_kappa
    if kappa is None:
        reasons.append(("unchecked", f"the judge is unchecked: {found['reason']}"))
    elif kappa < least:
        reasons.append(("disagrees", f"the judge disagrees with people: kappa {kappa:.2f}, needed {least:.2f}"))
    if found["drift"]["state"] == "drifted":
        reasons.append(("drifted", "the judge drifted: " + "; ".join(found["drift"]["causes"])))
    elif found["drift"]["state"] == "warning":
        causes = "; ".join(found["drift"]["causes"])
        reasons.append((WARNING, f"the judge may have drifted: {causes}. One more such night closes the gate"))
    share = found["sentinel"]["coverage"]
    if share is not None and share < enough:
        reasons.append(("sentinel", f"only {share:.0%} of the sentinel got a verdict, {enough:.0%} are needed"))
    fooled = (found["probes"] or {}).get("share")
    if fooled is not None and fooled > settings.max_fooled:
        reasons.append(
            ("probes", f"{fooled:.0%} of the injection probes fooled the judge, {settings.max_fooled:.0%} may")
        )
    return [{"kind": kind, "reason": reason} for kind, reason in reasons]


def calibrate_now(ws: Workspace, day: str | None, progress: Progress = None) -> dict[str, Any]:
    """`ragbench calibrate`: the night `day`, default the last one in the store, else today (UTC)."""
    if day is None:
        nights = sorted(p.parent.name for p in ws.night("x").parent.glob("????-??-??/manifest.json"))
        day = nights[-1] if nights else datetime.now(UTC).date().isoformat()
    found = calibrate(ws, day, progress)
    spending.finish(ws, day)
    return found


def agreement_rows(found: dict[str, Any]) -> list[list[Any]]:
    """One row an evaluator: metric, n, kappa, balanced accuracy, drift, share of probes that fooled it, usable,
    kappa of people among themselves, and the ends of kappa's interval.
    """
    rows = []
    for metric, m in sorted(found.get("metrics", {}).items()):
        low, high = (m.get("ci") or {}).get("kappa") or (None, None)
        drift, fooled = (m.get("drift") or {}).get("state"), (m.get("probes") or {}).get("share")
        people = (m.get("human") or {}).get("kappa")
        known = [m.get(name) for name in ("n", "kappa", "balanced_accuracy")]
        rows.append([metric, *known, drift, fooled, m.get("usable"), people, low, high])
    return rows


def drift_line(found: dict[str, Any]) -> tuple[bool, str]:
    """True where an evaluator drifted, and one readable sentence."""
    metrics = found.get("metrics", {})
    moved = [
        f"{metric}: {'; '.join(m['drift']['causes'])}"
        for metric, m in sorted(metrics.items())
        if (m.get("drift") or {}).get("state") == "drifted"
    ]
    if moved:
        return True, "The judge drifted. " + ". ".join(moved)
    warned = [
        f"{metric}: {'; '.join(m['drift']['causes'])}"
        for metric, m in sorted(metrics.items())
        if (m.get("drift") or {}).get("state") == WARNING
    ]
    if warned:
        return False, "The judge may have drifted, one more such night closes the gate. " + ". ".join(warned)
    states = {(m.get("drift") or {}).get("state") for m in metrics.values()}
    if "steady" in states:
        return False, "The judge answers as the accepted reference says, within its own noise."
    return False, "Drift is not set up: no accepted reference (ragbench calibrate --accept)."
