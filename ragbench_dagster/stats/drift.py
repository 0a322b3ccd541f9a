"""Has the judge moved? An exact test of tonight's round of sentinel verdicts against the reference rounds.

While the judge is steady, tonight's round and the reference rounds are exchangeable: in a row whose R + 1
verdicts hold K passes, tonight is in the minority with chance min(K, R + 1 - K) / (R + 1). The number of rows
where it is follows a sum of independent such events, whatever each row's own noise: a permutation test of one
round against R, with no noise fitted. False alarms stay at .0075 where .01 is promised; the count rule it
replaces reached .106. Rounds taken in one session miss a judge that wanders from night to night: take them on
different nights, and close the gate only where two nights running alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragbench_dagster.stats.intervals import Floats

ROUNDS = 5  # reference rounds, on five nights


@dataclass(frozen=True, slots=True)
class RoundTest:
    """Tonight's round against the reference rounds."""

    rows: int  # judged tonight and known to the reference
    informative: int  # rows that could tell: not all verdicts agree, and no tie
    odd: int  # informative rows where tonight is the odd one out
    p: float  # chance of as many or more under "steady"
    alarm_at: int | None  # odd rows from which the alarm stands; None: so few can tell that none could

    @property
    def alarm(self) -> bool:
        return self.alarm_at is not None and self.odd >= self.alarm_at

    @property
    def one_in(self) -> int:
        """Chance explains as much in 1 of so many nights."""
        return one_in(self.p)


def one_in(p: float) -> int:
    """p as "1 of N nights", rounded down so that nothing is made rarer than it is."""
    return max(1, int(1 / p + 1e-9)) if p > 0 else 10**9


def rounds_moved(
    reference_passes: Sequence[int], rounds: Sequence[int], tonight: Sequence[int], level: float = 0.01
) -> RoundTest:
    """The exact test of one evaluator.

    Args:
        reference_passes: passes of each row among its reference rounds.
        rounds: reference rounds of each row; rows that missed some have fewer.
        tonight: 1 where the row passed tonight, else 0.
        level: false alarms a night of this evaluator.
    """
    all_rounds = np.asarray(rounds, dtype=np.int64) + 1
    now = np.asarray(tonight, dtype=np.int64)
    passes = np.asarray(reference_passes, dtype=np.int64) + now
    minority = np.minimum(passes, all_rounds - passes)
    # all alike, or as many passes as failures: no verdict is the odd one
    tells = (minority > 0) & (2 * passes != all_rounds)
    odd = tells & (now == (2 * passes < all_rounds))
    chances = minority[tells] / all_rounds[tells]
    tail = upper_tail(chances)
    count = int(odd.sum())
    reached = np.flatnonzero(tail <= level)
    at = int(reached[0]) if len(reached) and int(reached[0]) <= len(chances) else None
    return RoundTest(len(now), int(tells.sum()), count, float(tail[count]), at)


def upper_tail(chances: Floats) -> Floats:
    """P(S >= s) for s = 0 .. n + 1, S the number of independent events with these chances (Poisson-binomial)."""
    density = np.ones(1)
    for chance, count in zip(*np.unique(chances, return_counts=True), strict=True):
        density = np.convolve(density, _binomial(int(count), float(chance)))
    tail = np.concatenate([np.cumsum(density[::-1])[::-1], [0.0]])
    return np.minimum(tail, 1.0)


def _binomial(n: int, chance: float) -> NDArray[np.float64]:
    k = np.arange(n + 1)
    log = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(log + k * np.log(chance) + (n - k) * np.log1p(-chance)), dtype=float)


def beta_binomial_tail(count: int, rows: int, a: float, b: float) -> float:
    """P(X >= count) for X ~ BetaBinomial(rows, a, b): how unusual a number of lost verdicts is."""
    if count <= 0:
        return 1.0
    k = np.arange(count, rows + 1)
    log = (
        special.gammaln(rows + 1) - special.gammaln(k + 1) - special.gammaln(rows - k + 1)
        + special.betaln(k + a, rows - k + b) - special.betaln(a, b)
    )  # fmt: skip
    return float(min(1.0, np.exp(log).sum()))


# Did a system's errors come bunched in time? An outage fails calls in a row, a regression here and there.
#
# Wald and Wolfowitz (1940, Ann. Math. Stat. 11:147), exact: given the number of errors, all orders of the calls
# are equally likely where errors do not depend on time. The normal approximation is false (.011 at 1 % errors for
# a promised .001); the exact sum flags scattered errors in .0020 of nights at most.

BUNCHED = 0.001  # chance below which errors are called bunched


@dataclass(frozen=True, slots=True)
class Bunching:
    """Errors in call order."""

    calls: int
    errors: int
    runs: int  # of errors that follow each other
    p: float  # chance of as few runs or fewer, were the errors scattered

    @property
    def bunched(self) -> bool:
        return self.p <= BUNCHED


def errors_bunched(errors_in_call_order: Sequence[bool] | Sequence[int] | NDArray[np.bool_]) -> Bunching:
    """The exact runs test of one pass over a system's questions.

    Args:
        errors_in_call_order: 1 for each call that failed, by the time it was started. The order of the calls
            must not follow their topic (by hash), else a topic that breaks looks like an outage.

    Returns:
        p = 1 below two errors, and where every call failed: then their order says nothing.
    """
    failed = np.asarray(errors_in_call_order, dtype=bool)
    n, e = len(failed), int(failed.sum())
    runs = int((failed & ~np.concatenate([[False], failed[:-1]])).sum()) if n else 0
    if e < 2 or e == n:
        return Bunching(n, e, runs, 1.0)
    i = np.arange(1, min(runs, n - e + 1) + 1)
    log = _log_choose(e - 1, i - 1) + _log_choose(n - e + 1, i) - _log_choose(n, np.array([e]))
    return Bunching(n, e, runs, float(min(1.0, np.exp(log).sum())))


def _log_choose(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    found = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(found, dtype=float)
