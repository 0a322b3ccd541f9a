"""Which questions of a release are about one thing: they are no independent evidence, and figures must know it.

A family is, the first of these that a question has:

* its conversation: follow-ups of one opening question, and that question itself;
* its labelled passages: questions that share an expected id, also by way of others between them;
* itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragbench_dagster.dataset.normal import normalise

_ROLE = re.compile(r"^(user|human): ")
_ANSWERED_BY = re.compile(r"^(assistant|ai|bot|model|tool|function): ")


def families(examples: pa.Table) -> NDArray[np.int64]:
    """The family of each example as a number, 0, 1, 2, ... in the order of their first example.

    Args:
        examples: rows of records.EXAMPLES; `query`, `history`, `expected_doc_ids` and `expected_grades` are read.
            An expected id of a grade below 1 is not relevant and joins nothing.

    Returns:
        One number a row. The numbers name no family beyond this table.
    """
    rows = examples.select(["query", "history", "expected_doc_ids", "expected_grades"]).to_pylist()
    openings = [_opening(row["history"] or ()) for row in rows]
    talked = {opening for opening in openings if opening}
    keys: list[list[Any]] = []
    for row, opening in zip(rows, openings, strict=True):
        own = opening or normalise(row["query"])
        keys.append([("talk", own)] if own in talked else [("passage", name) for name in _relevant(row)])
    return _joined(keys)


def _opening(history: Sequence[str]) -> str:
    """Normal form of the first turn of two words or more; "" where there is none: "hi" opens any conversation."""
    for turn in history:
        if not _ANSWERED_BY.match(turn) and " " in (form := normalise(_ROLE.sub("", turn))):
            return form
    return ""


def _relevant(row: dict[str, Any]) -> list[str]:
    ids = row["expected_doc_ids"] or []
    grades = row["expected_grades"] or [1.0] * len(ids)
    return [name for name, grade in zip(ids, grades, strict=True) if grade is None or grade >= 1]


def _joined(keys: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    """Rows that share a key, directly or through others, get one number (union-find)."""
    parent = list(range(len(keys)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    seen: dict[Any, int] = {}
    for row, own in enumerate(keys):
        for key in own:
            a, b = root(row), root(seen.setdefault(key, row))
            parent[max(a, b)] = min(a, b)
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(root(row), len(numbers)) for row in range(len(keys))], dtype=np.int64)
