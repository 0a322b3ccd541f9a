"""Percentiles of the system's own time, with intervals from order statistics (exact, distribution-free).

The interval of a percentile lies between two order statistics whose ranks are binomial quantiles
(Conover 1999, Practical Nonparametric Statistics, 3.2); where n is too small for an upper end there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ragbench_dagster.reporting.night import Floats, Night

PERCENTILES = (50, 95, 99)


def binomial_quantile(level: float, n: int, p: float) -> int:
    """Smallest k with P(X <= k) >= level for X ~ Binomial(n, p)."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if special.bdtr(middle, n, p) >= level:
            high = middle
        else:
            low = middle + 1
    return low


def percentile(sorted_values: Floats, q: float) -> tuple[float | None, float | None, float | None]:
    """The q-th percentile (linear) with its 95 % interval; an end is None where n cannot give it.

    Below some hundred values the linear percentile lies between the two largest, and the largest alone may be the
    lower end: the interval is then widened to hold the figure beside it.
    """
    n = len(sorted_values)
    if n == 0:
        return None, None, None
    p = q / 100
    low, high = binomial_quantile(0.025, n, p), binomial_quantile(0.975, n, p) + 1
    value = float(np.quantile(sorted_values, p))
    return (
        value,
        min(value, float(sorted_values[low - 1])) if low >= 1 else None,
        max(value, float(sorted_values[high - 1])) if high <= n else None,
    )


def times(night: Night, system: str, column: str = "latency_ms") -> Floats:
    """All known times of a system in milliseconds, sorted."""
    table = night.timings(system)
    if table is None or column not in table.column_names:
        return np.array([], dtype=float)
    found = np.array([t for t in table[column].to_pylist() if t is not None], dtype=float)
    return np.sort(found[np.isfinite(found)])


def late_share_p(sorted_values: Floats, q: float, limit: float) -> float:
    """One-sided p of H0 "the q-th percentile is at most `limit`": P(X >= late), X ~ Binomial(n, 1 - q)."""
    n = len(sorted_values)
    late = n - int(np.searchsorted(sorted_values, limit, side="right"))
    return 1.0 if late == 0 else float(special.bdtrc(late - 1, n, 1 - q / 100))


def provable_excess(sorted_values: Floats, q: float, level: float) -> float | None:
    """How far the percentile must lie above a limit before `late_share_p` falls to `level`, in milliseconds.

    None where not even the smallest value as a limit would show it.
    """
    n = len(sorted_values)
    late = binomial_quantile(1 - level, n, 1 - q / 100) + 1  # fewest late answers with P(X >= late) <= level
    if late > n:
        return None
    return max(0.0, float(np.quantile(sorted_values, q / 100)) - float(sorted_values[n - late]))


def describe(night: Night, system: str) -> dict[str, Any]:
    """Percentiles with intervals, mean, n, a histogram, and the time to the first token where it is known."""
    own = times(night, system)
    found: dict[str, Any] = {"n": len(own), "answers": _answers(night, system)}
    for q in PERCENTILES:
        value, low, high = percentile(own, q)
        found[f"p{q}_ms"] = {"value": value, "low": low, "high": high}
    found["mean_ms"] = float(own.mean()) if len(own) else None
    found["histogram"] = histogram(own)
    first = times(night, system, "first_token_ms")
    found["first_token"] = {f"p{q}_ms": percentile(first, q)[0] for q in PERCENTILES} if len(first) else None
    return found


def _answers(night: Night, system: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for status in night.responses(system, ["status"])["status"].to_pylist():
        counts[status] = counts.get(status, 0) + 1
    return dict(sorted(counts.items()))


def histogram(values: Floats, bins: int = 24) -> dict[str, list[float]] | None:
    """Counts in bins of equal width on a log scale; None without values."""
    if len(values) == 0:
        return None
    low, high = max(float(values[0]), 0.01), max(float(values[-1]), 0.02)
    edges = np.geomspace(low, high * 1.0001 if high > low else low * 2, bins + 1)
    counts, _ = np.histogram(np.maximum(values, low), edges)
    return {"edges_ms": [float(e) for e in edges], "counts": [int(c) for c in counts]}
