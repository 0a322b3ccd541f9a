"""A change of a judge's verdicts in people's verdicts, and the change that people saw in labelled pairs.

A judge with sensitivity se and specificity sp shows only J = se + sp - 1 of a true change, so a margin on its
verdicts is passed by losses of margin / J: false pass .24 to .95 with (.95, .6). `people_change` divides by J
with the interval of a ratio by MOVER (Zou, Donner 2008; Donner, Zou 2012) and asks for
raw + margin x J > 0 without any division: false pass .015 to .033. It holds where the judge errs alike on both
nights' answers; `changed_pairs`, from people's labels on changed answers, holds without that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragbench_dagster.stats.agreement_tables import DRAWS, SEED
from ragbench_dagster.stats.correction import MIN_YOUDEN, quantiles
from ragbench_dagster.stats.intervals import Floats, Interval


@dataclass(frozen=True, slots=True)
class PeopleChange:
    """A change in people's verdicts, as far as the judge can show it."""

    value: float | None  # raw / J; None where J is not positive
    interval: Interval | None
    clearance: float | None  # T: above 0 the loss is smaller than the margin; None without a margin
    usable: bool  # the judge is strong enough: its lower J exceeds .1

    @property
    def passes(self) -> bool:
        """The loss is smaller than the margin, at 2.5 % error."""
        return self.usable and self.clearance is not None and self.clearance > 0


def people_change(
    raw: float,
    low: float,
    high: float,
    youden: float,
    youden_low: float,
    youden_high: float,
    margin: float | None = None,
) -> PeopleChange:
    """The change in people's verdicts behind a change of the judge's.

    Args:
        raw, low, high: change of the judge's verdicts with its 95 % interval.
        youden, youden_low, youden_high: J from raw shares, and its 95 % interval.
        margin: the loss that is allowed, positive, in people's verdicts.
    """
    below = youden - youden_low
    clearance = None
    if margin is not None:
        clearance = raw + margin * youden - float(np.hypot(raw - low, margin * below))
    usable = youden_low > MIN_YOUDEN
    if youden <= 0:
        return PeopleChange(None, None, clearance, usable)
    value = float(np.clip(raw / youden, -1.0, 1.0))
    if youden_low <= 0:  # no change is excluded: J may be 0
        return PeopleChange(value, (-1.0, 1.0), clearance, usable)
    ends = (
        _lower_end(raw, raw - low, youden, below, youden_high - youden),
        -_lower_end(-raw, high - raw, youden, below, youden_high - youden),
    )
    return PeopleChange(value, ends, clearance, usable)


def _lower_end(raw: float, half: float, youden: float, below: float, above: float) -> float:
    """The smallest x with 0 inside MOVER's interval of raw - x J: raw - xJ = sqrt(half^2 + (x dJ)^2).

    dJ is J's distance to its lower end for x <= 0, to its upper end for x > 0. Squared, the equation is
    (J^2 - dJ^2) x^2 - 2 raw J x + raw^2 - half^2 = 0, of which the smaller root is wanted.
    """
    d = above if raw - half > 0 else below
    a, b, c = youden**2 - d**2, raw * youden, raw**2 - half**2
    root = float(np.sqrt(max(0.0, b * b - a * c)))
    x = c / (b + root) if b > 0 else (b - root) / a
    return float(np.clip(x, -1.0, 1.0))


@dataclass(frozen=True, slots=True)
class LabelledStratum:
    """Pairs of answers of one kind of change, and what people said of those that were drawn at random."""

    size: int  # examples of this kind on the two nights
    better: int  # people call the new answer good and the old one bad
    worse: int
    same: int

    @property
    def labelled(self) -> int:
        return self.better + self.worse + self.same


@dataclass(frozen=True, slots=True)
class PairsChange:
    """The change that people saw, over all shared examples."""

    value: float
    interval: Interval
    p_loss: float  # one-sided, H0: no loss
    labelled: int
    draws: Floats


def changed_pairs(strata: Sequence[LabelledStratum], unchanged: int, draws: int = DRAWS) -> PairsChange | None:
    """The change in people's verdicts from labelled pairs; None where a kind of change has no label.

    Per stratum Dirichlet(1/2) draws of (better, worse, same), the strata's shares Dirichlet(N + 1/2). Covers
    .943 to .963 in 11 cells, also where the judge errs otherwise on the new answers.

    Args:
        strata: gained, lost, and changed with the same verdict.
        unchanged: shared examples whose answer is the same: they count 0.
    """
    present = [s for s in strata if s.size > 0]
    if any(s.labelled == 0 for s in present):
        return None
    total = sum(s.size for s in present) + unchanged
    if total == 0:
        return None
    rng = np.random.default_rng(SEED + 5)
    sizes = np.array([*(s.size for s in present), unchanged], dtype=float)
    shares = rng.dirichlet(sizes + 0.5, draws)
    change = np.zeros(draws)
    for k, s in enumerate(present):
        cells = rng.dirichlet(np.array([s.better, s.worse, s.same]) + 0.5, draws)
        change += shares[:, k] * (cells[:, 0] - cells[:, 1])
    value = sum(s.size / total * (s.better - s.worse) / s.labelled for s in present)
    p = (1 + float((change >= 0).sum())) / (1 + draws)
    return PairsChange(float(value), quantiles(change), p if present else 1.0, sum(s.labelled for s in present), change)
