"""Judges: the client of a provider, the reading of its replies, and the evaluators that use both."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.errors import UserError
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
    if metric in judge.evaluators:  # also of a metric that we have: the user's word goes first
        from ragbench_dagster.evaluation.judge.imported import load

        return load(metric, judge.evaluators[metric], _llm(judge, ws), judge, ws)
    if judge.provider == "embedded":
        from ragbench_dagster.evaluation.embedded import build

        return build(metric)
    from ragbench_dagster.evaluation.judge.catalog import build_llm_evaluator, evaluator_class
    from ragbench_dagster.evaluation.judge.llm_evaluator import LLMEvaluator

    kind = evaluator_class(metric)
    if not issubclass(kind, LLMEvaluator):  # one that asks no LLM
        return kind()
    return build_llm_evaluator(metric, judge, ws, _llm(judge, ws))


def governed_llm(ws: Workspace) -> Any:
    """The judge's LLM for an engine that uses the same provider: one limiter, retry layer and budget for both.

    A LlamaIndex LLM for sync and async calls, from any thread, also where an event loop runs. In an engine's factory:
        llm = governed_llm(Workspace.open(root))
        return index.as_query_engine(llm=llm)

    A stream comes in one piece. A call that fails for good raises `ItemFault`; one that no call would survive (the
    key, the address) a `UserError`.

    Raises:
        UserError: the judge is the embedded one, or its settings are wrong.
    """
    llm = _llm(ws.settings.judge, ws)
    if llm is None:
        raise UserError("judge.provider: embedded has no LLM to share; set openai or openai_like")
    return llm


def _llm(judge: Judge, ws: Workspace | None) -> Any:
    """The judge's LLM, None for the embedded judge."""
    if judge.provider == "embedded":
        return None
    from ragbench_dagster.evaluation.judge.catalog import judge_llm

    return judge_llm(judge, ws)
