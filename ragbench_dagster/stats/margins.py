"""Which margins, floors and numbers of examples and labels can decide a night at all.

An unchanged system of n pairs, of which a share psi differs, passes a margin with the chance that its own
interval clears it: exact over all tables for verdicts without a judge's error (Tango's score test), and for
judged ones by the rule of `judged_change` over the judge's error in J. The smallest margin that is cleared in
4 of 5 nights agrees with simulations to .01 for n from 200 to 5,000, psi .02 to .2 and four judges. Read n as
the independent rows of `clustering`. Floors: the distance at which a true value clears its floor, from the linear form
q - (1-f)(1-sp) - f se of the Rogan-Gladen rate at the floor f (Fieller 1954), with MOVER on Jeffreys limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.intervals import Z95, Floats, wilson
from ragbench_dagster.stats.paired import tango
from ragbench_dagster.stats.power import Z80

OFTEN = 0.8  # "4 of 5 nights"
STEP = 0.01  # margins are advised in hundredths
MOST = 1_000_000  # examples or labels beyond which "not reachable" is said
EXACT = 1_000  # differing pairs up to which all tables are summed


@dataclass(frozen=True, slots=True)
class JudgeStrength:
    """A judge's sensitivity and specificity, and the labelled rows that they are known from."""

    se: float
    sp: float
    positives: float
    negatives: float

    @classmethod
    def of(cls, table: Table) -> JudgeStrength:
        """From a calibration table, with half a row added to each cell."""
        return cls(
            (table.tp + 0.5) / (table.positives + 1), (table.tn + 0.5) / (table.negatives + 1),
            max(table.positives, 1), max(table.negatives, 1),
        )  # fmt: skip

    @property
    def youden(self) -> float:
        return self.se + self.sp - 1

    def with_labels(self, labels: float) -> JudgeStrength:
        """The same judge known from `labels` rows of the same mix."""
        share = labels / (self.positives + self.negatives)
        return JudgeStrength(self.se, self.sp, self.positives * share, self.negatives * share)


def pass_power(n: float, psi: float, margin: float, judge: JudgeStrength | None = None) -> float:
    """Chance that an unchanged system passes the margin.

    Args:
        n: pairs, as independent ones.
        psi: share of pairs whose verdicts differ between the two nights.
        margin: allowed loss, positive; in people's verdicts where there is a judge.
        judge: None for what no judge decides.
    """
    if n < 2 or margin <= 0:
        return 0.0
    size, psi = max(2, round(n)), min(max(psi, 1e-6), 1.0)
    error = math.sqrt(psi / size)
    half = -(tango(psi * size / 2, psi * size / 2, size) or (-1.0, 1.0))[0]
    if judge is None:
        if size * psi <= EXACT:
            return _exact_power(size, psi, margin)
        return float(special.ndtr((margin - half) / error))
    youden, weights, below = _youden_nights(judge)
    needed = np.hypot(half, margin * below) - margin * youden
    return float(weights @ special.ndtr(-needed / error))


def _youden_nights(judge: JudgeStrength) -> tuple[Floats, Floats, float]:
    """J as sets of labels would show it, their chances, and J's usual distance to its lower end."""
    p, m = judge.positives, judge.negatives
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    shown = math.sqrt(judge.se * (1 - judge.se) / p + judge.sp * (1 - judge.sp) / m)
    se, sp = (judge.se * p + 0.5) / (p + 1), (judge.sp * m + 0.5) / (m + 1)
    spread = math.sqrt(se * (1 - se) / (p + 2) + sp * (1 - sp) / (m + 2))
    below = Z95 * spread + judge.youden - (se + sp - 1)
    return judge.youden + nodes * shown, weights / weights.sum(), below


def _exact_power(n: int, psi: float, margin: float) -> float:
    """Sum over all numbers of differing pairs d and gains of those tables whose Tango end clears the margin."""
    reach = 6 * math.sqrt(n * psi * (1 - psi)) + 4
    differing = np.arange(max(0, int(n * psi - reach)), min(n, int(n * psi + reach)) + 1)
    total = 0.0
    for d, chance in zip(differing.tolist(), _binomial(n, psi, differing).tolist(), strict=True):
        gains = np.arange(d + 1)
        total += chance * float(_binomial(d, 0.5, gains)[_clears(gains, d - gains, n, margin)].sum())
    return total


def _binomial(n: int, p: float, k: np.ndarray) -> Floats:
    log = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(log + special.xlogy(k, p) + special.xlog1py(n - k, -p)), dtype=float)


