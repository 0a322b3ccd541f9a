"""The evaluators that ask an LLM, each with the prompt of its LlamaIndex counterpart.

    from ragbench_dagster import Faithfulness
    Faithfulness(llm=llm).evaluate(response=..., contexts=[...])

Other than LlamaIndex's: a reply must give one verdict and is asked for once more; what gives none is an invalid
result and no 0; and a context beyond the window is judged by passage, so there is no `refine_template`.
The comparison of two answers belongs in `preference_judge.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core import evaluation as stock
from llama_index.core.evaluation.guideline import DEFAULT_GUIDELINES
from llama_index.core.prompts import BasePromptTemplate

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge.llm_evaluator import LLMEvaluator
from ragbench_dagster.evaluation.judge.logprobs import expected_score, yes_no
from ragbench_dagster.evaluation.judge.parse_score import read_result, read_score
from ragbench_dagster.evaluation.judge.parse_verdict import read_yes_no, split_json
from ragbench_dagster.evaluation.judge.reply import FEEDBACK, Reply, plain
from ragbench_dagster.evaluation.judge.templates import stock_template
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import digest


def asked(item: Item) -> str:
    """The question with the turns before it, where there are any."""
    if not item.history:
        return item.query
    earlier = "\n".join(f"- {turn}" for turn in item.history)
    return f"{item.query}\n(Earlier in the conversation:\n{earlier})"


def context_text(item: Item) -> str:
    """The passages as the stock evaluators lay them out."""
    return "\n\n".join(passage.strip() for passage in item.contexts)


class YesNoEvaluator(LLMEvaluator):
    """Score 1 for YES and 0 for NO; read by log-probabilities, logit P(yes) - logit P(no)."""

    version = "1"
    logprob_threshold = 0.0  # YES is as likely as NO
    reminder = "Give your verdict only, in one word: YES or NO."

    def read(self, reply: Reply) -> Verdict:
        if self._judge.read == "logprobs":
            return self._by_logprobs(reply)
        said = read_yes_no(reply.text)
        if said is None:
            return Verdict("unparsable", feedback="no single YES or NO in the reply")
        return Verdict("scored", float(said), said, feedback=reply.text.strip()[:FEEDBACK])

    def _is_invalid(self, verdict: Verdict) -> bool:
        return not verdict.passing

    def _by_logprobs(self, reply: Reply) -> Verdict:
        if reply.logprobs is None:
            if reply.text.strip() and not reply.finish == "length":
                raise UserError("judge.read: logprobs, but the provider sends none; set judge.read: text")
            return Verdict("unparsable", feedback="no log-probabilities in the reply")
        found = yes_no(reply.logprobs)
        if found is None:
            return Verdict("unparsable", feedback="the reply does not begin with YES or NO")
        score, yes, no = found
        details = {"p_yes": round(yes, 6), "p_no": round(no, 6)}
        return Verdict(
            "scored", score, score >= self.threshold, feedback=reply.text.strip()[:FEEDBACK], details=details
        )


class Faithfulness(YesNoEvaluator):
    """Whether the passages support the answer. Prompts as LlamaIndex's FaithfulnessEvaluator."""

    name = "faithfulness"
    peer: type[Any] = stock.FaithfulnessEvaluator
    needs = ("contexts",)

    def missing(self, item: Item) -> str:
        if not item.response.strip():
            return "no answer to judge"
        return "" if context_text(item) else "no contexts to judge the answer by"

    def variables(self, item: Item) -> dict[str, str]:
        contexts = context_text(item)
        return {
            "query_str": item.response,
            "context_str": contexts,
            "query": asked(item),
            "response": item.response,
            "contexts": contexts,
            "reference": item.reference or "",
        }


class Relevancy(Faithfulness):
    """Whether question, answer and passages are in line. Prompts as LlamaIndex's RelevancyEvaluator."""

    name = "relevancy"
    peer = stock.RelevancyEvaluator

    def variables(self, item: Item) -> dict[str, str]:
        return {**super().variables(item), "query_str": f"Question: {asked(item)}\nResponse: {item.response}"}


# Correctness (1 to 5), answer relevancy and context relevancy (points, shown as a share).


class Correctness(LLMEvaluator):
    """One number from 1 to 5; 4 and more pass. Prompts as LlamaIndex's CorrectnessEvaluator."""

    name = "correctness"
    peer = stock.CorrectnessEvaluator
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
    """Points after `[RESULT]`, divided by the most there are. Read as text whatever `judge.read` says.

    `score_threshold` is in points.
    """

    whole = False

    def read(self, reply: Reply) -> Verdict:
        points = read_result(reply.text, 0, self.most, self.whole)
        if points is None:
            return Verdict("unparsable", feedback="no single [RESULT] in the reply")
        return Verdict("scored", points / self.most, feedback=reply.text.strip()[:FEEDBACK])


class AnswerRelevancy(Points):
    """Whether the answer is about the question. Passes with both points of LlamaIndex's AnswerRelevancyEvaluator."""

    name = "answer_relevancy"
    peer = stock.AnswerRelevancyEvaluator
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
    peer = stock.ContextRelevancyEvaluator
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


# The user's own rules (`judge.guidelines`): the judge says whether an answer keeps all of them.

_WORDS = {"true": True, "false": False, "yes": True, "no": False}


class Guideline(LLMEvaluator):
    """Passes or not by the rules. Prompts as LlamaIndex's GuidelineEvaluator; the rules are part of the key.

    Args:
        guidelines: the rules; default: LlamaIndex's three.
        options: as `LLMEvaluator`'s. LlamaIndex's words on the JSON answer follow an `eval_template` without an
            output parser of its own.
    """

    name = "guideline"
    peer = stock.GuidelineEvaluator
    version = "1"
    reminder = 'Answer with the JSON object only: {"passing": true or false, "feedback": "..."}'

    def __init__(self, llm: Any = None, guidelines: str | None = None, **options: Any) -> None:
        super().__init__(llm, **options)
        self._guidelines = guidelines or DEFAULT_GUIDELINES

    @classmethod
    def options(cls, judge: Judge) -> dict[str, Any]:
        if not judge.guidelines:
            raise UserError("judge.guidelines: empty; list the rules that the guideline metric checks")
        return {"guidelines": "\n".join(judge.guidelines)}

    def _template_of(self, given: BasePromptTemplate | str | None) -> BasePromptTemplate:
        template = super()._template_of(given)
        if template.output_parser is None:
            template = template.model_copy(update={"output_parser": stock_template(self.peer).output_parser})
        return template

    @property
    def template_hash(self) -> str:  # type: ignore[override]
        return digest(super().template_hash, self._guidelines, size=8)

    def missing(self, item: Item) -> str:
        return "" if item.response.strip() else "no answer to judge"

    def variables(self, item: Item) -> dict[str, str]:
        return {"query": asked(item), "response": item.response, "guidelines": self._guidelines}

    def read(self, reply: Reply) -> Verdict:
        _, found = split_json(plain(reply.text))
        passing = _passing(found) if found is not None else None
        if found is None or passing is None:
            return Verdict("unparsable", feedback='no JSON object with "passing" ends the reply')
        return Verdict("scored", float(passing), passing, feedback=str(found.get("feedback") or "")[:FEEDBACK])


def _passing(found: Mapping[str, Any]) -> bool | None:
    value = found.get("passing")
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
