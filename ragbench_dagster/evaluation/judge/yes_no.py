"""Faithfulness and relevancy: the judge answers YES or NO."""

from __future__ import annotations

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge.base import LLMEvaluator
from ragbench_dagster.evaluation.judge.logprobs import yes_no
from ragbench_dagster.evaluation.judge.reply import FEEDBACK, Reply
from ragbench_dagster.evaluation.judge.text import read_yes_no
from ragbench_dagster.records import Item, Verdict


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
    reminder = "Give your verdict only, in one word: YES or NO."

    def read(self, reply: Reply) -> Verdict:
        if self._judge.read == "logprobs":
            return self._by_logprobs(reply)
        said = read_yes_no(reply.text)
        if said is None:
            return Verdict("unparsable", feedback="no single YES or NO in the reply")
        return Verdict("scored", float(said), said, feedback=reply.text.strip()[:FEEDBACK])

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

    def variables(self, item: Item) -> dict[str, str]:
        return {**super().variables(item), "query_str": f"Question: {asked(item)}\nResponse: {item.response}"}
