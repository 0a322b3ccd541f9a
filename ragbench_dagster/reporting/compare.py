"""Tonight against a baseline: paired change by part, and its split into judge, system and dataset."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragbench_dagster.calibration.stats.chain import Chain
from ragbench_dagster.calibration.stats.change import Sentinel, split_change
from ragbench_dagster.calibration.stats.clustering import ClusteredChange, clustered_change
from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.baseline import Baseline, Baselines, Pairs
from ragbench_dagster.reporting.night import Mask, Night, Scores
from ragbench_dagster.settings import is_judged
from ragbench_dagster.store import Workspace


def change_in(pairs: Pairs, where: Mask | None = None) -> ClusteredChange | None:
    """The paired change over the shared examples in `where` (a mask over tonight's rows), by clusters."""
    at = np.arange(pairs.n) if where is None else np.flatnonzero(where[pairs.new])
    new = pairs.new[at]
    before, after = pairs.before.value[pairs.old[at]], pairs.after.value[new]
    return clustered_change(before, after, pairs.after.cluster[new], pairs.after.share and pairs.before.share)


def levels(pairs: Pairs, where: Mask | None = None) -> tuple[float | None, float | None]:
    """Means of both sides on the shared examples."""
    at = np.arange(pairs.n) if where is None else np.flatnonzero(where[pairs.new])
    if len(at) == 0:
        return None, None
    return float(pairs.before.value[pairs.old[at]].mean()), float(pairs.after.value[pairs.new[at]].mean())


def change_dict(
    change: ClusteredChange | Chain | None, baseline: Baseline, differs: str | None
) -> dict[str, Any] | None:
    """A change for the summary, on the judge's own scale; None without shared examples."""
    if change is None:
        return None
    found = {
        "baseline": baseline.name,
        "value": change.value,
        "low": change.interval[0] if change.interval else None,
        "high": change.interval[1] if change.interval else None,
        "not_comparable": differs,
        "clusters": change.clusters,
    }
    if isinstance(change, Chain):
        return {**found, "n": change.questions, "gains": None, "losses": None, "releases": change.releases}
    return {**found, "n": change.n, "gains": change.gains, "losses": change.losses, "releases": 0}


def split_of(night: Night, baseline: Baseline, pairs: Pairs) -> dict[str, Any] | None:
    """The change of the overall mean since the baseline as judge + system + dataset + unscored, with intervals.

    Dataset: questions that only one of the two releases holds, or whose labels changed. Unscored: those of both
    that were scored on one night alone. None for another system of the same night, or without shared examples.
    """
    if baseline.night is night or pairs.n < 2:
        return None
    metric = pairs.after.metric
    after, before = pairs.after, pairs.before
    sentinel = None
    if is_judged(metric):
        sentinel = sentinel_pair(baseline.night, night, metric)
        if sentinel is None:
            return None
    # a verdict served from the ledger is the very verdict of the other night: it carries no drift
    fresh = float((after.keys[pairs.new] != before.keys[pairs.old]).mean())
    kept_old, kept_new = _comparable(before, after, pairs.old), _comparable(after, before, pairs.new)
    found = split_change(
        before.value[kept_old], after.value[kept_new],
        np.searchsorted(np.flatnonzero(kept_old), pairs.old),
        np.searchsorted(np.flatnonzero(kept_new), pairs.new),
        sentinel, fresh,
    )  # fmt: skip
    total = float(after.value[after.counted].mean() - before.value[before.counted].mean())
    unscored = {"value": total - found.total, "low": None, "high": None}
    return {"baseline": baseline.name, **found.as_dict(), "total": total, "unscored": unscored}


def _comparable(own: Scores, other: Scores, shared: Any) -> Mask:
    """Counted rows that are shared, or of questions that the other night's table does not hold as scorable."""
    paired = np.zeros(len(own.ids), dtype=bool)
    paired[shared] = True
    lost = np.array(
        [(row := other.place.get(name)) is not None and not other.counted[row] for name in own.ids.tolist()]
    )
    return own.counted & (paired | ~lost)


def sentinel_pair(before: Night, after: Night, metric: str) -> Sentinel | None:
    """Both nights' verdicts on the sentinel rows that both judged; None where there are none."""
    then = before.judge_of(metric).get("sentinel") or {}
    now = after.judge_of(metric).get("sentinel") or {}
    rows = [
        (now["human"][key], then["verdicts"][key], verdict)
        for key, verdict in sorted((now.get("verdicts") or {}).items())
        if verdict is not None and (then.get("verdicts") or {}).get(key) is not None
    ]
    if not rows:
        return None
    human, old, new = np.array(rows, dtype=float).T
    return Sentinel(human, old, new)


def baseline_for(baselines: Baselines, system: str, metric: str) -> Baseline | None:
    """The baseline shown in the summary: the threshold's own, else the last passed night, else the
    one before."""
    threshold = baselines.night.ws.settings.thresholds.get(metric)
    wanted = threshold.baseline if threshold else "accepted"
    found, _ = baselines.find(system, wanted)
    return found or baselines.last_passed(system) or baselines.night_before(system)


def night_compared(ws: Workspace, day: str, system: str, metric: str) -> str:
    """The night that the gate compares `system` with on `metric`, of tonight's own release.

    Raises:
        UserError: there is none; names what to do.
    """
    night = Night.open(ws, day)
    found = baseline_for(Baselines(night), system, metric)
    if found is None or found.night is night:
        raise UserError(f"{day}: no earlier night to compare {system} with; name one: --since NIGHT")
    if found.night.manifest["release"] != night.manifest["release"]:
        raise UserError(
            f"{found.name} has another release than {day}: labels on changed pairs count within one release; "
            f"name a night of this one: --since NIGHT, or accept one"
        )
    return found.night.day
