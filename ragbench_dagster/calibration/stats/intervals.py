"""Intervals for a share and for a mean, from equally weighted rows.

Wilson (1927, JASA 22:209) for shares: its exact coverage at n = 50, 200 and 2,000 lies in .935 to .959 for
rates of .5, .8 and .97. Hall (1992, JRSS-B 54:221) for means of skewed scores: a cubic transformation of
Student's t that removes the first-order effect of skewness and is monotone, so it can be inverted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

Interval = tuple[float, float]
Floats = NDArray[np.float64]
Z95 = float(special.ndtri(0.975))


def wilson(successes: float, n: float, z: float = Z95) -> Interval | None:
    """Wilson score interval of a share; `n` may be an effective, fractional number of rows.

    Args:
        successes: passing rows, 0 to `n`.
        n: rows; None is returned for 0.
        z: quantile; a Student quantile for weighted rows.
    """
    if n <= 0:
        return None
    p = min(1.0, max(0.0, successes / n))
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    low = 0.0 if p == 0 else max(0.0, centre - half)
    high = 1.0 if p == 1 else min(1.0, centre + half)
    return low, high


def student(df: float, level: float = 0.975) -> float:
    """Quantile of Student's t with `df` degrees of freedom (at least 1, else it is infinite)."""
    return float(special.stdtrit(max(df, 1e-9), level)) if df >= 1 else float("inf")


def hall_t(t: float, skew: float, n: float) -> float:
    """Hall's transformed t: `sqrt(n) * (s + g s^2/3 + g^2 s^3/27 + g/(6n))` with `s = t / sqrt(n)`."""
    s = t / np.sqrt(n)
    return float(np.sqrt(n) * (s + skew * s * s / 3 + skew * skew * s**3 / 27 + skew / (6 * n)))


def hall_inverse(x: float, skew: float, n: float) -> float:
    """The t whose `hall_t` is `x`."""
    if abs(skew) < 1e-9:
        return x
    inner = 1 + skew * (x / np.sqrt(n) - skew / (6 * n))
    return float(np.sqrt(n) * 3 / skew * (np.cbrt(inner) - 1))


def skewness(values: Floats, weights: Floats | None = None) -> float:
    """Third standardised moment; 0 where all values are equal."""
    w = np.full(len(values), 1 / len(values)) if weights is None else weights / weights.sum()
    centred = values - float(w @ values)
    spread = float(w @ centred**2)
    return 0.0 if spread <= 1e-24 else float(w @ centred**3) / spread**1.5


def scale(values: Floats, bounds: Interval | None) -> Interval | None:
    """`bounds` where all values lie within them, else None: an imported evaluator may have a scale of its own."""
    if bounds is None or (len(values) and not bounds[0] <= values.min() <= values.max() <= bounds[1]):
        return None
    return bounds


def mean_interval(
    mean: float, standard_error: float, skew: float, n: float, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> Interval | None:
    """Interval of a mean: Student's t with Hall's correction for skewness, cut to `bounds`.

    Both ends are the wider one of the plain and the corrected interval: the correction may only protect.
    None below two rows. A mean beyond `bounds` is on another scale: it is not cut, or its interval would stand upside
    down.
    """
    if n < 2:
        return None
    q = student(n - 1)
    if not np.isfinite(q):
        return None
    ends = [q, hall_inverse(q, skew, n)], [-q, hall_inverse(-q, skew, n)]
    low = mean - standard_error * max(ends[0])
    high = mean - standard_error * min(ends[1])
    if bounds is not None and bounds[0] <= mean <= bounds[1]:
        low, high = max(bounds[0], low), min(bounds[1], high)
    return float(low), float(high)
