"""Correctness (1 to 5), answer relevancy and context relevancy (points, shown as a share)."""

from __future__ import annotations

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge.base import LLMEvaluator
from ragbench_dagster.evaluation.judge.logprobs import expected_score
from ragbench_dagster.evaluation.judge.numbers import read_result, read_score
from ragbench_dagster.evaluation.judge.reply import FEEDBACK, Reply
from ragbench_dagster.evaluation.judge.yes_no import asked, context_text
from ragbench_dagster.records import Item, Verdict


class Correctness(LLMEvaluator):
    """One number from 1 to 5; 4 and more pass. Prompts as LlamaIndex's CorrectnessEvaluator."""

    name = "correctness"
    needs = ("reference",)
    version = "1"
    default_threshold = 4.0
    reminder = "Give the score only: one number from 1 to 5 on a line of its own."

    def missing(self, item: Item) -> str:
        return "" if item.reference and item.reference.strip() else "no expected answer to compare with"

    def variables(self, item: Item) -> dict[str, str]:
        reference = item.reference or ""
        return {
            "query": asked(item),
            "generated_answer": item.response,
            "reference_answer": reference,
            "response": item.response,
            "reference": reference,
            "contexts": context_text(item),
        }

    def read(self, reply: Reply) -> Verdict:
        score = read_score(reply.text, 1, 5, cut=reply.finish == "length")
        if score is None:
            return Verdict("unparsable", feedback="no single score from 1 to 5 in the reply")
        if self._judge.read == "logprobs":
            if reply.logprobs is None:
                raise UserError("judge.read: logprobs, but the provider sends none; set judge.read: text")
            score = expected_score(reply.logprobs, 1, 5)
            if score is None:
                return Verdict("unparsable", feedback="the reply does not begin with a score")
        return Verdict("scored", score, feedback=reply.text.strip()[:FEEDBACK])


class Points(LLMEvaluator):
    """Points after `[RESULT]`, divided by the most there are. Read as text whatever `judge.read` says."""

    most = 1.0
    whole = False

    def read(self, reply: Reply) -> Verdict:
        points = read_result(reply.text, 0, self.most, self.whole)
        if points is None:
            return Verdict("unparsable", feedback="no single [RESULT] in the reply")
        return Verdict("scored", points / self.most, feedback=reply.text.strip()[:FEEDBACK])


class AnswerRelevancy(Points):
    """Whether the answer is about the question. Passes with both points of LlamaIndex's AnswerRelevancyEvaluator."""

    name = "answer_relevancy"
    version = "1"
    most, whole = 2.0, True
    default_threshold = 1.0
    reminder = "Give the final result only, in this form: [RESULT] 0, 1 or 2"

    def missing(self, item: Item) -> str:
        return "" if item.response.strip() else "no answer to judge"

    def variables(self, item: Item) -> dict[str, str]:
        return {"query": asked(item), "response": item.response, "contexts": context_text(item)}


class ContextRelevancy(Points):
    """Whether the passages suffice for the question. Prompts as LlamaIndex's ContextRelevancyEvaluator.

    Passes with 3 of 4 points: on the subject, and enough at least for most of an answer.
    """

    name = "context_relevancy"
    needs = ("contexts",)
    version = "1"
    most = 4.0
    default_threshold = 0.75
    reminder = "Give the final result only, in this form: [RESULT] a number from 0 to 4"

    def missing(self, item: Item) -> str:
        return "" if context_text(item) else "no contexts to judge"

    def variables(self, item: Item) -> dict[str, str]:
        contexts = context_text(item)
        return {"query_str": asked(item), "context_str": contexts, "query": asked(item), "contexts": contexts}
