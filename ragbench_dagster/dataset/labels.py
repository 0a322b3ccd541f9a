"""What people said is right: `labels.jsonl`, {query, expected_doc_ids, expected_answer, category}.

A label attaches to the question whose normalised form it shares, after both were scrubbed the same way.
Two labels of one form that differ are a conflict: nobody can say which is right, so neither is used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.canonical import form_of
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import Undecodable, decoded, read_rows
from ragbench_dagster.store import digest

LEVELS = ("document", "chunk")


@dataclass(frozen=True, slots=True)
class Label:
    """One row of a labels file; `row` is where it stands. Without ids and answer it only names a category."""

    query: str
    expected_doc_ids: tuple[str, ...] | None = None
    expected_grades: tuple[float, ...] | None = None  # beside the ids; None: binary
    expected_answer: str | None = None
    category: str | None = None
    level: str | None = None  # "document" or "chunk": what the ids name
    history: tuple[str, ...] = ()
    synthetic: bool = False  # a machine's paraphrase, kept out of the gate
    row: int = 0
    example_id: str | None = None  # the queue's, where the row comes from one

    @property
    def labelled(self) -> bool:
        return self.expected_doc_ids is not None or self.expected_answer is not None

    @property
    def value(self) -> str:
        """Hash of what the label says; two labels agree when this is equal."""
        return digest(sorted(_graded(self).items()), self.expected_answer, size=8)


def read_labels(path: Path) -> list[Label]:
    """The labels of a JSON Lines or CSV file, in the file's order.

    Ids are text. Grades: `{id: grade}` or `[{"doc_id": ..., "grade": ...}]` (or `id`). In a CSV cell several ids are
    separated by `|`, `;` or a line break, or stand as JSON. An empty list is no label.

    Raises:
        UserError: one line with the file and the row.
    """
    return [_label(row, f"{path.name}: row {number}", number) for number, row in read_rows(path)]


def _label(row: dict[str, Any], where: str, number: int) -> Label:
    query = _text(row, "query", where)
    if not query:
        raise UserError(f"{where}: query is missing or empty")
    ids, grades = _ids(row.get("expected_doc_ids"), where)
    level = _text(row, "level", where) or _text(row, "label_level", where)
    if level and level not in LEVELS:
        raise UserError(f"{where}: level must be document or chunk")
    history = row.get("history") or ()
    if isinstance(history, str):
        history = _json_cell(history, where, "history")
    if not all(isinstance(turn, str) for turn in history):
        raise UserError(f"{where}: history must be a list of texts")
    return Label(
        query=query,
        expected_doc_ids=ids,
        expected_grades=grades,
        expected_answer=_text(row, "expected_answer", where),
        category=_text(row, "category", where),
        level=level,
        history=tuple(history),
        synthetic=row.get("synthetic") in (True, "true", "True", "1"),
        row=number,
        example_id=_text(row, "example_id", where),
    )


def _text(row: dict[str, Any], key: str, where: str) -> str | None:
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise UserError(f"{where}: {key} must be text")
    return _unescape(value.strip()) or None


def _unescape(cell: str) -> str:
    """Undo the apostrophe that exports put before a cell a spreadsheet would run as a formula."""
    return cell[1:] if re.match(r"'[=+\-@\t\r]", cell) else cell


def _json_cell(cell: str, where: str, key: str) -> Any:
    try:
        return decoded(json.loads, cell, parse_int=str, parse_float=str)
    except Undecodable as fault:
        raise UserError(f"{where}: {key} is not valid JSON") from fault


def _ids(value: Any, where: str) -> tuple[tuple[str, ...] | None, tuple[float, ...] | None]:
    """Ids and grades of any accepted spelling; repeated ids count once, the first stays."""
    if isinstance(value, str):
        cell = _unescape(value.strip())
        value = _json_cell(cell, where, "expected_doc_ids") if cell[:1] in ("[", "{") else (
            [part.strip() for part in re.split(r"[|;\n]", cell) if part.strip()]
        )  # fmt: skip
    if not value:
        return None, None
    pairs: list[tuple[Any, Any]]
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [
            (v.get("doc_id", v.get("id")), v.get("grade", "1")) if isinstance(v, dict) else (v, None) for v in value
        ]
    else:
        raise UserError(f"{where}: expected_doc_ids must be a list of ids or {{id: grade}}")
    found: dict[str, float | None] = {}
    for doc_id, grade in pairs:
        if not isinstance(doc_id, str) or not doc_id:
            raise UserError(f"{where}: expected_doc_ids holds a null, empty or nested id; write each id as text")
        found.setdefault(doc_id, None if grade is None else _grade(grade, where))
    if all(grade is None for grade in found.values()):
        return tuple(found), None
    return tuple(found), tuple(1.0 if grade is None else grade for grade in found.values())


def _grade(value: Any, where: str) -> float:
    try:
        grade = float(value)
    except (TypeError, ValueError):
        grade = math.nan
    if isinstance(value, bool) or not math.isfinite(grade) or grade < 0:
        raise UserError(f"{where}: a grade must be a number from 0 on")
    return grade


@dataclass(frozen=True, slots=True)
class LabelBook:
    """The labels by normalised form; forms whose labels disagree are in `conflicts` (form: rows)."""

    by_form: dict[str, Label]
    conflicts: dict[str, tuple[int, ...]]


def label_book(labels: Iterable[Label]) -> LabelBook:
    """Labels grouped by form. Labels that complete each other (ids in one, answer in the other) are joined."""
    groups: dict[str, list[Label]] = {}
    for label in labels:
        groups.setdefault(form_of(label.query, label.history), []).append(label)
    by_form: dict[str, Label] = {}
    conflicts: dict[str, tuple[int, ...]] = {}
    for form, group in sorted(groups.items()):
        joined = _join(group)
        if joined is None:
            conflicts[form] = tuple(sorted(label.row for label in group))
        else:
            by_form[form] = joined
    return LabelBook(by_form, conflicts)


def _join(group: list[Label]) -> Label | None:
    first = group[0]
    for other in group[1:]:
        if first.expected_doc_ids is None:
            first = replace(
                first, expected_doc_ids=other.expected_doc_ids, expected_grades=other.expected_grades,
                level=first.level or other.level,
            )  # fmt: skip
        elif other.expected_doc_ids is not None and _graded(other) != _graded(first):
            return None
        if first.expected_answer is None:
            first = replace(first, expected_answer=other.expected_answer)
        elif other.expected_answer not in (None, first.expected_answer):
            return None
        first = replace(
            first,
            category=first.category or other.category,
            synthetic=first.synthetic and other.synthetic,
        )
    return first


def _graded(label: Label) -> dict[str, float]:
    ids = label.expected_doc_ids or ()
    return dict(zip(ids, label.expected_grades or (1.0,) * len(ids), strict=True))


# The passages that systems retrieve from: `corpus.jsonl`, {doc_id, text}.


def read_corpus(path: Path) -> dict[str, str]:
    """Passages by document id, in the file's order. Ids are text, whatever they look like.

    Raises:
        UserError: one line with the file and the row: no file, an LFS pointer, an id that is missing or
            stands twice with different texts, a text that is missing.
    """
    passages: dict[str, str] = {}
    rows: dict[str, int] = {}
    for number, row in read_rows(path):
        doc_id, text = row.get("doc_id"), row.get("text")
        if not isinstance(doc_id, str) or not doc_id:
            raise UserError(f"{path.name}: row {number}: doc_id must be text or a number, and not empty")
        if not isinstance(text, str):
            raise UserError(f"{path.name}: row {number}: text is missing or not text")
        if doc_id in passages and passages[doc_id] != text:
            raise UserError(
                f"{path.name}: row {number}: its doc_id stands already in row {rows[doc_id]} with another text"
            )
        passages[doc_id] = text
        rows.setdefault(doc_id, number)
    return passages
