"""From the forms of a window and the labels to the examples of a release."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragbench_dagster.dataset.canonical import example_id, form_version, normalise
from ragbench_dagster.dataset.clusters import Clusters, Form, cluster, is_question, method_version
from ragbench_dagster.dataset.dictionary import known_words
from ragbench_dagster.dataset.labels import Label, LabelBook
from ragbench_dagster.dataset.window import Tally, Window
from ragbench_dagster.records import EXAMPLES, FORMS
from ragbench_dagster.settings import Dedupe
from ragbench_dagster.store import Workspace, rows_table


@dataclass(frozen=True, slots=True)
class _Node:
    """A form of the window or of a label, on its way to an example."""

    form: str
    tally: Tally | None
    label: Label | None
    conflict: bool

    @property
    def labelled(self) -> bool:
        return self.label is not None and self.label.labelled

    @property
    def synthetic(self) -> bool:
        """True for a machine's paraphrase that nobody asked."""
        return self.tally is None and self.label is not None and self.label.synthetic


def build_examples(ws: Workspace, window: Window, book: LabelBook) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Examples (records.EXAMPLES), forms (records.FORMS) and the manifest's facts of a window and its labels."""
    texts = sorted(window.forms.keys() | book.by_form.keys() | book.conflicts.keys())
    unanswerable = {text for text in texts if not is_question(text)}
    nodes = [
        _Node(text, window.forms.get(text), book.by_form.get(text), text in book.conflicts)
        for text in texts
        if text not in unanswerable
    ]
    cache = ws.store / "cache" / "embeddings.parquet"
    vocabulary = known_words(ws, texts, _label_texts(book))
    clusters = cluster([_as_form(node) for node in nodes], ws.settings.dataset.dedupe, cache, vocabulary)
    apart = {index for pair in clusters.kept_apart for index in pair}
    rows: list[dict[str, Any]] = []
    forms: list[dict[str, Any]] = []
    conflicts = [
        {"example_id": None, "label_rows": list(book.conflicts[text])} for text in unanswerable & book.conflicts.keys()
    ]
    for indices in clusters.members().values():
        members = [nodes[i] for i in indices]
        conflict = any(i in apart or nodes[i].conflict for i in indices)
        row = _example(members, conflict)
        if row is not None:
            rows.append(row)
            forms.extend({"form": n.form, "example_id": row["example_id"]} for n in members if n.tally or n.synthetic)
        if conflict:
            conflicts.append(
                {"example_id": row["example_id"] if row else None, "label_rows": _label_rows(members, book)}
            )
    rows.sort(key=lambda row: row["example_id"])
    forms.sort(key=lambda form: form["form"])
    conflicts.sort(key=lambda c: (c["example_id"] or "", c["label_rows"]))
    left_out = sum(window.forms[text].count for text in unanswerable & window.forms.keys())
    facts = _facts(ws, window, rows, clusters)
    facts["not_questions"] += left_out
    facts |= {"forms": len(forms), "conflicts": conflicts}
    return rows_table(rows, EXAMPLES), rows_table(forms, FORMS), facts


def _label_texts(book: LabelBook) -> Iterator[str]:
    """What the labels ask and answer."""
    yield from book.by_form
    yield from book.conflicts
    for label in book.by_form.values():
        if label.expected_answer:
            yield label.expected_answer


def _as_form(node: _Node) -> Form:
    label = f"conflict {node.form}" if node.conflict else (
        node.label.value if node.label and node.label.labelled else None
    )  # fmt: skip
    if node.tally is None:
        return Form(node.form, 0.0, (), label)
    return Form(
        node.form, node.tally.weight, tuple(sorted(node.tally.loose)), label, node.tally.text()[0], node.tally.count
    )


def _label_rows(nodes: Iterable[_Node], book: LabelBook) -> list[int]:
    rows: set[int] = set()
    for node in nodes:
        rows.update(book.conflicts.get(node.form, ()))
        if node.label:
            rows.add(node.label.row)
    return sorted(rows)


