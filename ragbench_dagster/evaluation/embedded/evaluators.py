"""The embedded metrics as LlamaIndex evaluators, so that they also run inside `BatchEvalRunner`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.prompts.mixin import PromptDictType

from ragbench_dagster.evaluation.embedded import scoring
from ragbench_dagster.evaluation.embedded.version import VERSION
from ragbench_dagster.records import Item, Verdict


class EmbeddedEvaluator(BaseEvaluator):
    """One metric of the embedded judge: deterministic, without model, network or cost. Weak, see `WEAK_NOTE`.

    Attributes:
        name: the metric.
        version: changes with the code that scores.
        template_hash: a fixed word, as there is no template.
        needs: what a question must have for the metric to apply (see `evaluation.applicability`).
    """

    name: str
    version = VERSION
    template_hash = "no-template"
    needs: tuple[str, ...] = ()
    _score: Callable[[Item], Verdict]

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        """There is no prompt to change."""

    def grade_sync(self, item: Item) -> Verdict:
        """The verdict on one answer; never raises for text of any kind."""
        return type(self)._score(item)

    async def grade(self, item: Item) -> Verdict:
        """The verdict on one answer."""
        return self.grade_sync(item)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """LlamaIndex's own entry point; not applicable is an invalid result with its reason.

        Args:
            query: the question.
            response: the answer under judgement.
            contexts: the passages it was made from.
            reference: the right answer, for correctness.
            **kwargs: passed by other evaluators' callers; not read.
        """
        item = Item("", query or "", response or "", tuple(contexts or ()), reference)
        verdict = self.grade_sync(item)
        applies = verdict.status == "scored"
        return EvaluationResult(
            query=query,
            contexts=contexts,
            response=response,
            passing=verdict.passing,
            score=verdict.score,
            feedback=verdict.feedback,
            invalid_result=not applies,
            invalid_reason=None if applies else verdict.feedback,
        )


class EmbeddedFaithfulness(EmbeddedEvaluator):
    """Are the claims of the answer in its contexts? 0 to 1."""

    name = "faithfulness"
    needs = ("contexts",)
    _score = staticmethod(scoring.faithfulness)


class EmbeddedRelevancy(EmbeddedEvaluator):
    """Does the answer take up the question? 0 to 1."""

    name = "relevancy"
    needs = ("words",)
    _score = staticmethod(scoring.relevancy)


class EmbeddedCorrectness(EmbeddedEvaluator):
    """Does the answer say what the reference says? 1 to 5, passing from 4."""

    name = "correctness"
    needs = ("reference",)
    _score = staticmethod(scoring.correctness)


EVALUATORS: dict[str, type[EmbeddedEvaluator]] = {
    found.name: found for found in (EmbeddedFaithfulness, EmbeddedRelevancy, EmbeddedCorrectness)
}
