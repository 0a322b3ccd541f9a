"""Reads one anchored YES or NO from a judge's reply.

Anchored means: where a verdict is given, not mentioned. A line of its own ("NO", "Verdict: **YES**"), the start of a
sentence ("No. It was updated yesterday."), or the value of a JSON object that is the whole reply or a whole line.
"yes" inside a word, a quotation or a sentence is no verdict. Two different verdicts are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragbench_dagster.evaluation.judge.reply import lines, plain

_QUOTES = "\"'“”‘’«»„"
_LABEL = (
    r"(?:(?:so|thus|therefore|hence|overall|in conclusion|to conclude|conclusion|finally)\b[,:]?\s*)?"
    r"(?:(?:the|my|our|your|final|overall|correct|short)\s+)*"
    r"(?:answer|verdict|decision|judge?ment|conclusion|result|response|evaluation|assessment|label|output|ruling|rating)"
    r"(?:\s+(?:is|was|would be|should be|to the question is))?\s*[:=\-–—]*\s*"
)
_WORD = rf"[{_QUOTES}(\[]*\b(?P<verdict>yes|no)\b[{_QUOTES})\]]*"
# What may follow a verdict: the end, or punctuation that closes it. Not "or", "/", "and": that is a choice.
_AFTER = r"(?=\s*(?:$|[.,;:!?\n)\]}]|\s[-–—]+\s|[-–—]{2,}|—|–))(?!\s*[,/|]?\s*(?:or\b|and\b|/|\||or/))"
_LABELLED = re.compile(rf"^{_LABEL}{_WORD}{_AFTER}", re.IGNORECASE)
_LABELLED_LATE = re.compile(rf"(?:^|[.;!?]\s+|\n){_LABEL}{_WORD}{_AFTER}", re.IGNORECASE)
_SENTENCE = re.compile(rf"(?:^|[.;!?]\s+){_WORD}{_AFTER}", re.IGNORECASE)
# The form that the templates ask for, run on without punctuation: "NO The context says ...".
_CAPITALS = re.compile(rf"^[{_QUOTES}(\[]*(?P<verdict>YES|NO)[{_QUOTES})\]]*(?=\s+[A-Z][a-z])")
_CORRECTION = re.compile(
    r"\b(?:actually|wait|correction|rather|sorry|or rather|hold on|on second thoughts?|on reflection|scratch that"
    rf"|strike that|hmm+)\b[\s,:;.!…-]*(?:my answer is\s*|it is\s*|it'?s\s*|the answer is\s*)?{_WORD}",
    re.IGNORECASE,
)
_KEYS = ("verdict", "answer", "passing", "pass", "result", "decision", "judgment", "judgement", "label", "supported")
_REFUSAL = re.compile(
    r"^(?:(?:i['’]?m|i am|we['’]?re|we are)\s+(?:very\s+|really\s+|so\s+)?sorry\b|sorry\b|(?:my )?apologies\b"
    r"|i (?:must )?apologi[sz]e\b|unfortunately\b|as an? (?:ai|language model|assistant)\b"
    r"|i (?:can(?:no|['’])t|cannot)\b|i(?:['’]m| am) (?:not able|unable)\b"
    r"|i (?:won['’]t|will not|must decline|have to decline|decline|refuse)\b)",
    re.IGNORECASE,
)
_DECLINES = re.compile(
    r"\b(?:can(?:no|['’])t|cannot|can not|unable|not able|won['’]t|will not|decline|refuse|not comfortable|not allowed)"
    r"\b.{0,40}\b(?:assist|help|comply|fulfil\w*|continue|engage|respond|provide|discuss|(?:do|answer) (?:that|this)"
    r"|request|evaluat\w*|judg\w*|grad\w*|rate|process|support (?:that|this))\b|\bdecline\b|\brefuse\b",
    re.IGNORECASE | re.DOTALL,
)


def read_yes_no(text: str) -> bool | None:
    """True for YES, False for NO, None where the reply gives no single verdict."""
    found = set(_verdicts(plain(text)))
    return found.pop() if len(found) == 1 else None


def is_refusal(text: str) -> bool:
    """True where the reply declines to judge: said at its start, in so many words."""
    said = plain(text)
    return len(said) < 1500 and bool(_REFUSAL.search(said)) and bool(_DECLINES.search(said[:400]))


def json_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object that is the whole of `text`; None where it is anything else."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        found = json.loads(text, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def split_json(text: str) -> tuple[str, Mapping[str, Any] | None]:
    """(what stands before, the JSON object that ends `text` and begins a line); (`text`, None) without one."""
    if text.endswith("}"):
        # The last few that begin a line: an object over many lines starts with the first of them.
        starts = [found.start() for found in re.finditer(r"^\{", text, re.MULTILINE)][-20:]
        for start in starts:
            found = json_object(text[start:])
            if found is not None:
                return text[:start].strip(), found
    return text, None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses an object that names a key twice with different values: the second would silently win."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().lower()
        if name in found and found[name] != value:
            raise ValueError("two values")
        found[name] = value
    return found


def _verdicts(text: str) -> Iterator[bool]:
    text, closing = split_json(text)
    if closing is not None:
        yield from _in_json(closing)
    for number, line in enumerate(lines(text)):
        inner = json_object(line)
        if inner is not None:
            yield from _in_json(inner)
            continue
        for pattern in (_SENTENCE, _LABELLED_LATE, _CORRECTION):
            for found in pattern.finditer(line):
                yield _is_yes(found)
        capitals = _CAPITALS.match(line) if number == 0 else None
        if capitals:
            yield _is_yes(capitals)


def _in_json(found: Mapping[str, Any]) -> Iterator[bool]:
    for key in _KEYS:
        value = found.get(key)
        if isinstance(value, bool):
            yield value
        elif isinstance(value, str):
            word = value.strip(f" .!{_QUOTES}").lower()
            if word in ("yes", "no"):
                yield word == "yes"


def _is_yes(found: re.Match[str]) -> bool:
    return found["verdict"].lower() == "yes"
