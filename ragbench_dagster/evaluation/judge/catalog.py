"""Which LLM evaluators there are, and the settings that any of them needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.cache_key import prefix
from ragbench_dagster.evaluation.judge.budget import price_of
from ragbench_dagster.evaluation.judge.llm import GovernedLLM
from ragbench_dagster.evaluation.judge.llm_evaluator import LLMEvaluator
from ragbench_dagster.evaluation.judge.templates import own_template
from ragbench_dagster.metrics import METRICS, metric_of
from ragbench_dagster.registry import member
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import Workspace, read_json

_llms: dict[tuple[str, str], GovernedLLM] = RUNTIME.registry("LLMs")


def judge_llm(judge: Judge, ws: Workspace | None) -> GovernedLLM:
    """The one LLM of these settings in this process.

    Raises:
        UserError: the judge floats, its price or its context window is unknown.
    """
    if not judge.pinned and not judge.allow_floating:
        raise UserError(
            f"judge.model {judge.model!r} is not pinned: name a dated version (…-2024-08-06) or a @sha256 digest, "
            "or set judge.revision; judge.allow_floating: true takes it as it is"
        )
    if not judge.api_key_env or os.environ.get(judge.api_key_env):
        price_of(judge)  # without a key nothing is asked: a fork's run says so, whatever else is missing
    judge = judge.model_copy(update={"context_window": judge.context_window or _known_window(judge)})
    workspace = str(ws.root) if ws else ""
    key = (workspace, judge.model_dump_json(exclude={"metrics", "templates", "guidelines", "evaluators", "budget_usd"}))
    llm = _llms.get(key)
    if llm is None or llm.judge.budget_usd != judge.budget_usd:
        llm = _llms[key] = GovernedLLM(judge, workspace)
    return llm


def evaluator_class(metric: str) -> type[Any]:
    """The class that grades `metric` where a judge is set.

    Raises:
        UserError: no judge does this metric.
    """
    grading = metric_of(metric).grading
    if grading is None:
        names = ", ".join(known.base for known in METRICS.values() if known.grading)
        raise UserError(f"metrics: {metric!r} is none that a judge does; there are {names}")
    kind: type[Any] = member(grading.llm)
    return kind


def build_llm_evaluator(metric: str, judge: Judge, ws: Workspace | None, llm: Any) -> LLMEvaluator:
    """The evaluator of `metric` with its own template or the user's.

    Raises:
        UserError: no such metric, or rules that are missing.
    """
    kind: type[LLMEvaluator] = evaluator_class(metric)
    evaluator = kind(llm, judge=judge, **kind.options(judge))
    path = judge.templates.get(metric)
    if path:
        evaluator.update_prompts({"eval_template": own_template(path, metric, ws)})
    if judge.read == "logprobs":
        evaluator.threshold = _logprob_threshold(evaluator, metric, judge, ws)
    return evaluator


def _known_window(judge: Judge) -> int:
    """The context window of an OpenAI model, tokens."""
    if judge.provider == "openai":
        from llama_index.llms.openai.utils import openai_modelname_to_contextsize

        try:
            return int(openai_modelname_to_contextsize(judge.model or ""))
        except ValueError:
            pass
    raise UserError(f"judge.context_window: not known for {judge.model}; give it in tokens")


def _logprob_threshold(evaluator: LLMEvaluator, metric: str, judge: Judge, ws: Workspace | None) -> float:
    """From which score on an answer passes: set by hand, accepted with the calibration, else the evaluator's own.

    Without either, YES must be as likely as NO (score 0), and correctness keeps its 4.
    """
    if judge.logprob_threshold is not None:
        return judge.logprob_threshold
    accepted = _accepted(ws.calibration / "accepted.json", metric) if ws else {}
    threshold = accepted.get("threshold")
    if isinstance(threshold, int | float) and accepted.get("identity", {}).get("hash") == prefix(evaluator, judge):
        return float(threshold)
    return evaluator.default_threshold if evaluator.logprob_threshold is None else evaluator.logprob_threshold


def _accepted(path: Path, metric: str) -> dict[str, Any]:
    found = (read_json(path) or {}).get("metrics", {}).get(metric)
    return found if isinstance(found, dict) else {}
