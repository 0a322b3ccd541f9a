"""Labels on their way into `labels.jsonl`: people's, from a filled-in queue, and paraphrases of a machine."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.canonical import form_of
from ragbench_dagster.dataset.label_queue import label_queue, returned_ids, write_queue
from ragbench_dagster.dataset.labels import Label, label_book, read_corpus, read_labels
from ragbench_dagster.dataset.release import Release, latest, scrub_labels
from ragbench_dagster.dataset.semantic import same_facts
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import read_bytes
from ragbench_dagster.store import Workspace, write_atomic

__all__ = ["import_labels", "label_queue", "paraphrase", "write_queue"]

_ASK = (
    "Rephrase the question below as another person would type it. Keep its meaning, its names, numbers and "
    "placeholders such as <PERSON_1> exactly. Do not answer it and add nothing. Reply with the question alone, on one "
    "line.\n\nQuestion: {query}"
)
_AT_ONCE = 8  # questions asked at the same time


def import_labels(ws: Workspace, file: Path, force: bool = False) -> dict[str, Any]:
    """Check the labels of a filled-in queue or any labels file and add them to `labels.jsonl`.

    A row whose `example_id` the current release knows labels that example, whatever a spreadsheet made of its text.
    Rows without ids and answer are passed over. Nothing is written where any row is wrong.

    Args:
        ws: the workspace.
        file: what people filled in.
        force: take ids that neither the corpus nor a system has, too (those of a corpus to come).

    Returns:
        Counts: added, unchanged, empty, not_in_release (labels that no question of the release has), and the coverage
        of questions and traffic before and after.

    Raises:
        UserError: a wrong row, an id that neither the corpus nor a system has, or a label that contradicts another
            one; the rows are named.
    """
    release = latest(ws)
    rows = _known_queries(read_labels(file), release)
    filled = [label for label in rows if label.labelled]
    before = read_labels(ws.labels) if ws.labels.exists() else []
    book = label_book(scrub_labels(ws, before))
    if book.conflicts:
        rows_of = next(iter(book.conflicts.values()))
        named = ", ".join(map(str, rows_of))
        raise UserError(f"{ws.labels.name}: rows {named}: different labels for the same question; correct them first")
    known = book.by_form
    clean = scrub_labels(ws, filled)
    if not force:
        _refuse_unknown_ids(ws, filled, clean, file.name)
    old = {form for form, label in known.items() if label.labelled}
    fresh = _without_conflicts(known, filled, clean, file.name)
    if fresh:
        _append(ws.labels, before, fresh)
    found: dict[str, Any] = {
        "added": len(fresh),
        "unchanged": len(filled) - len(fresh),
        "empty": len(rows) - len(filled),
    }
    if release is None:
        return found
    new = {form_of(label.query, label.history) for label in clean}
    found["not_in_release"] = len(new - set(release.forms["form"].to_pylist()))
    for name, forms in (("before", old), ("after", old | new)):
        found[f"questions_labelled_{name}"], found[f"traffic_labelled_{name}"] = coverage(release, forms)
    return found


def _refuse_unknown_ids(ws: Workspace, labels: list[Label], clean: list[Label], name: str) -> None:
    """Raises UserError for ids that can never be found: every system would read 0 on them, and look broken.

    Without a corpus nobody can tell: a passage that no system returned yet may be the right one.
    """
    if not ws.corpus.exists():
        return
    corpus, returned = set(read_corpus(ws.corpus)), returned_ids(ws)
    wrong = [
        (label.row, stored)
        for label, said in zip(labels, clean, strict=True)
        for written, stored in zip(label.expected_doc_ids or (), said.expected_doc_ids or (), strict=True)
        if written not in corpus and not {written, stored} & returned
    ]
    if wrong:
        row, doc_id = wrong[0]
        more = len({other for other, _ in wrong}) - 1
        also = f", and {more} more rows" if more else ""
        raise UserError(
            f"{name}: row {row}: no corpus and no system has the id {doc_id[:60]!r}{also}; "
            "correct it, or take it as it is: ragbench label import --force"
        )


def coverage(release: Release, forms: set[str]) -> tuple[float, float]:
    """Shares of the questions and of the traffic of a release that labels of these forms reach."""
    of_form = dict(zip(release.forms["form"].to_pylist(), release.forms["example_id"].to_pylist(), strict=True))
    reached = {of_form[form] for form in forms if form in of_form}
    weights = dict(zip(release.examples["example_id"].to_pylist(), release.examples["weight"].to_pylist(), strict=True))
    total = math.fsum(weights.values())
    hit = math.fsum(weights[example_id] for example_id in sorted(reached))
    return len(reached) / len(weights) if weights else 0.0, hit / total if total else 0.0


def _known_queries(labels: list[Label], release: Release | None) -> list[Label]:
    if release is None:
        return labels
    rows = release.examples.select(["example_id", "query", "history"]).to_pylist()
    known = {row["example_id"]: (row["query"], tuple(row["history"])) for row in rows}
    return [
        replace(label, query=known[label.example_id][0], history=known[label.example_id][1])
        if label.example_id in known
        else label
        for label in labels
    ]


def _without_conflicts(known: dict[str, Label], fresh: list[Label], clean: list[Label], name: str) -> list[Label]:
    """The labels of `fresh` that say something new.

    Args:
        known: the workspace's labels by form.
        clean: `fresh`, scrubbed.

    Raises:
        UserError: the first one that contradicts a label of the workspace or an earlier row.
    """
    known = dict(known)
    where = {form: f"labels.jsonl row {label.row}" for form, label in known.items()}
    added = []
    for label, said in zip(fresh, clean, strict=True):
        form = form_of(said.query, said.history)
        book = label_book([known[form], said] if form in known else [said])
        if book.conflicts:
            raise UserError(
                f"{name}: row {label.row}: another label than {where[form]} for the same question; correct one of them"
            )
        if form not in known or book.by_form[form].value != known[form].value:
            added.append(label)
            where.setdefault(form, f"row {label.row}")
        known[form] = book.by_form[form]
    return added


def _append(path: Path, before: list[Label], fresh: list[Label]) -> None:
    """Add lines to a JSON Lines file; one that is CSV is written anew as JSON Lines."""
    old = read_bytes(path) if path.exists() else b""
    if not old.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        old = b"".join(map(_line, before))
    elif not old.endswith(b"\n"):
        old += b"\n"
    data = old + b"".join(map(_line, fresh))
    write_atomic(path, lambda part: part.write_bytes(data))


def _line(label: Label) -> bytes:
    ids: Any = label.expected_doc_ids
    if ids is not None:
        ids = list(ids) if label.expected_grades is None else dict(zip(ids, label.expected_grades, strict=True))
    row = {
        "query": label.query,
        "expected_doc_ids": ids,
        "expected_answer": label.expected_answer,
        "category": label.category,
        "level": label.level,
        "history": list(label.history) or None,
        "synthetic": label.synthetic or None,
    }
    kept = {key: value for key, value in row.items() if value is not None}
    return (json.dumps(kept, ensure_ascii=False) + "\n").encode("utf-8", "replace")


async def paraphrase(ws: Workspace, n: int, ask: Callable[[str], Awaitable[str]]) -> dict[str, int]:
    """Have a language model rephrase the `n` heaviest labelled questions; never invents one.

    The paraphrases go to `labels.jsonl` with their question's label, marked synthetic: a release holds them, the gate
    does not count them. A reply that loses a number, a name or a negation, or changes nothing, is thrown away.

    Args:
        ask: sends one prompt and returns the reply; retries and limits are its own.

    Returns:
        Counts: asked, added, rejected.

    Raises:
        UserError: no release yet.
    """
    release = latest(ws)
    if release is None:
        raise UserError("no release yet, so nothing to paraphrase; make one with: ragbench run")
    before = read_labels(ws.labels) if ws.labels.exists() else []
    taken = {form_of(label.query, label.history) for label in before} | set(release.forms["form"].to_pylist())
    chosen = _heaviest_labelled(release, n)
    added: list[Label] = []
    for start in range(0, len(chosen), _AT_ONCE):
        batch = chosen[start : start + _AT_ONCE]
        replies = await asyncio.gather(*(ask(_ASK.format(query=row["query"])) for row in batch))
        for row, reply in zip(batch, replies, strict=True):
            text = _one_line(reply)
            form = form_of(text) if text else ""
            if form and form not in taken and same_facts(form_of(row["query"]), form):
                taken.add(form)
                added.append(_synthetic(row, text))
    if added:
        _append(ws.labels, before, added)
    return {"asked": len(chosen), "added": len(added), "rejected": len(chosen) - len(added)}


def _heaviest_labelled(release: Release, n: int) -> list[dict[str, Any]]:
    rows = [
        row
        for row in release.examples.to_pylist()
        if (row["expected_doc_ids"] or row["expected_answer"])
        and not (row["conflict"] or row["synthetic"] or row["history"])
    ]
    return sorted(rows, key=lambda row: (-row["weight"], row["example_id"]))[:n]


def _synthetic(row: dict[str, Any], text: str) -> Label:
    def tupled(value: Sequence[Any] | None) -> tuple[Any, ...] | None:
        return None if value is None else tuple(value)

    return Label(
        query=text,
        expected_doc_ids=tupled(row["expected_doc_ids"]),
        expected_grades=tupled(row["expected_grades"]),
        expected_answer=row["expected_answer"],
        category=row["category"],
        level=row["label_level"],
        synthetic=True,
    )


def _one_line(reply: str) -> str:
    """The question in a model's reply: one line, without quotes or a heading; empty where there are several."""
    lines = [line.strip() for line in reply.split("\n") if line.strip()]
    if len(lines) != 1:
        return ""
    text = re.sub(r"^(?:question|rephrased|paraphrase)\s*:\s*", "", lines[0], flags=re.IGNORECASE)
    return text.strip().strip("\"'“”").strip()
