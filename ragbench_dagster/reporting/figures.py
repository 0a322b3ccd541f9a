"""One row of a summary: n, coverage, mean with interval, per request, corrected for the judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragbench_dagster.calibration.stats.correction import Corrected
from ragbench_dagster.calibration.stats.weighted import estimate
from ragbench_dagster.reporting.correct import Corrector
from ragbench_dagster.reporting.night import Mask, Scores
from ragbench_dagster.settings import is_judged


@dataclass(frozen=True)
class Row:
    """A figure of one system, metric and part of a dimension ("overall": all)."""

    system: str
    metric: str
    dimension: str
    part: str
    facts: dict[str, Any]
    corrected: Corrected | None

    def as_dict(self) -> dict[str, Any]:
        head = {"system": self.system, "metric": self.metric, "dimension": self.dimension, "part": self.part}
        return {**head, **self.facts}


def coverage(statuses: dict[str, int]) -> float | None:
    """Scored share of what could be scored; None where nothing could."""
    applicable = sum(n for status, n in statuses.items() if status != "not_applicable")
    return statuses.get("scored", 0) / applicable if applicable else None


def make_row(
    scores: Scores, where: Mask, dimension: str, part: str, corrector: Corrector | None, full: bool = False
) -> Row:
    """The figures of the rows in `where`.

    Args:
        corrector: of the metric's judge; None for retrieval metrics.
        full: with score percentiles (overall rows).
    """
    own = where & scores.in_gate
    statuses = dict(sorted(Counter(scores.status[own].tolist()).items()))
    at = own & scores.scored
    values, weights = scores.value[at], scores.weight[at]
    share = scores.share
    each = estimate(values, None, share)
    traffic = estimate(values, weights, share)
    facts: dict[str, Any] = {
        "n": each.n,
        "value": each.value,
        "low": each.low,
        "high": each.high,
        "note": each.note,
        "coverage": coverage(statuses),
        "statuses": statuses,
        "left_out": int((where & ~scores.in_gate).sum()),
        "per_request": {
            "value": traffic.value,
            "low": traffic.low,
            "high": traffic.high,
            "n_effective": traffic.n_effective,
            "note": traffic.note,
        },
        "corrected": None,
    }
    corrected = None
    if corrector is not None:
        corrected = corrector.correct(scores, at)
        facts["corrected"] = {**as_dict(corrected), **corrector.extras(corrected)}
        if full:
            facts["per_request"]["corrected"] = as_dict(corrector.correct(scores, at, per_request=True))
    if full and is_judged(scores.metric):
        facts |= score_percentiles(scores, at)
    return Row(scores.system, scores.metric, dimension, part, facts, corrected)


def as_dict(found: Corrected) -> dict[str, Any]:
    return {
        "method": found.method,
        "value": found.value,
        "low": found.interval[0] if found.interval else None,
        "high": found.interval[1] if found.interval else None,
        "reason": found.reason,
    }


def score_percentiles(scores: Scores, at: Mask) -> dict[str, Any]:
    """Mean and p10, p50, p90 of the evaluator's own scale."""
    own = scores.score[at & np.isfinite(scores.score)]
    if len(own) == 0:
        return {"mean_score": None, "p10": None, "p50": None, "p90": None}
    low, middle, high = np.quantile(own, [0.1, 0.5, 0.9])
    return {"mean_score": float(own.mean()), "p10": float(low), "p50": float(middle), "p90": float(high)}
