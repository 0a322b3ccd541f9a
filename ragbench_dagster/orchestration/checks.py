"""Asset checks: readable results beside the assets, each for one day.

Checks are separate from the assets and carry the partitions definition, so that one day's result is that
day's. They only read what the stages wrote. A check never catches exceptions: a bug must not look like bad data.
"""

import warnings
from collections.abc import Callable
from typing import Any

import dagster as dg

from ragbench_dagster.metrics import metric_of
from ragbench_dagster.orchestration.assets.bodies import metadata
from ragbench_dagster.orchestration.resources import WorkspaceResource
from ragbench_dagster.results import GateDecision
from ragbench_dagster.store import Workspace, read_json
from ragbench_dagster.traffic.privacy import bad_lines
from ragbench_dagster.traffic.scan import left_over

# The one warning partitioned checks give; tried, and they work (see `_define`).
warnings.filterwarnings(
    "ignore", category=dg.PreviewWarning, message="Specifying a partitions_def on an AssetCheckSpec"
)

Finding = tuple[bool, str, dict[str, Any]]  # passed, one readable line, numbers


def quarantine_rate(ws: Workspace, day: str) -> Finding:
    """The share of bad lines stays below `traffic.quarantine_max`."""
    bad, read = bad_lines(ws, day)
    share = bad / (bad + read) if bad + read else 0.0
    return (
        share <= ws.settings.traffic.quarantine_max,
        f"{bad} of {bad + read} lines in quarantine",
        {"share": share},
    )


def no_personal_data_left(ws: Workspace, day: str) -> Finding:
    """An independent search of what was written finds no personal data."""
    left = left_over(ws, day)
    if left is None:
        return False, "not searched yet", {}
    kinds = ", ".join(f"{n} x {kind}" for kind, n in sorted(left.items()))
    return not left, f"left over: {kinds}" if left else "nothing left", {"left_over": sum(left.values())}


def scrub_floor(ws: Workspace, day: str) -> Finding:
    """Recall on the labelled set is at or above `scrub.floor` for every type."""
    quality = read_json(ws.night(day) / "scrub_quality.json") or {}
    below = quality.get("below_floor", [])
    return not below, "; ".join(below) or f"measured on {quality.get('rows', 0)} rows", {"below": len(below)}


def release_size(ws: Workspace, day: str) -> Finding:
    """The release holds `dataset.min_examples` or more."""
    release = _release(ws, day)
    n, least = (release.examples.num_rows if release else 0), ws.settings.min_examples
    return n >= least, f"{n} examples, {least} wanted", {"examples": n}


def duplicate_rate(ws: Workspace, day: str) -> Finding:
    """Deduplication merged no more than `dataset.duplicate_rate_max`: above it, the normal form is too greedy."""
    release = _release(ws, day)
    requests = sum(release.examples["count"].to_pylist()) if release else 0
    rate = 1 - release.examples.num_rows / requests if release and requests else 0.0
    return (
        rate <= ws.settings.dataset.duplicate_rate_max,
        f"{rate:.1%} of requests repeat another",
        {"rate": rate},
    )


def category_mix(ws: Workspace, day: str) -> Finding:
    """No single category holds nine tenths of the examples: an average over it would hide the others."""
    release = _release(ws, day)
    counts = [c["counts"] for c in release.examples["category"].value_counts().to_pylist()] if release else []
    share = max(counts) / sum(counts) if counts else 0.0
    return (
        share <= 0.9 or len(counts) < 2,
        f"{len(counts)} categories, the largest holds {share:.0%}",
        {"largest": share},
    )


def labels_known(ws: Workspace, day: str) -> Finding:
    """The ids that labels name exist in the corpus or in what systems return."""
    from ragbench_dagster.evaluation.pipeline import unknown_labels

    found = unknown_labels(ws, day)
    return found["unknown"] == 0, found["message"], {"unknown": found["unknown"], "labels": found["labels"]}


def verdict_coverage(ws: Workspace, day: str) -> Finding:
    """Enough applicable items were scored (`gate.min_coverage`), for every system and metric."""
    from ragbench_dagster.reporting.summary import summary_for_json

    systems = summary_for_json(ws, day)["systems"]
    least = ws.settings.gate.min_coverage
    low = [
        f"{s} {m}: {v['coverage']:.0%}"
        for s, ms in systems.items()
        for m, v in ms.items()
        if isinstance(v, dict) and v.get("coverage") is not None and v["coverage"] < least
    ]
    return not low, "; ".join(low[:10]) or f"all at {least:.0%} or more", {"below": len(low)}


