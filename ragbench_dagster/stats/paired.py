"""Two results on the same examples: how large is the change, and is it a loss?

Tango (1998, Stat. Med. 17:891) score interval for a difference of paired shares: the false pass rate at the
boundary stays at .0252 or below for a nominal .025, where Wald reaches .0457. Exact McNemar (1947) for the
loss test. For graded scores the larger one of Student's and Hall's (1992) p-value: a few large losses make
plain t pass falsely (.087 at n = 100 where .025 was promised).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from ragbench_dagster.stats.intervals import Z95, Floats, Interval, hall_t, mean_interval, scale, skewness


@dataclass(frozen=True, slots=True)
class Change:
    """A paired difference, new minus old; positive is a gain."""

    value: float
    interval: Interval | None
    n: int
    gains: int
    losses: int
    p_loss: float  # one-sided, H0: no loss
    spread: float  # standard deviation of the differences
    binary: bool

    @property
    def discordance(self) -> float:
        """Share of pairs that differ."""
        return (self.gains + self.losses) / self.n if self.n else 0.0


@lru_cache(maxsize=65_536)
def tango(gains: float, losses: float, n: float, z: float = Z95) -> Interval | None:
    """Score interval of `(gains - losses) / n` for paired 0/1 results; None without pairs.

    Args:
        gains, losses, n: pairs; effective, fractional counts are allowed.
        z: quantile; a Student quantile for clustered pairs.
    """
    if n <= 0:
        return None
    value = (gains - losses) / n

    def score(delta: float) -> float:
        b = -gains - losses + (2 * n - gains + losses) * delta
        c = -losses * delta * (1 - delta)
        q = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        variance = n * (2 * q + delta * (1 - delta))
        gap = gains - losses - n * delta
        if variance <= 0:
            return 0.0 if abs(gap) < 1e-12 else math.copysign(math.inf, gap)
        return gap / math.sqrt(variance)

    def solve(inside: float, outside: float, target: float) -> float:
        for _ in range(60):
            middle = (inside + outside) / 2
            if abs(score(middle)) < target:
                inside = middle
            else:
                outside = middle
        return (inside + outside) / 2

    return solve(value, -1.0, z), solve(value, 1.0, z)


def mcnemar_loss(gains: int, losses: int) -> float:
    """Exact one-sided p of H0 "no loss": P(X >= losses), X ~ Binomial(gains + losses, 1/2)."""
    if losses == 0:
        return 1.0
    return float(special.bdtrc(losses - 1, gains + losses, 0.5))


def mcnemar(gains: int, losses: int) -> float:
    """Exact two-sided McNemar p-value."""
    return min(1.0, 2 * float(special.bdtr(min(gains, losses), gains + losses, 0.5)))


def mean_below(values: Floats, bound: float) -> float:
    """One-sided p of H0 "the mean is at least `bound`": the larger of Student's and Hall's.

    Without spread: 1 unless the constant lies below the bound; then the chance that n rows of a
    distribution just touching the bound all agree cannot be known, and the sign test's `.5^n` stands.
    """
    n = len(values)
    if n < 2:
        return 1.0
    spread = float(values.std(ddof=1))
    gap = float(values.mean()) - bound
    if spread <= 1e-12:
        return 1.0 if gap >= 0 else 0.5**n
    t = gap / (spread / np.sqrt(n))
    corrected = hall_t(t, skewness(values), n)
    return float(max(special.stdtr(n - 1, t), special.stdtr(n - 1, corrected)))


def compare(old: Floats, new: Floats, binary: bool) -> Change | None:
    """The change from `old` to `new`, example by example; None without pairs."""
    n = len(old)
    if n == 0:
        return None
    difference = new - old
    gains, losses = int((difference > 0).sum()), int((difference < 0).sum())
    if binary:
        return compare_counts(gains, losses, n)
    mean, spread = float(difference.mean()), float(difference.std(ddof=1)) if n > 1 else 0.0
    p = mean_below(difference, 0.0)
    if spread <= 1e-12:
        # no pair differs: the rule of three bounds the share of pairs that could
        edge = min(1.0, 3.0 / n) if mean == 0 else None
        interval = None if edge is None else (-edge, edge)
    else:
        interval = mean_interval(
            mean, spread / float(np.sqrt(n)), skewness(difference), n, scale(difference, (-1.0, 1.0))
        )
    return Change(mean, interval, n, gains, losses, p, spread, binary=False)


def compare_counts(gains: int, losses: int, n: int) -> Change:
    """The change of paired 0/1 results from their counts."""
    mean = (gains - losses) / n
    spread = float(np.sqrt(max((gains + losses) / n - mean * mean, 0.0) * n / (n - 1))) if n > 1 else 0.0
    return Change(mean, tango(gains, losses, n), n, gains, losses, mcnemar_loss(gains, losses), spread, binary=True)
