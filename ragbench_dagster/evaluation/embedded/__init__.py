"""The embedded judge: deterministic, offline and weak. A baseline so that nothing needs a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.embedded.version import VERSION

if TYPE_CHECKING:
    from ragbench_dagster.evaluation.embedded.scoring import EmbeddedEvaluator

__all__ = ["METRICS", "VERSION", "WEAK_NOTE", "build"]

METRICS = ("faithfulness", "relevancy", "correctness")
WEAK_NOTE = "weak: compares words, does not understand"


def build(metric: str) -> EmbeddedEvaluator:
    """The embedded evaluator of `metric`.

    Raises:
        UserError: a metric that word comparison cannot judge.
    """
    from ragbench_dagster.evaluation.embedded.scoring import EVALUATORS

    if metric not in EVALUATORS:
        raise UserError(
            f"metrics: the embedded judge does {', '.join(METRICS)}, not {metric}; set judge.provider and judge.model"
        )
    return EVALUATORS[metric]()
