"""Cutting a release: a pure function of the scrubbed days in the window and the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ragbench_dagster.dataset.cluster import Clusters, Form, cluster, is_question, method_version
from ragbench_dagster.dataset.files import read_bytes
from ragbench_dagster.dataset.frozen import (
    Release,
    load_release,
    pointer,
    pointer_file,
    refresh_day_of,
    resolve,
    write_release,
)
from ragbench_dagster.dataset.labels import Label, LabelBook, label_book, read_labels
from ragbench_dagster.dataset.normal import example_id, form_version
from ragbench_dagster.dataset.window import (
    Progress,
    Tally,
    Window,
    inputs_hash,
    read_window,
    scrubbed_file,
    window_days,
)
from ragbench_dagster.errors import UserError
from ragbench_dagster.records import EXAMPLES, FORMS
from ragbench_dagster.settings import Dedupe
from ragbench_dagster.store import Workspace, digest, rows_table, write_json


def cut_release(ws: Workspace, day: str, progress: Progress | None = None) -> Release:
    """The release that serves `day`, cut if its refresh day has none of the present inputs.

    Nothing is done where the scrubbed days, the labels and the settings are those it was cut from. A changed
    past day makes another release only if the content changes; the old one stays. With no scrubbed day in the
    window the current release serves.

    Raises:
        UserError: no scrubbed day and no earlier release; a wrong labels file; a broken release.
    """
    refresh = refresh_day_of(ws, day)
    days = window_days(refresh, ws.settings.dataset.window_days)
    present = [d for d in days if scrubbed_file(ws, d).exists()]
    if not present:
        current = resolve(ws, day)
        if current is None:
            raise UserError(
                f"no scrubbed requests in the {len(days)} days up to {refresh}, and no earlier release; "
                "put logs of those days into the source and run again"
            )
        return current
    inputs = inputs_hash(ws, present, _labels_key(ws))
    known = pointer(ws, refresh)
    if known and known["inputs"] == inputs:
        return load_release(ws, known["release"])
    window = read_window(ws, refresh, progress)
    book = scrubbed_labels(ws)
    examples, forms, manifest = build(ws, window, book)
    release = write_release(ws, refresh, examples, forms, manifest)
    write_json(
        pointer_file(ws, refresh),
        {"release": release.id, "inputs": inputs, "present": window.present, "missing": window.missing},
    )
    return release


def _labels_key(ws: Workspace) -> str:
    if not ws.labels.exists():
        return "none"
    return digest(read_bytes(ws.labels), ws.settings.scrub.model_dump(exclude={"processes", "floor"}))


def scrubbed_labels(ws: Workspace) -> LabelBook:
    """The workspace's labels, scrubbed and grouped as the traffic is; empty where there is no file.

    Raises:
        UserError: a wrong labels file.
    """
    if not ws.labels.exists():
        return LabelBook({}, {})
    labels = read_labels(ws.labels)
    from ragbench_dagster.traffic.scrubbing import Request, build_scrubber  # loads recognisers: only where needed

    scrubber = build_scrubber(ws.settings.scrub)
    plain = lru_cache(maxsize=1 << 16)(scrubber.plain)
    clean = scrubber.requests([Request(x.query, x.expected_answer, (), x.history) for x in labels])
    return label_book(
        replace(
            label,
            query=said.query,
            history=tuple(said.history),
            expected_answer=said.response,
            expected_doc_ids=None if label.expected_doc_ids is None else tuple(map(plain, label.expected_doc_ids)),
            category=None if label.category is None else plain(label.category),
        )
        for label, said in zip(labels, clean, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Node:
    """A form of the window or of a label, on its way to an example."""

    form: str
    tally: Tally | None
    label: Label | None
    conflict: bool


def build(ws: Workspace, window: Window, book: LabelBook) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Examples, forms and the manifest's facts of a window."""
    texts = sorted(window.forms.keys() | book.by_form.keys() | book.conflicts.keys())
    placeholder_only = {text for text in texts if not is_question(text)}
    nodes = [
        _Node(text, window.forms.get(text), book.by_form.get(text), text in book.conflicts)
        for text in texts
        if text not in placeholder_only
    ]
    clusters = cluster(
        [_as_form(node) for node in nodes], ws.settings.dataset.dedupe, ws.store / "cache" / "embeddings.parquet"
    )
    apart = {index for pair in clusters.kept_apart for index in pair}
    rows: list[dict[str, Any]] = []
    forms: list[dict[str, Any]] = []
    conflicts: list[dict[str, Any]] = []
    for members in clusters.members().values():
        seen = [nodes[i] for i in members if nodes[i].tally]
        conflict = any(i in apart or nodes[i].conflict for i in members)
        row = _example(seen, [nodes[i] for i in members], conflict) if seen else None
        if row is not None:
            rows.append(row)
            forms.extend({"form": node.form, "example_id": row["example_id"]} for node in seen)
        if conflict:
            conflicts.append(
                {
                    "example_id": row["example_id"] if row else None,
                    "label_rows": _label_rows((nodes[i] for i in members), book),
                }
            )
    conflicts += [
        {"example_id": None, "label_rows": list(book.conflicts[text])}
        for text in placeholder_only
        if text in book.conflicts
    ]
    rows.sort(key=lambda row: row["example_id"])
    forms.sort(key=lambda form: form["form"])
    conflicts.sort(key=lambda c: (c["example_id"] or "", c["label_rows"]))
    left_out = sum(window.forms[text].count for text in placeholder_only if text in window.forms)
    manifest = _manifest(ws, window, rows, forms, clusters, conflicts, left_out)
    return rows_table(rows, EXAMPLES), rows_table(forms, FORMS), manifest


