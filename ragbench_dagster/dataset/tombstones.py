"""The one exception to a frozen release, the law: what a person asked is taken out, and another release stands there.

`successor` cuts the other release from what the rest asked; every example of theirs stays as it was, byte for byte.
`bury` puts a tombstone in the old one's place. Whose requests they are belongs in `requesters`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa

from ragbench_dagster.dataset.canonical import example_id
from ragbench_dagster.dataset.release import (
    FILES,
    TOMBSTONE,
    Release,
    content_hash,
    pointer,
    pointer_file,
    write_release,
)
from ragbench_dagster.dataset.requesters import Theirs, form_key, window_rows
from ragbench_dagster.records import EXAMPLES, FORMS
from ragbench_dagster.store import Workspace, read_json, rows_table, write_json
from ragbench_dagster.traffic.suppression import text_mark


@dataclass
class _Rest:
    """What everybody else asked of one form in a release's window."""

    count: int = 0
    weights: list[float] = field(default_factory=list)
    texts: dict[tuple[str, tuple[str, ...]], list[float]] = field(default_factory=dict)
    categories: dict[str, list[float]] = field(default_factory=dict)
    days: list[str] = field(default_factory=list)

    def add(self, day: str, weight: float, row: dict[str, Any] | None) -> None:
        self.count += 1
        self.weights.append(weight)
        self.days.append(day)
        if row is not None:
            self.texts.setdefault((row["query"], tuple(row["history"] or ())), []).append(weight)
            if row["category"] is not None:
                self.categories.setdefault(row["category"], []).append(weight)


@dataclass(frozen=True)
class Succession:
    """An old release, the one for its place, and which examples are the person's: answers to them go."""

    old: str
    new: str
    gone: list[str]  # that are no more, or were spelled as the person spelled them


def successor(ws: Workspace, release: Release, theirs: Theirs, marks: set[str], keep: bool = True) -> Succession | None:
    """Cut the release for the place of one that holds requests of `theirs`; None where it holds none.

    Args:
        ws: the workspace; the days' rows are still as they were.
        release: verified.
        theirs: whose requests go.
        marks: keyed hashes of texts that go whoever asked them.
        keep: write it; else only its id is found.
    """
    window = list((release.manifest.get("window") or {}).get("present") or [])
    wanted = {key for day in window for key in theirs.forms.get(day, ())}
    keys = {form: form_key(ws, form) for form in release.forms["form"].to_pylist()}
    of_form = dict(zip(release.forms["form"].to_pylist(), release.forms["example_id"].to_pylist(), strict=True))
    rows = {row["example_id"]: row for row in release.examples.to_pylist()}
    named = {name for name, row in rows.items() if marks and text_mark(ws, row["query"])[1] in marks}
    touched = {of_form[form] for form, key in keys.items() if key in wanted} | named
    if not touched:
        return None
    members: dict[str, list[str]] = {}
    for form, name in of_form.items():
        if name in touched:
            members.setdefault(name, []).append(form)
    rest, whole = _rest_of(ws, window, theirs, {keys[f] for forms in members.values() for f in forms})
    gone: set[str] = set()
    forms = {form: name for form, name in of_form.items() if name not in touched}
    for name in sorted(touched):
        row, own = rows.pop(name), {f: rest[keys[f]] for f in members.get(name, []) if keys[f] in rest}
        kept = None if name in named else _changed(ws, row, own, theirs, whole)
        if kept is None or kept["example_id"] != name or kept["query"] != row["query"]:
            gone.add(name)
        if kept is not None:
            rows[kept["example_id"]] = kept
            forms |= dict.fromkeys(own, kept["example_id"])
    listed = [rows[name] for name in sorted(rows)]
    examples: pa.Table = rows_table(listed, EXAMPLES)
    table: pa.Table = rows_table([{"form": form, "example_id": forms[form]} for form in sorted(forms)], FORMS)
    if keep:
        facts = _manifest(release, listed, table.num_rows, gone, theirs)
        new = write_release(ws, release.day, examples, table, facts).id
    else:
        new = f"{release.day}-{content_hash(examples, table)}"
    return Succession(release.id, new, sorted(gone))


def _rest_of(ws: Workspace, window: list[str], theirs: Theirs, wanted: set[str]) -> tuple[dict[str, _Rest], bool]:
    """(form key: the others' requests, whether the store still knows every day of the window)."""
    found: dict[str, _Rest] = {}
    whole = True
    for day in window:
        folder = ws.traffic(day)
        whole &= (folder / "scrubbed.parquet").exists() or (folder / "asked.parquet").exists()
        mine = dict.fromkeys(theirs.days.get(day, ()))
        if (folder / "scrubbed.parquet").exists():
            for key, weight, row in window_rows(ws, day):
                if key in wanted and row is not None and row["request_key"] not in mine:
                    found.setdefault(key, _Rest()).add(day, weight, row)
            continue
        left = {key: len(weights) for key, weights in theirs.forms.get(day, {}).items()}
        for key, weight, _ in window_rows(ws, day):
            if left.get(key, 0) > 0 and weight in theirs.forms[day][key]:
                left[key] -= 1
            elif key in wanted:
                found.setdefault(key, _Rest()).add(day, weight, None)
    return found, whole