def _clears(gains: np.ndarray, losses: np.ndarray, n: int, margin: float) -> np.ndarray:
    """Tango's score at -margin exceeds the quantile: the interval's lower end lies above."""
    delta = -min(margin, 1.0)
    b = -gains - losses + (2 * n - gains + losses) * delta
    c = -losses * delta * (1 - delta)
    q = (np.sqrt(np.maximum(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2 * q + delta * (1 - delta))
    return np.asarray((gains - losses - n * delta) > Z95 * np.sqrt(np.maximum(variance, 0.0)))


def least_margin(n: float, psi: float, judge: JudgeStrength | None = None, often: float = OFTEN) -> float | None:
    """The smallest margin, in hundredths, that an unchanged system passes `often`; None beyond .5."""
    steps = range(1, 51)
    return next((k * STEP for k in steps if pass_power(n, psi, k * STEP, judge) >= often), None)


def examples_to_pass(margin: float, psi: float, judge: JudgeStrength | None = None, often: float = OFTEN) -> int | None:
    """Independent pairs with which an unchanged system passes `often`; None where labels are what is missing."""
    return _smallest(lambda n: pass_power(n, psi, margin, judge) >= often)


def labels_to_pass(n: float, margin: float, psi: float, judge: JudgeStrength, often: float = OFTEN) -> int | None:
    """Labels of the same mix with which an unchanged system passes `often`; None where examples are missing."""
    return _smallest(lambda k: pass_power(n, psi, margin, judge.with_labels(k)) >= often)


def _smallest(holds: Callable[[int], bool]) -> int | None:
    """The smallest whole number from 10 for which `holds`, to 2 figures upwards; None beyond `MOST`."""
    low, high = 10, 20
    while not holds(high):
        low, high = high, high * 2
        if high > MOST:
            return None
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    step = 10 ** max(0, len(str(high)) - 2)
    return -(-high // step) * step


def floor_distance(n: float, value: float, judge: JudgeStrength | None = None) -> float:
    """How far below a true `value` a floor may stand to be cleared in 4 of 5 nights."""
    low, high = 0.0, value
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if clears_floor(n, value, value - middle, judge) else (middle, high)
    return high


def clears_floor(n: float, value: float, floor: float, judge: JudgeStrength | None = None) -> bool:
    """True where a true `value` clears `floor` in 4 of 5 nights of n rows."""
    gap = value - floor
    if gap <= 0 or n < 2:
        return False
    if judge is None:
        unlucky = max(0.0, value - Z80 * math.sqrt(value * (1 - value) / n))
        found = wilson(unlucky * n, n)
        return found is not None and found[0] >= floor
    if judge.youden <= 0:
        return False
    q = value * judge.se + (1 - value) * (1 - judge.sp)
    parts = (
        # weight in the form, share, rows, and the side that lowers the form
        (1.0, q, n, 0.025), (floor, judge.se, judge.positives, 0.975), (1 - floor, judge.sp, judge.negatives, 0.025),
    )  # fmt: skip
    reach = math.sqrt(sum((w * _jeffreys_reach(p, m, side)) ** 2 for w, p, m, side in parts))
    unlucky = Z80 * math.sqrt(sum(w * w * p * (1 - p) / m for w, p, m, _ in parts))
    return gap * judge.youden >= reach + unlucky


def _jeffreys_reach(p: float, n: float, side: float) -> float:
    """Distance from a share to its Jeffreys limit, which is short on the side of a near end of the scale."""
    return abs(p - float(special.betaincinv(p * n + 0.5, (1 - p) * n + 0.5, side)))


def labels_to_clear(n: float, value: float, floor: float, judge: JudgeStrength) -> int | None:
    """Labels with which a true `value` clears `floor` in 4 of 5 nights; None where examples are missing."""
    return _smallest(lambda k: clears_floor(n, value, floor, judge.with_labels(k)))


def examples_to_clear(value: float, floor: float, judge: JudgeStrength | None = None) -> int | None:
    """Rows with which a true `value` clears `floor` in 4 of 5 nights; None where labels are missing."""
    return _smallest(lambda n: clears_floor(n, value, floor, judge))


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a margin can decide, and what would make it decide: each alone would do."""

    power: float  # chance that an unchanged system passes all primary margins like this one
    margin: float | None
    examples: int | None
    labels: int | None  # None without a judge, or where more labels cannot do it


def outlook(n: float, psi: float, margin: float, judge: JudgeStrength | None = None, primaries: int = 1) -> Outlook:
    """The chance that an unchanged system passes, and with what it would pass in 4 of 5 nights.

    Args:
        primaries: primary margins of the gate, taken as equal and independent: all of them must pass.
    """
    each = OFTEN ** (1 / max(primaries, 1))
    return Outlook(
        pass_power(n, psi, margin, judge) ** max(primaries, 1),
        least_margin(n, psi, judge, each),
        examples_to_pass(margin, psi, judge, each),
        labels_to_pass(n, margin, psi, judge, each) if judge is not None else None,
    )


# Advice by number of independent examples: at least so many -> margin. Settled on the tables of pass power for
# five retrieval metrics or two judged ones; the judge between the two simulated ones stands between them.
_RETRIEVAL = ((2_000, 0.03), (700, 0.05), (200, 0.08))
_STRONG = ((2_000, 0.05), (700, 0.08), (200, 0.10))
_MIDDLING = ((2_000, 0.06), (700, 0.09), (200, 0.15))
_WEAK = ((2_000, 0.08), (700, 0.10))
_FLOOR_RAW = ((2_000, 0.05), (700, 0.06), (200, 0.10))
_FLOOR_CORRECTED = ((2_000, 0.10), (700, 0.11), (200, 0.17))
STRONG, WEAK = 0.85, 0.65  # Youden's J


def advised_margin(n: float, youden: float | None = None) -> float | None:
    """A margin that can decide a night; None below 200 examples, and below 700 for a weak judge.

    Args:
        n: independent examples.
        youden: J of the metric's judge; None for a retrieval metric.
    """
    if youden is None:
        return _at(_RETRIEVAL, n)
    return _at(_STRONG if youden >= STRONG else _MIDDLING if youden >= WEAK else _WEAK, n)


def advised_floor(n: float, accepted: float, corrected: bool) -> float | None:
    """A floor below the accepted value that an unchanged system clears; None below 200 examples."""
    distance = _at(_FLOOR_CORRECTED if corrected else _FLOOR_RAW, n)
    return None if distance is None else max(0.0, math.floor((accepted - distance) * 100 + 1e-9) / 100)


def _at(table: tuple[tuple[int, float], ...], n: float) -> float | None:
    return next((value for least, value in table if n >= least), None)
