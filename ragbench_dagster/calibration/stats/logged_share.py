"""What production answered: the share of logged requests whose own answer was right.

The rows are the sampled requests of the last days, each with the answer its user got and the weight w = n / kept
of its day and category (Horvitz, Thompson 1952). The variance of what was not sampled is
sum w (w - 1) (y - p)^2 / W^2. Window weights of distinct questions with their latest answer, which this
replaces, are off by +.035 to +.157 where a topic breaks within the week.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragbench_dagster.calibration.stats.clustering import Clusters, all_single, clustered_estimate
from ragbench_dagster.calibration.stats.intervals import Floats, Interval, student, wilson


@dataclass(frozen=True, slots=True)
class LoggedShare:
    """A share of the logged requests of some days."""

    value: float
    variance: float
    n: float  # effective requests; exceeds the rows where most requests were sampled
    interval: Interval
    sampled: int  # requests that were judged
    requests: float  # that they stand for
    clusters: int  # users or conversations


def logged_share(y: Floats, w: Floats, clusters: Clusters | None = None) -> LoggedShare | None:
    """Share of requests that were answered right; None without a request.

    Args:
        y: value of each sampled request's own answer.
        w: requests it stands for, at least 1.
        clusters: user or conversation of each request, where one asks several times.
    """
    if len(y) == 0:
        return None
    total = float(w.sum())
    p = float(w @ y / total)
    variance = float((w * np.maximum(w - 1, 0.0)) @ ((y - p) ** 2) / total**2)
    if bool((w <= 1).all()):  # every request was sampled: nothing is estimated
        return LoggedShare(p, 0.0, float(len(y)), (p, p), len(y), total, _clusters(clusters, len(y)))
    known = 0 < p < 1 and variance > 0
    n = p * (1 - p) / variance if known else total**2 / float(w @ w)
    if clusters is None or all_single(clusters):
        interval = wilson(p * n, n)
        assert interval is not None
        return LoggedShare(p, variance, n, interval, len(y), total, _clusters(clusters, len(y)))
    together = clustered_estimate(y, clusters, w, binary=True)
    n = min(n, together.n_effective)
    z = student(together.clusters_effective - 1)
    interval = wilson(p * n, n, z) if np.isfinite(z) else (0.0, 1.0)
    assert interval is not None
    return LoggedShare(p, max(variance, together.variance), n, interval, len(y), total, together.clusters)


def _clusters(clusters: Clusters | None, n: int) -> int:
    return n if clusters is None else len(np.unique(clusters))
