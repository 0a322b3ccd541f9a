"""What contradicts a claim although its words are covered: numbers, negations, opposites, who does what to whom.

Each check takes a claim and the sentences of the contexts, and returns a short reason or None. They only fire
on a sentence that says nearly the same: a paraphrase must not be called a contradiction.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ragbench_dagster.evaluation.embedded.analysis import Sentence, Text, coverage
from ragbench_dagster.evaluation.embedded.opposites import OPPOSITES
from ragbench_dagster.evaluation.words import STOPWORDS

_CLOSE = 0.6  # share of a claim that a sentence must cover to count as saying the same
# Function words that say who does what to whom; `by` turns a passive round.
_DIRECTED = frozenset(["by", "to", "from", "before", "after", "than", "over", "under", "into", "above", "below"])
# Both orders of these mean one thing.
_SYMMETRIC = frozenset(
    ["marri", "marry", "meet", "met", "equal", "differ", "similar", "sibling", "brother", "sister", "cousin", "friend"]
)


def closest(claim: Sentence, contexts: Sequence[Text]) -> list[Sentence]:
    """The sentences that cover the claim best, if they cover most of it: the best and those nearly as good."""
    wanted = claim.content
    if not wanted:
        return []
    best: list[tuple[float, Sentence]] = []
    for text in contexts:
        for sentence in text.sentences:
            shared = len(wanted & sentence.known)
            if shared * 2 >= len(wanted):
                covered, whole = coverage(claim, sentence.known)
                best.append((covered / whole if whole else 0.0, sentence))
    if not best:
        return []
    top = max(score for score, _ in best)
    return [sentence for score, sentence in best if score >= max(_CLOSE, top - 0.1)]


def wrong_number(claim: Sentence, contexts: Sequence[Text], close: Sequence[Sentence], asked: Text) -> str | None:
    """A number that neither a context nor the question has, or that the contexts have only for something else."""
    if not claim.numbers:
        return None
    everywhere = asked.numbers.union(*(text.numbers for text in contexts))
    if any(value not in everywhere for _, value in claim.numbers):
        return "a number that the contexts do not have"
    near = {value for sentence in close for _, value in sentence.numbers}
    said = [pair for text in contexts for sentence in text.sentences for pair in sentence.quantities]
    for value, unit in claim.units:
        if value in near or value in asked.numbers or any(v == value and unit in found for v, found in said):
            continue
        if any(unit in found for _, found in said):
            return "a number that the contexts have for something else"
    return None


def wrong_negation(claim: Sentence, close: Sequence[Sentence]) -> str | None:
    """A word that the claim negates and sentences that say the same do not, or the other way round."""
    alike = [s for s in close if len(s.content & claim.content) >= _CLOSE * len(s.content)]
    if not alike:
        return None
    content = frozenset().union(*(s.content for s in alike))
    reached = frozenset().union(*(s.negated for s in alike))
    if any(head in content and head not in reached for head, *_ in claim.negations):
        return "a negation that the contexts do not have"
    for sentence in alike:
        heads = {head for head, *_ in sentence.negations}
        if any(head in claim.content and head not in claim.negated for head in heads) and all(
            heads & other.negated for other in alike
        ):
            return "a negation of the contexts left out"
    return None


def opposite(claim: Sentence, close: Sequence[Sentence]) -> str | None:
    """A word whose opposite stands in the closest sentences, which do not have the word itself."""
    alike = [s for s in close if len(s.content & claim.content) >= _CLOSE * len(s.content)]
    for stemmed in claim.known:
        others = OPPOSITES.get(stemmed)
        if not others or any(stemmed in s.known for s in close):
            continue
        for sentence in alike:
            for other in others & sentence.known:
                if (stemmed in claim.negated) == (other in sentence.negated):
                    return "the opposite of what the contexts say"
    return None


def swapped(claim: Sentence, contexts: Sequence[Text]) -> str | None:
    """Two names that the contexts join by the same words in the other order only ("A manages B")."""
    for (_, i, first), (j, _, second) in pairwise(claim.names):
        between = _between(claim, i, j)
        if first == second or between is None:
            continue
        orders = {
            one == first
            for text in contexts
            for sentence in text.named
            for one in _orders(sentence, {first, second}, between)
        }
        if orders == {False}:
            return "the names stand the other way round"
    return None


def _between(sentence: Sentence, i: int, j: int) -> frozenset[str] | None:
    """What joins the words at i and j: content stems and words of direction; None where nothing directed does."""
    found = frozenset(
        s
        for s, w in zip(sentence.stems[i + 1 : j], sentence.low[i + 1 : j], strict=True)
        if w not in STOPWORDS or w in _DIRECTED
    )
    return None if not found or found & _SYMMETRIC else found


def _orders(sentence: Sentence, pair: set[str], between: frozenset[str]) -> list[str]:
    """The first name of each place where the two names of `pair` are joined by the words `between`."""
    names = [name for name in sentence.names if name[2] in pair]
    return [
        one for (_, i, one), (j, _, other) in pairwise(names) if one != other and _between(sentence, i, j) == between
    ]


def spelt_alike(word: str, known: set[str] | frozenset[str]) -> bool:
    """Whether `known` has the word with one letter more, less, other or exchanged; long words only, no digits."""
    if len(word) < 5 or not word.isalpha():
        return False
    return any(abs(len(word) - len(k)) <= 1 and k[0] == word[0] and _one_edit(word, k) for k in known)


def _one_edit(a: str, b: str) -> bool:
    i = 0
    while i < min(len(a), len(b)) and a[i] == b[i]:
        i += 1
    rest_a, rest_b = a[i:], b[i:]
    return (
        rest_a[1:] == rest_b[1:]
        or rest_a[1:] == rest_b
        or rest_a == rest_b[1:]
        or (rest_a[2:] == rest_b[2:] and rest_a[:2] == rest_b[1::-1])
    )