def _example(members: list[_Node], conflict: bool) -> dict[str, Any] | None:
    """One row of records.EXAMPLES, or None where nobody asked it and no machine paraphrased it.

    The canonical form is the labelled one, else the heaviest, among those that were asked.
    """
    asked = [(node, node.tally) for node in members if node.tally]
    synthetic = next((node for node in members if node.synthetic), None)
    if asked:
        head, tally = min(asked, key=lambda pair: (not pair[0].labelled, -pair[1].weight, pair[0].form))
        query, history = tally.text()
    elif synthetic and synthetic.label:
        head, query, history = synthetic, synthetic.label.query, ()
    else:
        return None
    tallies = [tally for _, tally in asked]
    label = None if conflict else _cluster_label(head, members)
    return {
        "example_id": example_id(head.form),
        "query": query,
        "history": list(history),
        "category": _category(members, tallies),
        "expected_doc_ids": list(label.expected_doc_ids) if label and label.expected_doc_ids else None,
        "expected_grades": list(label.expected_grades) if label and label.expected_grades else None,
        "expected_answer": label.expected_answer if label else None,
        "label_level": label.level if label else None,
        "conflict": conflict,
        "synthetic": bool(label and label.synthetic),
        "count": sum(tally.count for tally in tallies),
        "weight": math.fsum(weight for tally in tallies for weight in tally.weights),
        "first_day": min((tally.first_day for tally in tallies), default=None),
        "last_day": max((tally.last_day for tally in tallies), default=None),
    }


def _category(members: list[_Node], tallies: list[Tally]) -> str | None:
    """The labels' category, else the one with the most traffic."""
    named = sorted(node.label.category for node in members if node.label and node.label.category)
    if named:
        return named[0]
    weights: dict[str, list[float]] = {}
    for tally in tallies:
        for name, parts in tally.categories.items():
            weights.setdefault(name, []).extend(parts)
    return min(weights, key=lambda name: (-math.fsum(weights[name]), name), default=None)


def _cluster_label(head: _Node, members: list[_Node]) -> Label | None:
    return head.label if head.labelled else next((node.label for node in members if node.labelled), None)


def _facts(ws: Workspace, window: Window, rows: list[dict[str, Any]], clusters: Clusters) -> dict[str, Any]:
    """What the manifest says of the window, the deduplication and the labels."""
    labelled = [row for row in rows if row["expected_doc_ids"] or row["expected_answer"]]
    counted = sum(row["count"] for row in rows)
    asked = sum(row["count"] > 0 for row in rows)
    weight = math.fsum(row["weight"] for row in rows)
    categories: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = categories.setdefault(row["category"] or "", {"examples": 0, "weight": []})
        entry["examples"] += 1
        entry["weight"].append(row["weight"])
    settings = ws.settings.dataset
    return {
        "window": {
            "days": settings.window_days,
            "present": window.present,
            "missing": window.missing,
        },
        "refresh": settings.refresh,
        "dedupe": _method(settings.dedupe),
        "requests": window.facts["requests"],
        "follow_ups": window.facts["follow_ups"],
        "follow_ups_without_history": window.facts["follow_ups_without_history"],
        "not_questions": window.facts["not_questions"],
        "examples": len(rows),
        "weight": weight,
        "duplicate_rate": 1 - asked / counted if counted else None,
        "joined": clusters.steps,
        "labelled": len(labelled),
        "synthetic": len(rows) - asked,
        "label_coverage": {
            "questions": len(labelled) / len(rows) if rows else None,
            "traffic": math.fsum(row["weight"] for row in labelled) / weight if weight else None,
        },
        "categories": {
            name: {"examples": entry["examples"], "weight": math.fsum(entry["weight"])}
            for name, entry in sorted(categories.items())
        },
    }


def _method(dedupe: Dedupe) -> dict[str, Any]:
    """How the release was deduplicated, with the model's pin and threshold where one was used."""
    method = {"one_edit": dedupe.one_edit, "semantic": dedupe.semantic, "version": [form_version(), method_version()]}
    if dedupe.semantic:
        from ragbench_dagster.dataset.semantic import MODEL, MODEL_SHA256

        method |= {"threshold": dedupe.semantic_threshold, "model": MODEL, "model_sha256": MODEL_SHA256}
    return method


# Which questions of a release are about one thing: they are no independent evidence, and figures must know it.
#
# A family is, the first of these that a question has:
#
# * its conversation: follow-ups of one opening question, and that question itself;
# * its labelled passages: questions that share an expected id, also by way of others between them;
# * itself.

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
