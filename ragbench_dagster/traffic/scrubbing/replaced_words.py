"""Which words are replaced most, by kind of evidence: so that an over-hit is seen before a release is cut.

A word that stands for nobody ("Respirators" as PERSON) shows by its frequency. What is stored and printed is a
keyed hash and a length; the words themselves are shown by `ragbench stage scrub --explain` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ragbench_dagster.traffic.scrubbing.placeholders import Word
from ragbench_dagster.traffic.scrubbing.spans import Evidence

MARK = 12  # hex digits of the keyed hash that are shown
KEPT = 20  # words of each kind of evidence that a day keeps


def most_frequent(counted: Counter[Word], keyed: Callable[[str], str], top: int = KEPT) -> list[dict[str, Any]]:
    """The `top` words of each kind of evidence: {evidence, strong, type, word: keyed hash, length, times}."""
    rows = [
        {
            "evidence": evidence, "strong": Evidence(evidence).strong, "type": type_, "word": word_mark(type_, value, keyed),
            "length": len(value), "times": times,
        }
        for (evidence, type_, value), times in counted.items()
    ]  # fmt: skip
    return _topmost(rows, top)


def word_mark(type_: str, value: str, keyed: Callable[[str], str]) -> str:
    """What stands for a replaced word outside the terminal; `value` as `identity` gives it."""
    return keyed(f"word {type_} {value}")[:MARK]


def summed(days: Sequence[Sequence[dict[str, Any]]], top: int = KEPT) -> list[dict[str, Any]]:
    """The rows of several days as one list, with the number of days of each word."""
    whole: dict[tuple[str, str, str], dict[str, Any]] = {}
    for rows in days:
        for row in rows:
            kept = whole.setdefault((row["evidence"], row["type"], row["word"]), {**row, "times": 0, "days": 0})
            kept["times"] += row["times"]
            kept["days"] += 1
    return _topmost(list(whole.values()), top)


def _topmost(rows: list[dict[str, Any]], top: int) -> list[dict[str, Any]]:
    order = [e.value for e in Evidence]
    rows.sort(key=lambda r: (order.index(r["evidence"]), -r["times"], r["type"], r["word"]))
    seen: Counter[str] = Counter()
    kept = []
    for row in rows:
        seen[row["evidence"]] += 1
        if seen[row["evidence"]] <= top:
            kept.append(row)
    return kept
