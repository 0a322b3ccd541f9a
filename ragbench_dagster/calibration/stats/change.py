"""A change of a mean between two nights, split exactly into judge, system and dataset.

T = mean_B - mean_A = judge + system + dataset. On the shared examples S, with
v_i = (w_i^A / W_S^A + w_i^B / W_S^B) / 2, shared = sum v (f_B - f_A) and dataset = T - shared. The judge's
part comes from the sentinel: pi d1 + (1 - pi) d0, with d1 and d0 the mean change of verdict on rows that
people call good and bad, and pi the true pass rate of night A on S (Rogan and Gladen 1978). The order is
fixed: the judge first (at night A's mix), then the system (on tonight's judge's scale), the dataset last.
Compare Kitagawa (1955, JASA 50:1168) for splits of a difference of means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench_dagster.calibration.stats.intervals import Z95, Floats, Interval


@dataclass(frozen=True, slots=True)
class Sentinel:
    """Rows judged on both nights: people's label, night A's verdict, night B's verdict (0 or 1)."""

    human: Floats
    before: Floats
    after: Floats


@dataclass(frozen=True, slots=True)
class Part:
    value: float
    variance: float

    @property
    def interval(self) -> Interval:
        half = Z95 * float(np.sqrt(max(self.variance, 0.0)))
        return self.value - half, self.value + half

    def as_dict(self) -> dict[str, float]:
        low, high = self.interval
        return {"value": self.value, "low": low, "high": high}


@dataclass(frozen=True, slots=True)
class Split:
    """total = judge + system + dataset; shared = judge + system is what the gate decides on."""

    total: float
    shared: Part
    judge: Part
    system: Part
    dataset: Part
    n_shared: int
    fresh: float  # share of shared rows judged afresh: only they can carry the judge's drift

    def as_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "shared": self.shared.as_dict(),
            "judge": self.judge.as_dict(),
            "system": self.system.as_dict(),
            "dataset": self.dataset.as_dict(),
            "n_shared": self.n_shared,
            "judged_afresh": self.fresh,
        }


def split_change(
    before: Floats,
    after: Floats,
    shared_before: NDArray[np.int64],
    shared_after: NDArray[np.int64],
    sentinel: Sentinel | None,
    fresh: float = 1.0,
    weights_before: Floats | None = None,
    weights_after: Floats | None = None,
) -> Split:
    """Split `mean(after) - mean(before)`.

    Args:
        before, after: all scored values of night A and B.
        shared_before, shared_after: positions of the shared examples in both, in the same order.
        sentinel: None where no judge is involved: the judge's part is 0.
        fresh: share of the shared rows that were judged afresh on night B.
        weights_before, weights_after: traffic weights; None for equal.
    """
    wa = np.ones(len(before)) if weights_before is None else weights_before
    wb = np.ones(len(after)) if weights_after is None else weights_after
    mean_a, mean_b = float(wa @ before) / float(wa.sum()), float(wb @ after) / float(wb.sum())
    own_a, own_b = wa[shared_before], wb[shared_after]
    v = (own_a / own_a.sum() + own_b / own_b.sum()) / 2
    difference = after[shared_after] - before[shared_before]
    value = float(v @ difference)
    k = 1 / float(v @ v)
    spread = k / (k - 1) * float(v**2 @ (difference - value) ** 2) if k > 1 else 0.0
    shared = Part(value, spread)

    at_b = wb / wb.sum() * (after - mean_b)
    at_a = -wa / wa.sum() * (before - mean_a)
    at_b[shared_after] += at_a[shared_before] - v * (difference - value)
    rest = at_a.copy()
    rest[shared_before] = 0.0
    influence = float(at_b @ at_b) + float(rest @ rest)
    total = mean_b - mean_a
    dataset = Part(total - value, influence)

    judge = Part(0.0, 0.0)
    if sentinel is not None:
        passing = float(v @ before[shared_before])
        judge = _judge_part(sentinel, passing, k, fresh)
    system = Part(value - judge.value, shared.variance + judge.variance)
    return Split(total, shared, judge, system, dataset, len(shared_before), fresh)


def _judge_part(s: Sentinel, passing: float, n: float, fresh: float) -> Part:
    good = s.human > 0.5
    m1, m0 = int(good.sum()), int((~good).sum())
    d1 = float((s.after - s.before)[good].mean()) if m1 else 0.0
    d0 = float((s.after - s.before)[~good].mean()) if m0 else 0.0
    se = (float(s.before[good].sum()) + 0.5) / (m1 + 1)
    sp = (float((1 - s.before)[~good].sum()) + 0.5) / (m0 + 1)
    youden = se + sp - 1
    if m1 == 0 or m0 == 0 or youden <= 0.05:
        pi, var_pi = passing, passing * (1 - passing) / n
    else:
        pi = float(np.clip((passing + sp - 1) / youden, 0, 1))
        var_pi = passing * (1 - passing) / n + pi**2 * se * (1 - se) / m1 + (1 - pi) ** 2 * sp * (1 - sp) / m0
        var_pi = min(var_pi / youden**2, 0.25)
    variance = pi**2 * _flip_variance(s, good) + (1 - pi) ** 2 * _flip_variance(s, ~good)
    variance += (d1 - d0) ** 2 * var_pi
    return Part(fresh * (pi * d1 + (1 - pi) * d0), fresh**2 * variance)


def _flip_variance(s: Sentinel, rows: NDArray[np.bool_]) -> float:
    """Variance of the mean change of verdict, from the flips with 1/2 added each way."""
    m = int(rows.sum())
    if m == 0:
        return 0.25
    change = (s.after - s.before)[rows]
    up, down, size = float((change > 0).sum()) + 0.5, float((change < 0).sum()) + 0.5, m + 1.0
    mean = (up - down) / size
    return ((up + down) / size - mean**2) / size
