"""The embedded judge: deterministic, offline and weak. A baseline so that nothing needs a key."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.embedded.version import VERSION
from ragbench_dagster.metrics import METRICS, metric_of
from ragbench_dagster.registry import member

__all__ = ["VERSION", "WEAK_NOTE", "build", "judged_here"]

WEAK_NOTE = "weak: compares words, does not understand"


def judged_here() -> tuple[str, ...]:
    """The metrics that it judges."""
    graded = {metric.base: metric.grading for metric in METRICS.values() if metric.grading is not None}
    return tuple(base for base, grading in graded.items() if grading.embedded not in ("", grading.llm))


def build(metric: str) -> Any:
    """The evaluator of `metric` where no judge is set: the embedded judge's, or one that asks no LLM.

    Raises:
        UserError: a metric that word comparison cannot judge.
    """
    grading = metric_of(metric).grading
    if grading is None or not grading.embedded:
        raise UserError(
            f"metrics: the embedded judge does {', '.join(judged_here())}, not {metric}; "
            "set judge.provider and judge.model"
        )
    return member(grading.embedded)()
