"""One row of a summary: n, coverage, mean with interval, per request, corrected for the judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragbench_dagster.records import COUNTED
from ragbench_dagster.reporting.judge_correction import Corrector
from ragbench_dagster.reporting.night_results import Mask, Night, Scores
from ragbench_dagster.settings import is_judged
from ragbench_dagster.stats.clustering import clustered_estimate
from ragbench_dagster.stats.correction import Corrected
from ragbench_dagster.stats.intervals import TOO_FEW
from ragbench_dagster.stats.request_share import request_share


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
    """Share of what could be scored that has a value; None where nothing could. A failed system's 0 is known."""
    applicable = sum(n for status, n in statuses.items() if status != "not_applicable")
    return sum(statuses.get(status, 0) for status in COUNTED) / applicable if applicable else None


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
    values, share = scores.value[at], scores.share
    each = clustered_estimate(values, scores.cluster[at], None, share)
    facts: dict[str, Any] = {
        "n": each.n,
        "value": each.value,
        "low": each.low,
        "high": each.high,
        "clusters": each.clusters,
        "independent": each.n_effective,
        "note": each.note,
        "coverage": coverage(statuses),
        "statuses": statuses,
        "left_out": int((where & ~scores.in_gate).sum()),
        "per_request": requests_of(scores, at),
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


def requests_of(scores: Scores, at: Mask) -> dict[str, Any]:
    """The figure per request: each question counts as often as it was asked in the release's window."""
    found = request_share(scores.per_request[at], scores.weight[at], scores.count[at])
    if found is None:
        return {"value": None, "low": None, "high": None, "n": 0, "n_effective": 0.0, "note": None}
    low, high = found.interval
    note = f"only {found.n:.0f} effective requests" if found.n < TOO_FEW else None
    return {
        "value": found.value, "low": low, "high": high, "n": int(found.requests), "n_effective": found.n, "note": note,
    }  # fmt: skip


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


# What judging a night's answers cost, from the ledger. Unknown is None, not zero.


def judge_cost(night: Night, system: str) -> dict[str, Any] | None:
    """USD of the judge calls behind the night's verdicts of `system`, in all and for each question.

    Verdicts that an earlier night paid for count too: it is what the night costs from scratch, and it does not
    change when the night is made again. None where no verdict of the night is in the ledger.
    """
    own = [scores for (name, metric), scores in night.scores.items() if name == system and is_judged(metric)]
    questions = max((int((s.status != "not_applicable").sum()) for s in own), default=0)
    if all(night.ws.settings.judge.for_metric(s.metric).provider == "embedded" for s in own):
        return {"judge_usd": 0.0, "per_question_usd": 0.0, "questions": questions}
    from ragbench_dagster.evaluation.ledger import Ledger

    keys = sorted({key for scores in own for key in scores.keys.tolist() if key})
    with Ledger.open(night.ws) as ledger:
        found = ledger.get(keys)
    if not found or not questions:
        return None
    total = sum(verdict.cost_usd for verdict in found.values())
    return {"judge_usd": total, "per_question_usd": total / questions, "questions": questions}
