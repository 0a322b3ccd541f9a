"""Reads a judge by the probabilities of its verdict token instead of the one word it happened to say.

A small model that answers YES to everything still ranks answers well by how sure it is: on one, the stock template
gave a balanced accuracy of 0.50 by text and 0.95 by log-probabilities with a fitted threshold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

_SEARCHED = 4000  # tokens looked through for the verdict
_EDGE = 1e-9  # a probability is never nearer to 0 or 1 than this
_FAIR_SHARE = 0.05  # of YES and NO together, where the model began with another word
_FILLER = re.compile(r"^[\s*_#`\"'“”>.:,\-–—()\[\]{}]*$")
_LABEL = re.compile(
    r"^\s*(?:the|my|final|answer|verdict|response|result|decision|judge?ment|conclusion|is|so|therefore|thus|score|rating)\s*$",
    re.IGNORECASE,
)
_OPEN, _CLOSE = "<think>", "</think>"


def yes_no(tokens: Sequence[dict[str, Any]]) -> tuple[float, float, float] | None:
    """(score, P(yes), P(no)) at the first verdict token; None where the reply does not begin with a verdict.

    The score is logit P(yes) - logit P(no), P summed over the spellings among the alternatives. A verdict that is
    not among them gets the most it can have: the smallest alternative's probability, or the mass left over. Where
    the model happened to begin with another word, its first token still tells, if YES and NO had a fair share.
    """
    place, begun = _first(tokens, re.compile(r"\W*(?:yes|no)\b", re.IGNORECASE))
    said = place is not None
    place = place if place is not None else begun
    if place is None or (not said and _word(tokens[place]) in ("yes", "no")):
        return None  # the latter begins another word, as in "Nothing"
    split = said and _word(tokens[place]) not in ("yes", "no")
    mass = {"yes": 0.0, "no": 0.0}
    others = _alternatives(tokens[place])
    for text, probability in others:
        word = text.strip(" \t\n*_\"'`.,:;!()[]").lower()
        for verdict in mass:
            if word == verdict or (split and word and verdict.startswith(word)):
                mass[verdict] += probability
    if not said and sum(mass.values()) < _FAIR_SHARE:
        return None
    bound = _left_over(others)
    yes, no = (min(1 - _EDGE, max(_EDGE, mass[v] or bound)) for v in ("yes", "no"))
    return round(_logit(yes) - _logit(no), 6), yes, no


def expected_score(tokens: Sequence[dict[str, Any]], low: int, high: int) -> float | None:
    """The mean of the whole scores from `low` to `high`, weighted by the probability of their token.

    As G-Eval does (Liu et al. 2023, arXiv:2303.16634). None where the reply does not begin with a number.
    """
    place, _ = _first(tokens, re.compile(rf"\W*[{low}-{high}](?:\.\d+)?(?!\d)"))
    if place is None:
        return None
    weights = {str(n): 0.0 for n in range(low, high + 1)}
    for text, probability in _alternatives(tokens[place]):
        word = text.strip(" \t\n*_\"'`.,:;!()[]")
        if word in weights:
            weights[word] += probability
    total = sum(weights.values())
    if total <= 0:
        return None
    return round(sum(int(n) * weight for n, weight in weights.items()) / total, 6)


def _first(tokens: Sequence[dict[str, Any]], verdict: re.Pattern[str]) -> tuple[int | None, int | None]:
    """(where the verdict's first token stands, where the reply begins); None where there is none.

    Thinking, filler and a label may stand before a verdict, other words may not.
    """
    texts = [str(t.get("token", "")) for t in tokens[:_SEARCHED]]
    whole = "".join(texts)
    close = whole.rfind(_CLOSE)
    if close < 0 and _OPEN in whole:
        return None, None
    begun: int | None = None
    begin = close + len(_CLOSE) if close >= 0 else 0
    at = 0
    for place, text in enumerate(texts):
        start, at = at, at + len(text)
        if start < begin or _FILLER.match(text):
            continue
        begun = place if begun is None else begun
        if verdict.match(whole[start:]):
            return place, begun
        if not _LABEL.match(text):
            break
    return None, begun


def _word(token: dict[str, Any]) -> str:
    return str(token.get("token", "")).strip(" \t\n*_\"'`.,:;!()[]").lower()


def _alternatives(token: dict[str, Any]) -> list[tuple[str, float]]:
    """(text, probability) of the alternatives, the chosen token among them."""
    found = [a for a in token.get("top_logprobs") or () if isinstance(a, dict)]
    if not any(a.get("token") == token.get("token") for a in found):
        found.append(token)
    pairs = []
    for one in found:
        logprob = one.get("logprob")
        if isinstance(logprob, int | float) and not math.isnan(logprob):
            pairs.append((str(one.get("token", "")), math.exp(min(0.0, float(logprob)))))
    return pairs


def _left_over(pairs: list[tuple[str, float]]) -> float:
    smallest = min((p for _, p in pairs), default=_EDGE)
    return max(_EDGE, min(smallest, 1 - sum(p for _, p in pairs)))


def _logit(p: float) -> float:
    return math.log(p / (1 - p))