def _changed(
    ws: Workspace, row: dict[str, Any], own: dict[str, _Rest], theirs: Theirs, whole: bool
) -> dict[str, Any] | None:
    """The example as the rest asked it; None where nobody else did, or nobody can say so."""
    if row["synthetic"] and not own:
        return row if row["count"] == 0 else None
    if not own or not whole:
        return None
    head = min(own, key=lambda form: (example_id(form) != row["example_id"], -math.fsum(own[form].weights), form))
    name = row["example_id"] if _heads(row, own) else example_id(head)
    texts: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for rest in own.values():
        for text, weights in rest.texts.items():
            texts.setdefault(text, []).extend(weights)
    said = (row["query"], tuple(row["history"]))
    if said not in texts:
        spelled = own[head].texts or texts
        if spelled:
            said = min(spelled, key=lambda text: (-math.fsum(spelled[text]), text))
        elif text_mark(ws, row["query"])[1] in theirs.texts or not theirs.texts:
            said = (head, said[1]) if not said[1] else said  # of the rest, retention left the form alone
    days = sorted(day for rest in own.values() for day in rest.days)
    return {
        **row,
        "example_id": name,
        "query": said[0],
        "history": list(said[1]),
        "category": _category(row, own),
        "count": sum(rest.count for rest in own.values()),
        "weight": math.fsum(w for rest in own.values() for w in rest.weights),
        "first_day": date.fromisoformat(days[0]),
        "last_day": date.fromisoformat(days[-1]),
    }


def _heads(row: dict[str, Any], own: dict[str, _Rest]) -> bool:
    """Whether the form that names the example is one that others asked, or a label's."""
    labelled = row["expected_doc_ids"] is not None or row["expected_answer"] is not None
    return labelled or any(example_id(form) == row["example_id"] for form in own)


def _category(row: dict[str, Any], own: dict[str, _Rest]) -> str | None:
    named: dict[str, list[float]] = {}
    for rest in own.values():
        for name, weights in rest.categories.items():
            named.setdefault(name, []).extend(weights)
    labelled = row["expected_doc_ids"] is not None or row["expected_answer"] is not None
    if labelled or row["category"] in named or not named:
        return row["category"]
    return min(named, key=lambda name: (-math.fsum(named[name]), name))


def _manifest(old: Release, rows: list[dict[str, Any]], forms: int, gone: set[str], theirs: Theirs) -> dict[str, Any]:
    """The old manifest with the figures that changed."""
    facts = {k: v for k, v in old.manifest.items() if k not in ("id", "day", "files")}
    weight, counted = math.fsum(r["weight"] for r in rows), sum(r["count"] for r in rows)
    labelled = [r for r in rows if r["expected_doc_ids"] or r["expected_answer"]]
    asked = sum(r["count"] > 0 for r in rows)
    categories: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = categories.setdefault(row["category"] or "", {"examples": 0, "weight": []})
        entry["examples"] += 1
        entry["weight"].append(row["weight"])
    window = set((facts.get("window") or {}).get("present") or ())
    lost = sum(len(keys) for day, keys in theirs.days.items() if day in window)
    return facts | {
        "requests": max(0, facts["requests"] - lost),
        "examples": len(rows),
        "forms": forms,
        "weight": weight,
        "duplicate_rate": 1 - asked / counted if counted else None,
        "labelled": len(labelled),
        "synthetic": len(rows) - asked,
        "label_coverage": {
            "questions": len(labelled) / len(rows) if rows else None,
            "traffic": math.fsum(r["weight"] for r in labelled) / weight if weight else None,
        },
        "categories": {
            name: {"examples": e["examples"], "weight": math.fsum(e["weight"])}
            for name, e in sorted(categories.items())
        },
        "conflicts": [c for c in facts.get("conflicts", []) if c["example_id"] not in gone],
    }


def bury(ws: Workspace, old: str, new: str) -> bool:
    """Put a tombstone in the place of `old` and let its refresh day point to `new`; False where that is done already.

    Killed at any moment, it can be done again: the tombstone comes first, and says that the rest may go.
    """
    folder = ws.release(old)
    if old == new:
        return False
    examples = (read_json(folder / "manifest.json") or {}).get("examples")
    fresh = not (folder / TOMBSTONE).exists()
    if fresh:
        write_json(folder / TOMBSTONE, {"id": old, "successor": new, "examples": examples})
    known = pointer(ws, old[:10])
    if known and known["release"] == old:
        write_json(pointer_file(ws, old[:10]), {**known, "release": new})
    for name in (*FILES, "manifest.json"):
        (folder / name).unlink(missing_ok=True)
    return fresh
