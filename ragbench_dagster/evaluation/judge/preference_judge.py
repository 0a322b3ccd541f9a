"""Which of two answers is better, asked in both orders: a disagreement is a tie, and counted as position bias."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from llama_index.core import evaluation as stock

from ragbench_dagster.evaluation.judge.budget import CallLog
from ragbench_dagster.evaluation.judge.evaluators import asked
from ragbench_dagster.evaluation.judge.llm_evaluator import LLMEvaluator
from ragbench_dagster.evaluation.judge.reply import FEEDBACK, Reply, lines, plain
from ragbench_dagster.records import Item, Verdict

_TOKEN = re.compile(r"\[\[\s*([ABC])\s*\]\]")
_ALONE = re.compile(
    r"^(?:(?:so|thus|therefore|hence)[,:]?\s+)?(?:(?:my|the|our)\s+)?(?:final\s+)?(?:verdict|answer|decision|choice|judge?ment)?"
    r"(?:\s+is)?\s*[:=\-–—]*\s*\[\[\s*([ABC])\s*\]\]\s*[.!]?$",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|never|neither|nor|cannot|rather than|instead of|n['’]t|no longer)\b[^.!?\n]*$", re.IGNORECASE
)
_SCORES = {"A": 1.0, "B": 0.0, "C": 0.5}


def read_choice(text: str) -> float | None:
    """1 where the first answer is better, 0 the second, 0.5 a tie; None where the reply gives no single choice.

    A choice on a line of its own counts before one in a sentence; "[[A]]" after a negation is no choice.
    """
    said = plain(text)
    alone = {m[1].upper() for line in lines(said) if (m := _ALONE.match(line))}
    if alone:
        return _SCORES[alone.pop()] if len(alone) == 1 else None
    mentioned = list(_TOKEN.finditer(said))
    if len({m[1] for m in mentioned}) != 1 or _NEGATED.search(said[: mentioned[0].start()]):
        return None
    return _SCORES[mentioned[0][1]]


class Pairwise(LLMEvaluator):
    """Score 1: `response` is better, 0: `second` is, 0.5: tie. Prompts as LlamaIndex's PairwiseComparisonEvaluator.

    Args:
        enforce_consensus: ask in both orders.
        options: as `LLMEvaluator`'s.
    """

    name = "pairwise"
    peer = stock.PairwiseComparisonEvaluator
    version = "1"
    reminder = "Give the final verdict only: [[A]], [[B]] or [[C]]."

    def __init__(self, llm: Any = None, *, enforce_consensus: bool = True, **options: Any) -> None:
        super().__init__(llm, **options)
        self._both_orders = enforce_consensus

    def missing(self, item: Item) -> str:
        return "" if item.second is not None else "no second answer to compare with"

    def variables(self, item: Item) -> dict[str, str]:
        return {
            "query": asked(item),
            "answer_1": item.response,
            "answer_2": item.second or "",
            "reference": item.reference or "",
            "response": item.response,
            "second_response": item.second or "",
        }

    def read(self, reply: Reply) -> Verdict:
        score = read_choice(reply.text)
        if score is None:
            return Verdict("unparsable", feedback="no single [[A]], [[B]] or [[C]] in the reply")
        return Verdict("scored", score, feedback=reply.text.strip()[:FEEDBACK])

    def decide(self, verdict: Verdict) -> Verdict:
        """A win, a loss, or a tie, which neither passes nor fails."""
        passing = None if verdict.score in (None, 0.5) else verdict.score == 1.0
        return replace(verdict, passing=passing)

    async def _grade(self, item: Item, log: CallLog) -> Verdict:
        first = await super()._grade(item, log)
        if first.status != "scored" or not self._both_orders:
            return self.decide(first)
        flipped = replace(item, response=item.second or "", second=item.response)
        second = await super()._grade(flipped, log)
        if second.status != "scored":
            return replace(second, feedback=f"in the other order: {second.feedback}")
        assert first.score is not None
        assert second.score is not None
        agree = first.score == 1 - second.score
        raw = f"{first.raw}\n--- in the other order ---\n{second.raw}"
        details = {"first_order": first.score, "other_order": 1 - second.score, "position_bias": not agree}
        score = first.score if agree else 0.5
        return self.decide(replace(first, score=score, raw=raw, details={**first.details, **details}))
