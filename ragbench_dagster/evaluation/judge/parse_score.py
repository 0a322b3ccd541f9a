"""Reads one anchored number from a judge's reply: `4.5`, `Score: 4.5/5`, `[RESULT] 2`, `{"score": 4}`.

Only a number that stands where the score is asked for counts, on its own or with the scale it was asked on. "4/10",
"8" on a scale to 5, "For 5 reasons I give this a 2", "4-5", "nan": none of these is a score. Two different scores
are none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragbench_dagster.evaluation.judge.parse_verdict import json_object, split_json
from ragbench_dagster.evaluation.judge.reply import lines, plain

_LABEL = (
    r"(?:(?:the|my|our|final|overall|total|holistic|correctness|relevance|relevancy)\s+){0,6}"
    r"(?:score|rating|grade|mark|marks|points?|result|evaluation|assessment)"
    r"(?:\s*[(\[][^)\]\n]{0,30}[)\]])?(?:\s+(?:is|of|would be))?\s*[:=\-–—]*\s*"
)
_NUMBER = r"[\[(\"']{0,3}(?P<score>[+-]?\d{1,6}(?:\.\d{1,9})?)(?![\d.]*\d)[\])\"']{0,3}"
_SCALE = r"(?:\s*(?:/|out of|of)\s*(?P<scale>\d+(?:\.\d+)?)[\])]{0,3})?"
_UNIT = r"(?:\s*(?:points?|stars?))?"
_ALONE = re.compile(rf"^(?:{_LABEL})?{_NUMBER}{_SCALE}{_UNIT}\s*[.!]?$", re.IGNORECASE)
_LABEL_ALONE = re.compile(rf"^{_LABEL}$", re.IGNORECASE)
_LABELLED = re.compile(
    rf"^{_LABEL}{_NUMBER}{_SCALE}{_UNIT}(?=$|[.;,!]?\s|[.;,!]$)(?!\s*(?:-|–|to|or)\s*\d)", re.IGNORECASE
)
_RESULT = re.compile(
    rf"\[\s?RESULT\s?\]\s{{0,5}}:?\s{{0,5}}(?:{_LABEL})?{_NUMBER}{_SCALE}(?![\d/]|\.\d|\s*(?:/|out of)\s*\d)",
    re.IGNORECASE,
)
_KEYS = ("score", "rating", "grade", "result")


def read_score(text: str, low: float, high: float, cut: bool = False) -> float | None:
    """The one score between `low` and `high` that a reply gives; None where it gives none, or several.

    Args:
        text: the reply.
        low, high: the scale; `high` is what a written scale ("4/5") must say.
        cut: the reply ended at the token limit, so that its last line may be half a number.
    """
    said, closing = split_json(plain(text))
    if cut:
        said, closing = "\n".join(said.split("\n")[:-1]), None
    found = set(_of_json(closing) if closing is not None else ())
    rows = lines(said)
    for number, line in enumerate(rows):
        inner = json_object(line)
        if inner is not None:
            found.update(_of_json(inner))
            continue
        # A bare number is the score on the first line; further down it may be anything, unless a label announces it.
        announced = number == 0 or _LABEL_ALONE.match(rows[number - 1]) is not None
        match = (_ALONE.match(line) if announced else None) or _LABELLED.match(line)
        if match:
            found.add(_value(match, high))
    return _single(found, low, high)


def read_result(text: str, low: float, high: float, whole: bool = False) -> float | None:
    """The score after `[RESULT]`, the form that the relevancy templates ask for; as `read_score`.

    Args:
        text: the reply.
        low, high: the scale.
        whole: only whole numbers are scores.
    """
    found = {_value(match, high) for match in _RESULT.finditer(plain(text))}
    score = _single(found, low, high)
    return None if whole and score is not None and score != int(score) else score


def _value(match: re.Match[str], high: float) -> float:
    """The number; NaN on another scale than ours, so that it is never taken for a score."""
    scale = match["scale"]
    if scale is not None and float(scale) != high:
        return math.nan
    return float(match["score"])


def _of_json(found: Mapping[str, Any]) -> Iterator[float]:
    for key in _KEYS:
        value = found.get(key)
        if isinstance(value, str):
            match = _ALONE.match(value.strip())
            value = float(match["score"]) if match and match["scale"] is None else None
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
            yield float(value)


def _single(found: set[float], low: float, high: float) -> float | None:
    if len(found) != 1:
        return None
    score = found.pop()
    return score if math.isfinite(score) and low <= score <= high else None
