"""Which LLM evaluators there are, and the settings that any of them needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.cache_key import prefix
from ragbench_dagster.evaluation.judge.budget import price_of
from ragbench_dagster.evaluation.judge.evaluators import (
    AnswerRelevancy,
    ContextRelevancy,
    Correctness,
    Faithfulness,
    Guideline,
    Relevancy,
)
from ragbench_dagster.evaluation.judge.llm import GovernedLLM
from ragbench_dagster.evaluation.judge.llm_evaluator import LLMEvaluator
from ragbench_dagster.evaluation.judge.preference_judge import Pairwise
from ragbench_dagster.evaluation.judge.templates import own_template
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import Workspace, read_json

_EVALUATORS: dict[str, type[LLMEvaluator]] = {
    kind.name: kind
    for kind in (Faithfulness, Relevancy, Correctness, AnswerRelevancy, ContextRelevancy, Guideline, Pairwise)
}
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


def build_llm_evaluator(metric: str, judge: Judge, ws: Workspace | None, llm: Any) -> LLMEvaluator:
    """The evaluator of `metric` with LlamaIndex's template or the user's own.

    Raises:
        UserError: no such metric, or rules that are missing.
    """
    if metric not in _EVALUATORS:
        raise UserError(f"metrics: {metric!r} is none that a judge does; there are {', '.join(_EVALUATORS)}")
    kind = _EVALUATORS[metric]
    options: dict[str, Any] = {}
    if kind is Guideline:
        if not judge.guidelines:
            raise UserError("judge.guidelines: empty; list the rules that the guideline metric checks")
        options["guidelines"] = "\n".join(judge.guidelines)
    evaluator = kind(llm, judge=judge, **options)
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
    return 0.0 if isinstance(evaluator, Faithfulness) else evaluator.default_threshold


def _accepted(path: Path, metric: str) -> dict[str, Any]:
    found = (read_json(path) or {}).get("metrics", {}).get(metric)
    return found if isinstance(found, dict) else {}
