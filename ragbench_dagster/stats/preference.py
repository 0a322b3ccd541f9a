"""Worth of several systems from paired comparisons with ties.

Davidson (1970, JASA 65:317): P(i beats j) = p_i / (p_i + p_j + nu sqrt(p_i p_j)), P(tie) = nu sqrt(p_i p_j) over
the same; without ties it is Bradley and Terry (1952). Ties as half wins give other figures. The likelihood has
a maximum only if every system is linked to every other by wins in both directions (Ford 1957); where that
fails, half a win and half a loss are added to each pair that met, and the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragbench_dagster.stats.intervals import Floats, Interval, wilson

PSEUDO = 0.5  # wins added in each direction where the maximum would lie at infinity


@dataclass(frozen=True, slots=True)
class Worth:
    """Log worth of each system, mean zero, with standard errors of the differences to the first."""

    names: list[str]
    log_worth: Floats
    share: Floats  # worth, summing to 1
    errors: Floats  # standard error of log worth against the first system; 0 for it
    log_nu: float | None  # None without ties
    log_nu_error: float | None
    deviance: float
    smoothed: bool  # pseudo counts were added


def connected(wins: Floats) -> bool:
    """True where every system reaches every other over wins (or ties, given as wins in both directions)."""
    n = len(wins)
    reach = (wins > 0) | np.eye(n, dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(n, 2)))))):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    return bool(reach.all())


def davidson(names: list[str], wins: Floats, ties: Floats) -> Worth | None:
    """Maximum likelihood by Newton's method.

    Args:
        names: the systems.
        wins: `wins[i, j]` = times i beat j.
        ties: symmetric, `ties[i, j]` = ties of i and j.

    Returns:
        None where some systems never met, directly or through others.
    """
    n = len(names)
    met = (wins + wins.T + ties) > 0
    if n < 2 or not connected(met.astype(float)):
        return None
    smoothed = not connected(wins + ties)
    used = wins + PSEUDO * met * (1 - np.eye(n)) if smoothed else wins.astype(float)
    tied = float(ties.sum()) > 0
    upper = [(i, j) for i in range(n) for j in range(i + 1, n) if met[i, j]]
    params = np.zeros(n - 1 + tied)  # log worth of systems 2.. against the first; log nu
    if tied:
        params[-1] = np.log(max(float(ties.sum()) / max(float(used.sum()), 1e-9), 1e-3))
    hessian = np.eye(len(params))
    for _ in range(100):
        gradient, hessian = _derivatives(params, upper, used, ties, n, tied)
        step = np.linalg.solve(hessian, gradient)
        size = float(np.abs(step).max())
        params = params + step * min(1.0, 2.0 / size if size else 1.0)
        if size < 1e-10:
            break
    covariance = np.linalg.inv(hessian)
    worth = np.concatenate([[0.0], params[: n - 1]])
    errors = np.concatenate([[0.0], np.sqrt(np.diag(covariance)[: n - 1])])
    deviance = -2 * _log_likelihood(params, upper, used, ties, n, tied)
    return Worth(
        list(names),
        worth - worth.mean(),
        np.exp(worth) / np.exp(worth).sum(),
        errors,
        float(params[-1]) if tied else None,
        float(np.sqrt(covariance[-1, -1])) if tied else None,
        float(deviance),
        smoothed,
    )


def _shares(params: Floats, i: int, j: int, n: int, tied: bool) -> tuple[float, float, float]:
    worth = np.concatenate([[0.0], params[: n - 1]])
    nu = float(np.exp(params[-1])) if tied else 0.0
    a, b = float(np.exp(worth[i])), float(np.exp(worth[j]))
    middle = nu * np.sqrt(a * b)
    total = a + b + middle
    return a / total, b / total, float(middle) / total


def _log_likelihood(
    params: Floats, pairs: list[tuple[int, int]], wins: Floats, ties: Floats, n: int, tied: bool
) -> float:
    total = 0.0
    for i, j in pairs:
        for count, share in zip((wins[i, j], wins[j, i], ties[i, j]), _shares(params, i, j, n, tied), strict=True):
            total += count * np.log(share) if count else 0.0
    return float(total)


def _derivatives(
    params: Floats, pairs: list[tuple[int, int]], wins: Floats, ties: Floats, n: int, tied: bool
) -> tuple[Floats, NDArray[np.float64]]:
    """Gradient of the log likelihood and minus its Hessian (a multinomial per pair: information = covariance)."""
    size = len(params)
    gradient, information = np.zeros(size), np.zeros((size, size))
    for i, j in pairs:
        # derivative of the three log numerators (i wins, j wins, tie) by each parameter
        design = np.zeros((3, n + tied))
        design[0, i] = design[1, j] = 1.0
        design[2, i] = design[2, j] = 0.5
        if tied:
            design[2, n] = 1.0
        rows = design[:, 1:]
        shares = np.array(_shares(params, i, j, n, tied))
        counts = np.array([wins[i, j], wins[j, i], ties[i, j]], dtype=float)
        total = counts.sum()
        gradient += rows.T @ (counts - total * shares)
        information += total * rows.T @ (np.diag(shares) - np.outer(shares, shares)) @ rows
    return gradient, information


def win_share(wins: int, ties: int, losses: int) -> tuple[float | None, Interval | None]:
    """Wins plus half the ties, as a share, with a Wilson interval on the n that its own variance is worth."""
    n = wins + ties + losses
    if n == 0:
        return None, None
    share = (wins + ties / 2) / n
    variance = (wins + ties / 4) / n - share**2
    if variance <= 0 or share <= 0 or share >= 1:
        return share, wilson(share * n, n)
    # ties carry less variance than wins and losses; never more than four times n is claimed
    worth = min(share * (1 - share) / variance, 4.0) * n
    return share, wilson(share * worth, worth)
