"""What a number of examples can show: smallest detectable effect, and examples needed.

Normal approximations of Connor (1987, Biometrics 43:207) for paired shares, checked against the exact
McNemar power: at the printed effect it is .74 to .93 from n = 200, so "75 %" is what is promised there,
and 70 % below.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy import special

from ragbench_dagster.stats.intervals import Floats

Z80 = float(special.ndtri(0.8))


def promised_power(n: int) -> float:
    """The power that holds at `detectable_loss` for exact tests on `n` pairs."""
    return 0.75 if n >= 200 else 0.70


def _standard_error(effect: float, n: int, discordance: float | None, spread: float | None) -> float:
    if spread is not None:
        return spread / math.sqrt(n)
    psi = max(discordance or 0.0, effect)
    return math.sqrt(max(psi - effect * effect, 0.0) / n)


def detectable_loss(
    n: int, tests: int, margin: float = 0.0, discordance: float | None = None, spread: float | None = None
) -> float | None:
    """Smallest true loss that the fail rule finds (Holm-proven among `tests`, and at least `margin`).

    Args:
        n: pairs.
        tests: tests of the night (Holm's K).
        margin: the threshold's margin.
        discordance: share of pairs that differ, for 0/1 results.
        spread: standard deviation of the differences, for graded results.

    Returns:
        The loss as a positive number, None where nothing (at most 1) could be shown.
    """
    if n < 2:
        return None
    z = float(special.ndtri(1 - 0.05 / max(tests, 1))) + Z80
    effect = margin
    for _ in range(200):
        error = _standard_error(effect, n, discordance, spread)
        fresh = max(z * error, margin + Z80 * error)
        done = abs(fresh - effect) < 1e-9
        effect = fresh
        if done:
            break
    if spread is None:
        # an exact test needs so many losses to reach its level at all, and must see them in 3 of 4 nights
        losses = math.ceil(math.log2(max(tests, 1) / 0.05))
        if losses > n:
            return None
        effect = max(effect, float(special.betaincinv(losses, n - losses + 1, 0.75)))
    return effect if effect <= 1 else None


def detectable_below(n: int, tests: int, floor: float, spread: float | None = None) -> float | None:
    """Smallest true shortfall below `floor` that the fail rule finds in 3 of 4 nights, as a positive number.

    Args:
        n: rows.
        tests: tests of the night (Holm's K).
        floor: 0 to 1.
        spread: standard deviation of a graded or corrected row; None for 0/1 rows, which is exact.

    Returns:
        None where no result of `n` rows could show one.
    """
    if n < 2:
        return None
    level = 0.05 / max(tests, 1)
    if spread is not None:
        return (float(special.ndtri(1 - level)) + Z80) * spread / math.sqrt(n)
    passing = _most_that_fail(n, floor, level)
    if passing is None:
        return None
    # P(X <= passing) >= .75 holds up to this rate
    rate = float(special.betaincinv(passing + 1, n - passing, 0.25))
    return max(0.0, floor - rate)


def _most_that_fail(n: int, floor: float, level: float) -> int | None:
    """Largest number of passing rows whose exact binomial p against `floor` is at most `level`."""
    if special.bdtr(0, n, floor) > level:
        return None
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        if special.bdtr(middle, n, floor) <= level:
            low = middle
        else:
            high = middle - 1
    return low


def pairs_to_pass(margin: float, discordance: float, confidence: float = 0.975) -> int | None:
    """Pairs with which an unchanged system clears `margin` in 4 of 5 nights; None for margin 0.

    The term `2.5 / margin` mends the normal approximation: without it power is .51 to .56 at psi = .02.
    """
    if margin <= 0:
        return None
    z = float(special.ndtri(confidence)) + Z80
    psi = max(discordance, 1e-4)
    return math.ceil(z * z * psi / margin**2 + 2.5 / margin)


def rows_to_clear(floor: float, value: float, spread: float | None = None) -> int | None:
    """Rows with which a true `value` clears `floor` in 4 of 5 nights; None where it lies below."""
    gap = value - floor
    if gap <= 1e-9:
        return None
    variance = spread**2 if spread is not None else max(value * (1 - value), 1e-4)
    z = float(special.ndtri(0.975)) + Z80
    return math.ceil(z * z * variance / gap**2)


# How often a night fails by chance, over one night and over a month of them.
#
# Several nights of an unchanged but noisy system are several chances to fail: at .05 a night .37 to .48 of months
# had a FAIL in simulations. Tested at .05/30 a night (Bonferroni; Dunn 1961, JASA 56:52), which needs no
# independence of the nights, .00 to .06 had; the price is that a loss is found later.

FalseFails = Literal["night", "month"]
LEVEL = 0.05
NIGHTS = 30


def fail_level(false_fails: FalseFails) -> float:
    """Level of the night's fail tests, over all of them together, for at most 5 % false fails a night or month."""
    return LEVEL / NIGHTS if false_fails == "month" else LEVEL


# Holm (1979, Scand. J. Statist. 6:65): step-down adjustment for several tests.


def holm(p_values: list[float] | Floats) -> list[float]:
    """Adjusted p-values in the given order; each at most 1."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, steps)
    return [float(x) for x in adjusted]
