"""One row of a summary: n, coverage, mean with interval, per request, corrected for the judge."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragbench_dagster.metrics import is_judged
from ragbench_dagster.records import COUNTED
from ragbench_dagster.reporting.judge_correction import Corrector
from ragbench_dagster.reporting.night_results import Mask, Night, Scores
from ragbench_dagster.stats.clustering import clustered_estimate
from ragbench_dagster.stats.correction import Corrected
from ragbench_dagster.stats.intervals import TOO_FEW
from ragbench_dagster.stats.request_share import request_share


def coverage(statuses: dict[str, int]) -> float | None:
    """Share of what could be scored that has a value; None where nothing could. A failed system's 0 is known."""
    applicable = sum(n for status, n in statuses.items() if status != "not_applicable")
    return sum(statuses.get(status, 0) for status in COUNTED) / applicable if applicable else None


def make_row(
    scores: Scores, where: Mask, dimension: str, part: str, corrector: Corrector | None, full: bool = False
) -> dict[str, Any]:
    """The figures of the rows in `where`: a ROW of summary.json without its `delta`.

    Args:
        scores: of one system and metric.
        where: the rows of the part.
        dimension: what the questions are divided by; "overall": not at all.
        part: the dimension's part.
        corrector: of the metric's judge; None for retrieval metrics.
        full: with score percentiles (overall rows).
    """
    counts = scores.status[where & scores.in_gate].value_counts()  # in the order of the categories
    statuses = {status: n for status, n in zip(scores.status.categories, counts.tolist(), strict=True) if n}
    at = where & scores.counted
    each = clustered_estimate(scores.value[at], scores.cluster[at], None, scores.share)
    row: dict[str, Any] = {
        "system": scores.system,
        "metric": scores.metric,
        "dimension": dimension,
        "part": part,
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
    if corrector is not None:
        corrected = corrector.correct(scores, at)
        row["corrected"] = {**as_dict(corrected), **corrector.extras(corrected)}
        if full:
            row["per_request"]["corrected"] = as_dict(corrector.correct(scores, at, per_request=True))
    if full and is_judged(scores.metric):
        row |= score_percentiles(pd.Series(scores.score[at]))
    return row


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


def score_percentiles(scores: pd.Series) -> dict[str, float | None]:
    """Mean and p10, p50, p90 of the evaluator's own scale; None without a score."""
    known = scores.dropna()
    figures = {"mean_score": known.mean(), **{f"p{q}": known.quantile(q / 100) for q in (10, 50, 90)}}
    return {name: float(figure) if len(known) else None for name, figure in figures.items()}


# What judging a night's answers cost, from the ledger. Unknown is None, not zero.


def judge_cost(night: Night, system: str) -> dict[str, Any] | None:
    """USD of the judge calls behind the night's verdicts of `system`, in all and for each question.

    Verdicts that an earlier night paid for count too: it is what the night costs from scratch, and it does not
    change when the night is made again. None where no verdict of the night is in the ledger.
    """
    judged = {metric for name, metric in night.scores if name == system and is_judged(metric)}
    rows = night.frame[(night.frame["system"] == system) & night.frame["metric"].isin(judged)]
    asked = rows.loc[rows["status"] != "not_applicable", "metric"].value_counts()
    questions = int(asked.max()) if len(asked) else 0
    if all(night.ws.settings.judge.for_metric(metric).provider == "embedded" for metric in judged):
        return {"judge_usd": 0.0, "per_question_usd": 0.0, "questions": questions}
    from ragbench_dagster.evaluation.ledger import Ledger

    keys = sorted(filter(None, rows["key"].dropna().unique()))
    with Ledger.open(night.ws) as ledger:
        found = ledger.get(keys)
    if not found or not questions:
        return None
    total = sum(verdict.cost_usd for verdict in found.values())
    return {"judge_usd": total, "per_question_usd": total / questions, "questions": questions}
