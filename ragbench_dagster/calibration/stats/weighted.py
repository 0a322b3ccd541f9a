"""Shares and means of rows that carry weights, such as traffic.

Kish (1965, Survey Sampling) effective n; Hajek's weighted mean with its linearised variance; for a share,
Wilson on the smaller of the Kish and the linearised n with a Student quantile on Kish n - 1: the only rule
of those tried that keeps .93 in all 81 cells (equal, two-point, log-normal and Pareto weights, rates that
do and do not move with the weight). Compare Korn and Graubard (1998, Survey Methodology 24:193) and Dean
and Pagano (2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragbench_dagster.calibration.stats.intervals import (
    Z95,
    Floats,
    Interval,
    mean_interval,
    scale,
    skewness,
    student,
    wilson,
)

TOO_FEW = 30  # effective rows below which the interval is shown with a warning


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval. `value` is None where there is no row."""

    value: float | None
    interval: Interval | None
    n: int
    n_effective: float
    note: str | None = None

    @property
    def low(self) -> float | None:
        return self.interval[0] if self.interval else None

    @property
    def high(self) -> float | None:
        return self.interval[1] if self.interval else None


def kish(weights: Floats) -> float:
    """Kish's effective number of rows, `(sum w)^2 / sum w^2`; 0 without weight."""
    w = relative(weights)
    squares = float(w @ w)
    return float(w.sum()) ** 2 / squares if squares > 0 else 0.0


def relative(weights: Floats) -> Floats:
    """Weights as shares of the largest: what depends on their ratios alone then overflows for no weight at all."""
    most = float(weights.max(initial=0.0))
    return weights / most if most > 0 else weights


def linearised_variance(values: Floats, weights: Floats) -> float:
    """Variance of Hajek's weighted mean, `n/(n-1) * sum w^2 (y-p)^2 / (sum w)^2`."""
    w = relative(weights)
    n, total = len(values), float(w.sum())
    if n < 2 or total <= 0:
        return 0.0
    centred = values - float(w @ values) / total
    return n / (n - 1) * float(w**2 @ centred**2) / total**2


def effective_n(values: Floats, weights: Floats) -> float:
    """The smaller of Kish's n and the linearised n of a weighted share."""
    by_kish = kish(weights)
    if by_kish <= 0:
        return 0.0
    w = relative(weights)
    p = float(w @ values) / float(w.sum())
    variance = linearised_variance(values, weights)
    if p <= 0 or p >= 1 or variance <= 0:
        return by_kish
    return min(by_kish, len(values), p * (1 - p) / variance)


def is_binary(values: Floats) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def estimate(
    values: Floats,
    weights: Floats | None = None,
    binary: bool | None = None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Estimate:
    """Mean of `values` with its interval.

    Args:
        values: finite numbers; 0 and 1 for a share.
        weights: positive; None for equal weights.
        binary: a share (Wilson) or a mean (Student with Hall's correction); None: read from the values.
        bounds: the scale's ends, for a mean; values beyond them are on another scale, which has no known ends.
    """
    n = len(values)
    if n == 0:
        return Estimate(None, None, 0, 0.0)
    equal = weights is None or bool((weights == weights[0]).all())
    w = np.ones(n) if weights is None or equal else relative(weights)
    share = is_binary(values) if binary is None else binary
    mean = float(values.mean()) if equal else float(w @ values) / float(w.sum())
    kish_n = float(n) if equal else kish(w)
    if share:
        used = kish_n if equal else effective_n(values, w)
        z = Z95 if equal else student(kish_n - 1)
        interval = wilson(mean * used, used, z) if np.isfinite(z) else (0.0, 1.0)
    else:
        used, interval = kish_n, _mean(values, w, mean, kish_n, scale(values, bounds))
    note = f"only {used:.0f} effective rows" if used < TOO_FEW else None
    return Estimate(mean, interval, n, used, note)


def _mean(
    values: Floats, weights: Floats, mean: float, n: float, bounds: tuple[float, float] | None
) -> Interval | None:
    error = float(np.sqrt(linearised_variance(values, weights)))
    if error <= 1e-12:  # all equal: a width of 0 would claim certainty
        return wilson(mean * n, n) if bounds == (0.0, 1.0) and 0 <= mean <= 1 else None
    return mean_interval(mean, error, skewness(values, weights), n, bounds)