def judge_pinned(ws: Workspace, day: str) -> Finding:
    """The judge's name or revision fixes which model answers."""
    judge = ws.settings.judge
    floating = [m for m in ws.settings.judged_metrics if not judge.for_metric(m).pinned]
    return (
        not floating,
        f"floating for: {', '.join(floating)}" if floating else "pinned",
        {"floating": len(floating)},
    )


def judge_agreement(ws: Workspace, day: str) -> Finding:
    """Cohen's kappa with people is at or above `calibration.min_kappa` for every evaluator."""
    from ragbench_dagster.calibration.calibrate import agreement_rows

    rows = agreement_rows(read_json(ws.night(day) / "calibration.json") or {})
    least = ws.settings.calibration.min_kappa
    low = [f"{r[0]}: {'unknown' if r[2] is None else f'{r[2]:.2f}'}" for r in rows if r[2] is None or r[2] < least]
    return (
        bool(rows) and not low,
        "; ".join(low) or f"{len(rows)} evaluators at {least} or more",
        {"below": len(low)},
    )


def judge_drift(ws: Workspace, day: str) -> Finding:
    """The judge still answers as the accepted reference says, within its own noise."""
    from ragbench_dagster.calibration.calibrate import drift_line

    drifted, line = drift_line(read_json(ws.night(day) / "calibration.json") or {})
    return not drifted, line, {}


def thresholds(ws: Workspace, day: str) -> Finding:
    """The gate's word for the night."""
    gate = ws.result(day, GateDecision)
    if gate is None:
        return False, "not decided: ", {}
    return gate.verdict == "pass", f"{gate.verdict}: {'; '.join(gate.reasons[:10])}", {}


def latency_budget(ws: Workspace, day: str) -> Finding:
    """Latency percentiles stay within the thresholds that name one."""
    gate = ws.result(day, GateDecision)
    rows = gate.rows if gate else []
    late = [r for r in rows if metric_of(r.metric).family == "latency" and r.verdict == "fail"]
    return (
        not late,
        "; ".join(f"{r.system} {r.metric}" for r in late[:10]) or "within budget",
        {"late": len(late)},
    )


def _release(ws: Workspace, day: str) -> Any:
    from ragbench_dagster.dataset.release import resolve

    return resolve(ws, day)


# asset -> [(check, blocking)]
CHECKS: dict[str, list[tuple[Callable[[Workspace, str], Finding], bool]]] = {
    "sampled_requests": [(quarantine_rate, False)],
    "scrubbed_requests": [(no_personal_data_left, True)],
    "scrub_quality": [(scrub_floor, True)],
    "dataset_release": [(release_size, False), (duplicate_rate, False), (category_mix, False)],
    "judge_calibration": [(judge_pinned, False), (judge_agreement, False), (judge_drift, False)],
    "score_table": [(labels_known, False)],
    "summary": [(verdict_coverage, False)],
    "gate": [(thresholds, False), (latency_budget, False)],
}


def asset_checks(days: dg.DailyPartitionsDefinition) -> list[dg.AssetChecksDefinition]:
    """All checks, partitioned by `days`."""
    return [_define(days, asset, check, blocking) for asset, found in CHECKS.items() for check, blocking in found]


def _define(
    days: dg.DailyPartitionsDefinition, asset: str, check: Callable[[Workspace, str], Finding], blocking: bool
) -> dg.AssetChecksDefinition:
    name = check.__name__

    @dg.asset_check(
        asset=dg.AssetKey(asset), name=name, blocking=blocking, partitions_def=days, description=check.__doc__
    )
    def body(context: dg.AssetCheckExecutionContext, workspace: WorkspaceResource) -> dg.AssetCheckResult:
        return evaluate(workspace.open(), context.partition_key, check, blocking)

    return body


def evaluate(
    ws: Workspace, day: str, check: Callable[[Workspace, str], Finding], blocking: bool
) -> dg.AssetCheckResult:
    """One check of one day as Dagster's result: an ERROR where it blocks, else a WARN."""
    passed, line, numbers = check(ws, day)
    severity = dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN
    return dg.AssetCheckResult(
        passed=bool(passed), severity=severity, description=line[:1000], metadata=metadata(**numbers)
    )