def _as_form(node: _Node) -> Form:
    label = f"conflict {node.form}" if node.conflict else (
        node.label.value if node.label and node.label.labelled else None
    )  # fmt: skip
    if node.tally is None:
        return Form(node.form, 0.0, (), label)
    return Form(node.form, node.tally.weight, tuple(sorted(node.tally.loose)), label, node.tally.text()[0])


def _label_rows(nodes: Iterable[_Node], book: LabelBook) -> list[int]:
    rows: set[int] = set()
    for node in nodes:
        rows.update(book.conflicts.get(node.form, ()))
        if node.label:
            rows.add(node.label.row)
    return sorted(rows)


def _example(seen: list[_Node], members: list[_Node], conflict: bool) -> dict[str, Any]:
    """One row of records.EXAMPLES; the canonical form is the labelled one, else the heaviest."""
    tallies = [node.tally for node in seen if node.tally]
    head = min(seen, key=lambda n: (not (n.label and n.label.labelled), -n.tally.weight if n.tally else 0.0, n.form))
    assert head.tally
    query, history = head.tally.text()
    label = None if conflict else _cluster_label(head, members)
    categories: dict[str, list[float]] = {}
    for tally in tallies:
        for name, weights in tally.categories.items():
            categories.setdefault(name, []).extend(weights)
    named = sorted(node.label.category for node in members if node.label and node.label.category)
    heaviest = min(categories, key=lambda name: (-math.fsum(categories[name]), name), default=None)
    return {
        "example_id": example_id(head.form),
        "query": query,
        "history": list(history),
        "category": named[0] if named else heaviest,
        "expected_doc_ids": list(label.expected_doc_ids) if label and label.expected_doc_ids else None,
        "expected_grades": list(label.expected_grades) if label and label.expected_grades else None,
        "expected_answer": label.expected_answer if label else None,
        "label_level": label.level if label else None,
        "conflict": conflict,
        "synthetic": bool(label and label.synthetic),
        "count": sum(tally.count for tally in tallies),
        "weight": math.fsum(weight for tally in tallies for weight in tally.weights),
        "first_day": min(tally.first_day for tally in tallies),
        "last_day": max(tally.last_day for tally in tallies),
    }


def _cluster_label(head: _Node, members: list[_Node]) -> Label | None:
    if head.label and head.label.labelled:
        return head.label
    return next((node.label for node in members if node.label and node.label.labelled), None)


def _manifest(
    ws: Workspace,
    window: Window,
    rows: list[dict[str, Any]],
    forms: list[dict[str, Any]],
    clusters: Clusters,
    conflicts: list[dict[str, Any]],
    placeholder_only: int,
) -> dict[str, Any]:
    labelled = [row for row in rows if row["expected_doc_ids"] or row["expected_answer"]]
    counted = sum(row["count"] for row in rows)
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
        "not_questions": window.facts["not_questions"] + placeholder_only,
        "examples": len(rows),
        "forms": len(forms),
        "weight": weight,
        "duplicate_rate": 1 - len(rows) / counted if counted else None,
        "joined": clusters.steps,
        "labelled": len(labelled),
        "label_coverage": {
            "questions": len(labelled) / len(rows) if rows else None,
            "traffic": math.fsum(row["weight"] for row in labelled) / weight if weight else None,
        },
        "conflicts": conflicts,
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
