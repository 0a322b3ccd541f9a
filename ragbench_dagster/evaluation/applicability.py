"""Whether a metric applies to a question at all: asked before the status of the answer is looked at.

A system that fails at a question without an expected answer has not failed correctness there. What a metric needs
is said by its evaluator (`needs`), in these words:

    reference   an expected answer in the label
    contexts    passages: the answer's own; where the system failed, those that it gives with its other answers
    words       at least one word in the question

A need that only the text of one answer can meet (an empty answer has no claims) is the evaluator's own affair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from ragbench_dagster.records import Item
from ragbench_dagster.text.terms import WORD

NEEDS = ("reference", "contexts", "words")


class Given(NamedTuple):
    """What a system gives in any of a night's answers. Where it answered nothing, it is taken to give everything."""

    response: bool = True
    contexts: bool = True


def given(answers: Iterable[tuple[bool, bool, bool]]) -> Given:
    """What a system gives, from (answered, with a text, with passages) of each of its answers."""
    answered = response = contexts = False
    for there, text, passages in answers:
        answered |= there
        response |= there and text
        contexts |= there and passages
    return Given(response, contexts) if answered else Given()


def unmet(needs: Collection[str], about: dict[str, Any], item: Item | None, system: Given) -> str:
    """Why a metric does not apply to a question; "" where it does.

    Args:
        needs: of NEEDS, what the metric cannot do without.
        about: the example's `query` and `expected_answer`.
        item: the answer; None where the system gave none.
        system: what the system gives elsewhere.
    """
    if item is None and not system.response:
        return "the system gives no answers in words"
    if "reference" in needs and not (about["expected_answer"] or "").strip():
        return "no expected answer"
    if "contexts" in needs:
        passages = system.contexts if item is None else any(text.strip() for text in item.contexts)
        if not passages:
            return "no contexts"
    if "words" in needs and not WORD.search(about["query"]):
        return "the question holds no word"
    return ""
