"""Judges: the client of a provider, the reading of its replies, and the evaluators that use both."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.settings import Judge
from ragbench_dagster.store import Workspace


def build_evaluator(metric: str, judge: Judge, ws: Workspace | None = None) -> Any:
    """The evaluator of `metric`: `.name`, `.version`, `.template_hash` and `async grade(item) -> Verdict`.

    Args:
        metric: faithfulness, relevancy, ... or a key of `judge.evaluators`.
        judge: its settings, the metric's own overrides already applied (`Judge.for_metric`).
        ws: where the user's templates lie; None where there is no workspace.

    Raises:
        UserError: settings that no verdict can be had with.
    """
    from ragbench_dagster.evaluation.embedded import build

    return build(metric)
