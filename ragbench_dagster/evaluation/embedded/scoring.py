"""The embedded judge's three metrics: word coverage, lowered and failed by contradictions. Pure functions.

Weak on purpose and by nature: it does not understand. It sees whether words, numbers, negations and the order of
names agree. Measured areas under the ROC curve against people stand in the README.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.prompts.mixin import PromptDictType

from ragbench_dagster.evaluation.embedded import contradictions
from ragbench_dagster.evaluation.embedded.analysis import Sentence, Text, analyse, claims, coverage, parse, union
from ragbench_dagster.evaluation.embedded.contradictions import closest, near
from ragbench_dagster.evaluation.embedded.quantities import converted, wrong_number
from ragbench_dagster.evaluation.embedded.version import VERSION
from ragbench_dagster.records import Item, Verdict

# A contradicted claim keeps a quarter of its coverage: on summaries where one word decides, half leaves it above
# honest paraphrases (area .48), none punishes a wrongly found contradiction too much (area .932 on mtrag).
CONTRADICTED = 0.25
CLAIM_FLOOR = 0.4  # coverage below which a claim is unsupported
FAITHFUL_FLOOR = 0.65  # mean coverage at which an answer passes, if no claim fails
RELEVANT_FLOOR = 0.45  # share of the question's words that a relevant answer takes up
MAX_CLAIMS = 200  # of an answer, that are searched for contradictions
CORRECT_FLOOR = 4.0  # of 5, as LlamaIndex's correctness evaluator passes
# A URL, a path, "and/or", numbers alone (a date, a fraction).
_KEEPS_SLASH = re.compile(r"://|^\W*/\w|^and/or\b|^\W*\d+(?:/\d+)+\W*$", re.IGNORECASE)
_YES_NO = re.compile(r"^\W*(yes|yeah|yep|no|nope)\b(?=\W|$)", re.IGNORECASE)


def faithfulness(item: Item) -> Verdict:
    """Are the claims of the answer in its contexts? Score 0 to 1: mean coverage of the claims by weight of words."""
    if not any(context.strip() for context in item.contexts):
        return Verdict("not_applicable", feedback="no contexts")
    answer = analyse(item.response)
    stated, refusal = claims(answer)
    if not answer.sentences:
        return Verdict("not_applicable", feedback="an empty answer claims nothing")
    contexts = [analyse(context) for context in item.contexts]
    known = union(contexts)
    if refusal or not stated:
        return _refusal(item.query, known)
    asked = analyse(item.query)
    known |= asked.numbers
    covered = whole = 0.0
    faults: list[str] = []
    for number, claim in enumerate(stated, 1):
        got, size = coverage(claim, known | converted(claim, contexts))
        fault = _contradiction(claim, contexts, asked) if number <= MAX_CLAIMS else None
        if fault:
            got *= CONTRADICTED
        elif size and got / size < CLAIM_FLOOR and len(claim.content) > 1:
            fault = f"{got / size:.0%} of its words in the contexts"
        if fault:
            faults.append(f"claim {number} of {len(stated)}: {fault}")
        covered += got
        whole += size
    score = covered / whole if whole else 1.0
    passing = not faults and score >= FAITHFUL_FLOOR
    if not faults:
        faults = [f"{score:.0%} of the words of {len(stated)} claims are in the contexts"]
    return _verdict(score, passing, "; ".join(faults[:5]))


def _refusal(query: str, known: frozenset[str]) -> Verdict:
    """ "I do not know" passes beside contexts that do not take up the question, and fails beside those that do.

    The score is the middle: whether the contexts hold the answer is more than word coverage can tell.
    """
    covered, whole = coverage(parse(query), known)
    share = covered / whole if whole else 0.0
    why = f"says that it does not know; {share:.0%} of the question's words are in the contexts"
    return _verdict(0.5, share < RELEVANT_FLOOR, why)


def _contradiction(claim: Sentence, contexts: Sequence[Text], asked: Text) -> str | None:
    found = near(claim, contexts)
    return wrong_number(claim, found, contexts, asked) or contradictions.contradiction(claim, found, contexts)


def relevancy(item: Item) -> Verdict:
    """Does the answer take up the question? Score 0 to 1: share of the question's words in the answer or in the
    sentences of the contexts that it rests on."""
    answer = analyse(item.response)
    stated, refusal = claims(answer)
    if not stated or refusal:
        return _verdict(0.0, False, "says that it does not know" if answer.sentences else "an empty answer")
    asked = parse(item.query)
    if not asked.low:
        return Verdict("not_applicable", feedback="the question holds no word")
    known = set(answer.known)
    contexts = [analyse(context) for context in item.contexts]
    for claim in stated[:MAX_CLAIMS]:
        for close in closest(near(claim, contexts)):
            # A passage's first sentence is its title or says what it is about.
            known |= close.clause.known | close.text.sentences[0].known
    covered, whole = coverage(asked, known)
    for stemmed, heavy in zip(asked.stems, asked.weights, strict=True):
        if heavy == 1.0 and stemmed not in known and contradictions.spelt_alike(stemmed, known):
            covered += heavy
    score = covered / whole if whole else 0.0
    return _verdict(score, score >= RELEVANT_FLOOR, f"{score:.0%} of the question's words are taken up")


def correctness(item: Item) -> Verdict:
    """Does the answer say what the reference says? Score 1 to 5, passing from 4; the best of several references."""
    references = split_references(item.reference or "")
    if not references:
        return Verdict("not_applicable", feedback="no reference")
    answer = analyse(item.response)
    _, refusal = claims(answer)
    if not answer.sentences:
        return _verdict(1.0, False, "an empty answer")
    best = (0.0, "nothing of the reference is in the answer")
    for reference in references:
        best = max(best, _agreement(analyse(reference), answer, refusal), key=lambda found: found[0])
    score = 1.0 + 4.0 * best[0]
    return _verdict(score, score >= CORRECT_FLOOR, best[1])


def _agreement(reference: Text, answer: Text, refusal: bool) -> tuple[float, str]:
    """(share of the reference in the answer, lowered where they contradict; why)."""
    expected, unknown = claims(reference)
    if refusal or unknown:
        return (1.0, "both say that it is not known") if refusal and unknown else (0.0, "one of the two does not know")
    covered = whole = 0.0
    for sentence in expected:
        got, size = coverage(sentence, answer.known)
        covered, whole = covered + got, whole + size
    share = covered / whole if whole else 0.0
    fault = _disagreement(reference, answer)
    if fault:
        return share * CONTRADICTED, fault
    return share, f"{share:.0%} of the reference is in the answer"


def _disagreement(reference: Text, answer: Text) -> str | None:
    said, meant = (_YES_NO.match(text.sentences[0].text) if text.sentences else None for text in (answer, reference))
    if said and meant and said[1][0].lower() != meant[1][0].lower():
        return "yes against no"
    if reference.numbers - answer.numbers and answer.numbers - reference.numbers:
        return "other numbers than the reference"
    for claim in answer.sentences[:MAX_CLAIMS]:
        fault = contradictions.contradiction(claim, near(claim, [reference]), [reference])
        if fault:
            return fault.replace("contexts", "reference")
    return None


def split_references(text: str) -> list[str]:
    """The accepted answers in a reference, separated by "/". A date, a fraction, a path or a URL is not cut."""
    cuts = [
        match.start() + i
        for match in re.finditer(r"\S+", text)
        if not _KEEPS_SLASH.search(match[0])
        for i, char in enumerate(match[0])
        if char == "/"
    ]
    parts = [text[a + 1 : b] for a, b in pairwise([-1, *cuts, len(text)])]
    return [part.strip() for part in parts if part.strip()]


def _verdict(score: float, passing: bool, feedback: str) -> Verdict:
    return Verdict("scored", score=round(score, 6), passing=passing, feedback=feedback)


# The embedded metrics as LlamaIndex evaluators, so that they also run inside `BatchEvalRunner`.


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
    _score = staticmethod(faithfulness)


class EmbeddedRelevancy(EmbeddedEvaluator):
    """Does the answer take up the question? 0 to 1."""

    name = "relevancy"
    needs = ("words",)
    _score = staticmethod(relevancy)


class EmbeddedCorrectness(EmbeddedEvaluator):
    """Does the answer say what the reference says? 1 to 5, passing from 4."""

    name = "correctness"
    needs = ("reference",)
    _score = staticmethod(correctness)
