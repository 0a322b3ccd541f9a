"""Floors and ceilings of the gate: is the share or mean of tonight's answers where it has to be?

Per question by clusters (several questions about one thing count like fewer), per request on the sampled
requests. Where a judge stands between, its errors are corrected for, or the test is not run.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from ragbench_dagster.calibration.stats.clustering import clustered_estimate, floor_p
from ragbench_dagster.calibration.stats.request_share import request_floor_p, request_share
from ragbench_dagster.reporting.correct import Corrector
from ragbench_dagster.reporting.gate_rows import Test
from ragbench_dagster.reporting.night import Floats, Mask, Scores

LEAST_PART = 20  # scored rows of a category below which no test on it could ever fail


def floor_test(test: Test, scores: Scores, where: Mask, corrector: Corrector | None) -> Test:
    """Fill in the test of a floor or ceiling over the rows in `where`."""
    at = where & scores.counted
    test.n = int(scores.count[at].sum() if test.per == "request" else at.sum())
    if not at.any():
        test.reason = "no scored answer"
        return test
    if test.part != "overall" and int(at.sum()) < LEAST_PART:
        test.reason = f"only {int(at.sum())} scored answers, {LEAST_PART} are needed"
    if corrector is not None:
        _corrected(test, corrector, scores, at)
    elif test.per == "request":
        _requests(test, scores, at)
    else:
        _questions(test, scores, at)
    if test.reason is not None:
        test.p = test.clears = None
    return test


def _sign(test: Test) -> float:
    return -1.0 if test.kind == "ceiling" else 1.0


def _questions(test: Test, scores: Scores, at: Mask) -> None:
    values, clusters = scores.value[at], scores.cluster[at]
    found = clustered_estimate(values, clusters, None, scores.share)
    test.value, test.low, test.high = found.value, found.low, found.high
    test.clusters, test.independent = found.clusters, found.n_effective
    test.p = floor_p(values, test.limit, clusters, scores.share, ceiling=test.kind == "ceiling")
    if not scores.share:
        test.spread = float(values.std(ddof=1)) if len(values) > 1 else None
    clear(test, _sign(test))


def _requests(test: Test, scores: Scores, at: Mask) -> None:
    found = request_share(scores.per_request[at], scores.weight[at], scores.count[at])
    if found is None:
        test.reason = "no request has a weight"
        return
    test.value, (test.low, test.high), test.independent = found.value, found.interval, found.n
    test.p = request_floor_p(found.value, found.n, test.limit, ceiling=test.kind == "ceiling")
    clear(test, _sign(test))


def _corrected(test: Test, fix: Corrector, scores: Scores, at: Mask) -> None:
    found = fix.correct(scores, at, per_request=test.per == "request")
    test.basis = found.method
    if found.interval is None or found.draws is None:
        test.basis = "raw"
        test.value = float(scores.value[at].mean())
        test.reason = f"judge not usable: {found.reason}"
        return
    test.value, (test.low, test.high), test.judge = found.value, found.interval, fix.strength
    if test.per == "question":
        counted = clustered_estimate(scores.value[at], scores.cluster[at], None, scores.share)
        test.clusters, test.independent = counted.clusters, counted.n_effective
    sign = _sign(test)
    test.p = tail_p(found.draws, test.limit, sign)
    test.spread = float(found.draws.std()) * float(np.sqrt(test.n))
    clear(test, sign)


def tail_p(draws: Floats, limit: float, sign: float) -> float:
    """One-sided p of "the share is at the limit or better" from its draws.

    Where no draw lies there the normal tail stands for it: the least that 20,000 draws can say is 5e-5, too much for
    .05 / 30 among more than 33 tests.
    """
    beyond = int((sign * draws >= sign * limit).sum())
    counted = (1 + beyond) / (1 + len(draws))
    spread = float(draws.std())
    if beyond or spread <= 0:
        return counted
    return min(counted, float(special.ndtr(sign * (float(draws.mean()) - limit) / spread)))


def clear(test: Test, sign: float) -> None:
    """Compare the estimate and its interval with the limit; `sign` is -1 where high is bad."""
    assert test.value is not None
    test.at_limit = sign * test.value < sign * test.limit
    end = test.low if sign > 0 else test.high
    test.clears = end is not None and sign * end >= sign * test.limit
