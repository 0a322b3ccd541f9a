"""Percentiles of the system's own time, with intervals from order statistics (exact, distribution-free).

The interval of a percentile lies between two order statistics whose ranks are binomial quantiles
(Conover 1999, Practical Nonparametric Statistics, 3.2); where n is too small for an upper end there is none.

An answer that did not come in time took longer than every limit: it enters as infinite. A percentile that falls on
one is infinite too, is written as null beside `over`, and reads "over 30,000 ms". Answers that failed otherwise
have no time: a crash is not a fast answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ragbench_dagster.records import FAILED
from ragbench_dagster.reporting.night_results import Floats, Night

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
    Infinite where it falls on an answer that timed out.
    """
    n = len(sorted_values)
    if n == 0:
        return None, None, None
    p = q / 100
    low, high = binomial_quantile(0.025, n, p), binomial_quantile(0.975, n, p) + 1
    value = _quantile(sorted_values, p)
    return (
        value,
        min(value, float(sorted_values[low - 1])) if low >= 1 else None,
        max(value, float(sorted_values[high - 1])) if high <= n else None,
    )


def _quantile(sorted_values: Floats, p: float) -> float:
    """numpy's linear quantile, which for an infinite neighbour of weight 0 would be NaN."""
    at = p * (len(sorted_values) - 1)
    low, high = int(np.floor(at)), int(np.ceil(at))
    if at == low or not np.isfinite(sorted_values[high]):
        return float(sorted_values[low if at == low else high])
    return float(np.quantile(sorted_values[: high + 1], at / high))


def times(night: Night, system: str, column: str = "latency_ms") -> Floats:
    """All known times of a system in milliseconds, sorted; infinite for answers that timed out (but not their
    first token).
    """
    timings = night.timings(system)
    if timings is None or column not in timings:
        return np.array([], dtype=float)
    answers = night.responses(system, ["example_id", "status"]).to_pandas().set_index("example_id")
    status = timings["example_id"].map(answers["status"])
    known = timings.loc[~status.isin(FAILED), column].sort_values()
    late = int((status == "timed_out").sum()) if column == "latency_ms" else 0
    return np.concatenate([known[np.isfinite(known)].to_numpy(), np.full(late, np.inf)])


def time_limit(night: Night, system: str) -> float | None:
    """The shortest time, in milliseconds, that an answer of the night did not keep to; None where all came."""
    timings = night.timings(system)
    if timings is None or "limit_ms" not in timings or timings["limit_ms"].isna().all():
        return None
    return float(timings["limit_ms"].min())


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
    value, edge = _quantile(sorted_values, q / 100), float(sorted_values[n - late])
    return max(0.0, value - edge) if np.isfinite(value) else None


def describe(night: Night, system: str) -> dict[str, Any]:
    """Percentiles with intervals, mean, n, a histogram, and the time to the first token where it is known.

    The mean is None where an answer timed out. The histogram holds the answers that came.
    """
    own = times(night, system)
    limit = time_limit(night, system)
    found: dict[str, Any] = {"n": len(own), "timed_out": int(np.isinf(own).sum()), "answers": _answers(night, system)}
    for q in PERCENTILES:
        found[f"p{q}_ms"] = _row(percentile(own, q), limit)
    found["mean_ms"] = float(own.mean()) if len(own) and np.isfinite(own).all() else None
    found["histogram"] = histogram(own[np.isfinite(own)])
    first = times(night, system, "first_token_ms")
    found["first_token"] = {f"p{q}_ms": percentile(first, q)[0] for q in PERCENTILES} if len(first) else None
    return found


def _row(ends: tuple[float | None, float | None, float | None], limit: float | None) -> dict[str, Any]:
    """{value, low, high, over, over_ms}: what lies beyond the time limit is null, named in `over`."""
    named = dict(zip(("value", "low", "high"), ends, strict=True))
    beyond = [name for name, end in named.items() if end is not None and np.isinf(end)]
    return {
        **{name: None if name in beyond else end for name, end in named.items()},
        "over": beyond,
        "over_ms": limit if beyond else None,
    }


def words(row: dict[str, Any], end: str = "value") -> str | float | None:
    """One end of a percentile for a table: its milliseconds, or "over 30,000 ms"; None where it is unknown."""
    if end in row.get("over", ()):
        return f"over {row['over_ms']:,.0f} ms" if row.get("over_ms") is not None else "over the time limit"
    found: float | None = row.get(end)
    return found


def _answers(night: Night, system: str) -> dict[str, int]:
    status = night.responses(system, ["status"]).to_pandas()["status"]
    return status.value_counts().sort_index().to_dict()


def histogram(values: Floats, bins: int = 24) -> dict[str, list[float]] | None:
    """Counts in bins of equal width on a log scale; None without values."""
    if len(values) == 0:
        return None
    low, high = max(float(values[0]), 0.01), max(float(values[-1]), 0.02)
    edges = np.geomspace(low, high * 1.0001 if high > low else low * 2, bins + 1)
    counts, _ = np.histogram(np.maximum(values, low), edges)
    return {"edges_ms": [float(e) for e in edges], "counts": [int(c) for c in counts]}
