"""The law: what was derived from a person's requests is found, removed, and stays out (design rule 3).

    store/forget.json   the journal: keyed hashes and ids alone; there while a removal is not finished

Everything is looked up before anything is removed, and written down; then each step can be done twice. So a removal
that was killed is finished by the next `forget` or `run`, and looks as if it had never been killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.export import read_register, renew_exports
from ragbench_dagster.dataset.release import list_releases, load_release
from ragbench_dagster.dataset.requesters import Theirs, find_requests, remove_requests
from ragbench_dagster.dataset.tombstones import bury, successor
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.checkpoint import Checkpoint
from ragbench_dagster.evaluation.ledger import Ledger, location
from ragbench_dagster.io.inputs import read_rows
from ragbench_dagster.reporting.baselines import holds, renew
from ragbench_dagster.reporting.erased_nights import (
    compute_again,
    erase_drawn_labels,
    erase_night,
    nights_of,
    survey_night,
    surviving_answers,
)
from ragbench_dagster.results import Manifest
from ragbench_dagster.store import Workspace, read_json, write_json, write_text
from ragbench_dagster.traffic.suppression import Mark, suppress, text_mark

Also = Callable[[set[str]], object]  # given the days that changed


@dataclass
class Plan:
    """What goes. Written to the journal as JSON; no text and no id of a person is in it."""

    marks: list[list[str]]
    planned: bool = False
    requests: dict[str, list[str]] = field(default_factory=dict)  # day: request keys
    texts: list[str] = field(default_factory=list)  # marks of the questions' spellings
    releases: dict[str, dict[str, Any]] = field(default_factory=dict)  # old: {new, gone}
    nights: list[dict[str, Any]] = field(default_factory=list)  # {sample, day, old, accepted, told}
    keys: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def journal(ws: Workspace) -> Path:
    return ws.store / "forget.json"


def marks_of(ws: Workspace, users: Sequence[str], requests: Sequence[str], texts: Sequence[str]) -> list[Mark]:
    """Keyed hashes of ids as the logs have them, and of texts."""
    found: list[Mark] = [("user", ws.keyed(user)) for user in users]
    found += [("request", ws.keyed(request)) for request in requests]
    if texts:
        from ragbench_dagster.traffic.scrubbing import build_scrubber

        scrubber = build_scrubber(ws.settings.scrub, ws.root)
        found += [text_mark(ws, form) for text in texts for form in (text, scrubber.plain(text))]
    return list(dict.fromkeys(found))


def survey(ws: Workspace, marks: Sequence[Mark], keep: bool) -> Plan:
    """What `forget` would remove. Nothing is removed; the releases for the place of others are cut where `keep`.

    Raises:
        UserError: a release is broken; nothing is changed then.
    """
    theirs = find_requests(ws, marks)
    plan = Plan([list(m) for m in sorted(theirs.marks)], True, theirs.days, sorted(theirs.texts))
    named = {key for kind, key in marks if kind == "text"}
    for row in list_releases(ws):
        found = successor(ws, load_release(ws, row["id"]), theirs, named, keep)
        if found is not None and found.new != found.old:
            plan.releases[found.old] = {"new": found.new, "gone": found.gone}
    for night, day in nights_of(ws):
        _plan_night(night, day, plan, theirs)
    plan.counts = {
        "requests": theirs.requests,
        "releases": len(plan.releases),
        "examples": len({name for entry in plan.releases.values() for name in entry["gone"]}),
        "nights": len(plan.nights),
        "rows of nights": sum(entry.pop("rows") for entry in plan.nights),
        "exports": sum(
            1 for row in read_register(ws) if row["release"] in plan.releases and Path(row["path"]).exists()
        ),
    }
    return plan


def _plan_night(ws: Workspace, day: str, plan: Plan, theirs: Theirs) -> None:
    manifest = ws.result(day, Manifest)
    old = manifest.release if manifest else "None"
    entry = plan.releases.get(old)
    keys = {key for keys in theirs.days.values() for key in keys}
    held = survey_night(ws, day, keys | set(entry["gone"] if entry else ()), theirs.answers)
    if entry is None and not held.rows:
        return
    accepted = not ws.sample and holds(ws, day)
    about = {"sample": ws.sample, "day": day, "old": old, "accepted": accepted}
    plan.nights.append({**about, "told": held.told, "rows": held.rows})
    plan.keys = sorted({*plan.keys, *held.keys})
    plan.hashes = sorted({*plan.hashes, *held.hashes})
    plan.pairs = sorted({*plan.pairs, *(name for ids in held.told.values() for name in ids)})


def forget(
    ws: Workspace, marks: Sequence[Mark], dry_run: bool = False, also: Also | None = None
) -> tuple[dict[str, int], list[str]]:
    """Remove everything derived from the requests of `marks`; the caller holds the store's lock.

    Args:
        ws: the workspace.
        marks: whose, see `marks_of`.
        dry_run: only look.
        also: removes what others keep of the given days, before the removal counts as finished.

    Returns:
        Counts of what went (of what would go), and lines on what is left elsewhere.

    Raises:
        UserError: a release is broken, or a file cannot be written; what was begun is finished by the next call.
    """
    if dry_run:
        return survey(ws, marks, keep=False).counts, []
    resume(ws, also)
    write_json(journal(ws), asdict(Plan([list(m) for m in marks])))
    return resume(ws, also)


def resume(ws: Workspace, also: Also | None = None) -> tuple[dict[str, int], list[str]]:
    """Finish a removal that was begun; ({}, []) where none was. The caller holds the store's lock.

    Raises:
        UserError: as `forget`.
    """
    begun = read_json(journal(ws))
    if begun is None:
        return {}, []
    plan = Plan(**begun)
    if not plan.planned:
        plan = survey(ws, [(kind, key) for kind, key in plan.marks], keep=True)
        write_json(journal(ws), asdict(plan))
    counts, notes = _carry_out(ws, plan)
    if also is not None:
        also({*plan.requests, *(entry["day"] for entry in plan.nights)})
    journal(ws).unlink()
    return counts, notes


def _carry_out(ws: Workspace, plan: Plan) -> tuple[dict[str, int], list[str]]:
    """Every step can be done twice; the order keeps what a later step still needs."""
    successors = {old: entry["new"] for old, entry in plan.releases.items()}
    gone = {old: set(entry["gone"]) for old, entry in plan.releases.items()}
    counts = dict(plan.counts)
    asked = {key for keys in plan.requests.values() for key in keys}
    suppress(ws, [(kind, key) for kind, key in plan.marks])
    for entry in plan.nights:
        night, new = ws.sampled(entry["sample"]), successors.get(entry["old"])
        erase_night(night, entry["day"], new, asked | gone.get(entry["old"], set()), entry["told"])
    ids = sorted(asked.union(*gone.values()))
    with Ledger.open(ws) as ledger:
        counts["verdicts"] = ledger.forget(ids, plan.keys, sorted({*plan.pairs, *ids}))
    counts["drawn answers"] = erase_drawn_labels(ws, gone, successors, set(plan.hashes))
    for day, keys in plan.requests.items():
        remove_requests(ws, day, keys)
    for old, new in successors.items():
        bury(ws, old, new)
    counts["labels"] = _erase_labels(ws, set(plan.texts)) if gone else 0
    exports = renew_exports(ws, successors, {old: sorted(ids) for old, ids in gone.items()})
    notes = [f"changed: {path} (copies, commits and caches of it are beyond this command)" for path in exports]
    _drop_caches(ws, plan)
    for entry in plan.nights:
        if entry["accepted"]:
            renew(ws, entry["day"])
    for entry in plan.nights:
        notes += compute_again(ws.sampled(entry["sample"]), entry["day"])
    if location(ws).startswith("postgresql"):
        notes.append("ledger: run VACUUM FULL on its tables, or wait for autovacuum; backups keep what they hold")
    return counts, notes


def _erase_labels(ws: Workspace, texts: set[str]) -> int:
    """Take labels of questions that only the person asked out of labels.jsonl; returns how many.

    A label of a question that others asked too, in whatever words, is nobody's.
    """
    text = ws.labels.read_text(encoding="utf-8-sig") if ws.labels.exists() else ""
    if not text.lstrip().startswith("{"):
        return 0
    live = _live_texts(ws)
    asked = {number: text_mark(ws, str(row.get("query") or ""))[1] for number, row in read_rows(ws.labels)}
    numbers = {number for number, mark in asked.items() if mark in texts and mark not in live}
    if numbers:
        write_text(ws.labels, "\n".join(line for n, line in enumerate(text.split("\n"), 1) if n not in numbers))
    return len(numbers)


def _live_texts(ws: Workspace) -> set[str]:
    """Marks of the questions that releases still hold."""
    found = set[str]()
    for row in list_releases(ws):
        with contextlib.suppress(UserError):
            queries = load_release(ws, row["id"]).examples["query"].to_pylist()
            found.update(text_mark(ws, query)[1] for query in queries)
    return found


def _drop_caches(ws: Workspace, plan: Plan) -> None:
    """Caches that may hold the person's words or hashes: all but the answers that nights still hold."""
    cache = ws.store / "cache"
    for day in plan.requests:
        (cache / "digests" / f"{day}.parquet").unlink(missing_ok=True)
    for path in [*cache.glob("embeddings*.parquet"), *cache.glob("traffic/*")]:
        path.unlink(missing_ok=True)
    known = surviving_answers(ws)
    for path in sorted(cache.glob("answers/*.db")):
        with Checkpoint(path) as checkpoint:
            checkpoint.keep_only(known.get(path.stem, set()))
