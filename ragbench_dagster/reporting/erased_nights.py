"""The nights of a release that was withdrawn: the person's rows go, what was computed from all rows is computed again.

Rows of other people's examples stay as they are; only their weights follow the release that now stands there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from ragbench_dagster.calibration.label_audit import forget_drawn
from ragbench_dagster.dataset.dedupe import measure_release
from ragbench_dagster.dataset.release import load_release
from ragbench_dagster.dataset.requesters import answer_mark
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.pipeline import night_release_of, window_of
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.leaderboard import rank
from ragbench_dagster.reporting.report import write_report
from ragbench_dagster.reporting.scores import build_scores
from ragbench_dagster.reporting.summary import summarise
from ragbench_dagster.reporting.tracking import track, untrack
from ragbench_dagster.results import Manifest
from ragbench_dagster.settings import Settings
from ragbench_dagster.store import Workspace, read_table, write_table, write_text

COMPUTED = ("summary.json", "summary.parquet", "leaderboard.json", "gate.json", "report.html", "dedupe.json")


@dataclass
class Held:
    """What a night holds of a person; nothing is changed by looking."""

    told: dict[str, list[str]] = field(default_factory=dict)  # system: other examples with an answer of the person's
    rows: int = 0
    keys: set[str] = field(default_factory=set)  # the ledger's keys of the verdicts on them
    hashes: set[str] = field(default_factory=set)  # of the answers


def nights_of(ws: Workspace) -> Iterator[tuple[Workspace, str]]:
    """Every night in the store, with the workspace that reads it (those of `run --sample` too), by date."""
    for folder in sorted(ws.store.glob("nights*")):
        sample = folder.name.removeprefix("nights-sample-") if folder.name != "nights" else "0"
        if sample.isdigit():
            for day in sorted(p.name for p in folder.glob("????-??-??") if p.is_dir()):
                yield ws.sampled(int(sample)), day


def survey_night(ws: Workspace, day: str, gone: set[str], answers: set[str]) -> Held:
    """What is the person's in the night's tables.

    Args:
        ws: the workspace whose night it is.
        day: the night.
        gone: examples of its release, and keys of requests, that are the person's.
        answers: marks of the logged answers that the person was given.
    """
    held = Held()
    for path in sorted(ws.night(day).glob("*/responses.parquet")):
        told = _told(ws, path, answers) - gone
        if told:
            held.told[path.parent.name] = sorted(told)
        for other in _by_example(path.parent.glob("*.parquet")):
            for row in read_table(other).to_pylist():
                if _id(row) in gone or _id(row) in told:
                    held.rows += 1
                    held.keys.update([row["key"]] if row.get("key") else [])
                    held.hashes.update([row["answer_hash"]] if row.get("answer_hash") else [])
    return held


def _by_example(paths: Iterable[Path]) -> list[Path]:
    """Tables whose rows are of examples; those of production's requests are dropped whole."""
    return sorted(path for path in paths if not path.name.startswith("request"))


def _told(ws: Workspace, path: Path, answers: set[str]) -> set[str]:
    """Examples whose logged answer is one that the person was given: the text and the time it took agree."""
    times = path.with_name("timings.parquet")
    if not answers or not times.exists():
        return set()
    took = dict(zip(*read_table(times, ["example_id", "latency_ms"]).to_pydict().values(), strict=True))
    columns = read_table(path, ["example_id", "response"]).to_pydict()
    return {
        name
        for name, response in zip(columns["example_id"], columns["response"], strict=True)
        if response is not None and answer_mark(ws, response, took.get(name)) in answers
    }


def erase_night(ws: Workspace, day: str, successor: str | None, gone: set[str], told: dict[str, list[str]]) -> int:
    """Take the person's rows out of a night's tables; returns how many. Done twice, it changes nothing.

    Args:
        ws: the workspace whose night it is.
        day: the night.
        successor: the release in the place of the night's; None where that did not change.
        gone: examples that are the person's.
        told: system: further examples whose answers are.
    """
    folder, rows = ws.night(day), 0
    release = load_release(ws, successor) if successor else None
    about = {r["example_id"]: r for r in release.examples.to_pylist()} if release else {}
    named = {name: gone | set(ids) for name, ids in told.items()}
    either = gone.union(*named.values())
    # Production's own requests are told by requests, not by examples: the tables go whole, and the next run of the
    # night makes them again from what is left of the traffic.
    for path in [*folder.glob("*/request*.parquet"), folder / "requests.parquet"]:
        path.unlink(missing_ok=True)
    for path in sorted(folder.glob("*/*.parquet")):
        own = named.get(path.parent.name, gone)
        rows += _rewrite(path, lambda row, own=own: _id(row) in own, about)  # type: ignore[misc]
    tables = {
        "scores.parquet": lambda row: row["example_id"] in named.get(row["system"], gone),
        "asks.parquet": lambda row: row["example_id"] in named.get(row["system"], gone),
        "pairwise.parquet": lambda row: row["example_id"] in either,
    }
    rows += sum(_rewrite(folder / name, is_gone, about) for name, is_gone in tables.items())
    manifest = ws.result(day, Manifest)
    if manifest is not None and successor is not None and manifest.release != successor:
        served = night_release_of(ws, successor)
        about_it = {"release": successor, "examples": served.examples.num_rows, "window": window_of(served)}
        ws.write_result(day, replace(manifest, **about_it))
    return rows


def _id(row: dict[str, Any]) -> Any:
    """Of an example, or of one request of production (`logged_requests`)."""
    return row.get("example_id") or row.get("request_key")


def _rewrite(path: Path, is_gone: Callable[[dict[str, Any]], bool], about: dict[str, dict[str, Any]]) -> int:
    """Remove rows, and give the others the weights and categories of `about`; returns how many went."""
    if not path.exists():
        return 0
    table = read_table(path)
    rows = table.to_pylist()
    kept = [row for row in rows if not is_gone(row)]
    changed = len(kept) != len(rows)
    for row in kept:
        now = about.get(str(row.get("example_id")))
        for name in ("weight", "category", "count"):
            if now is not None and name in row and row[name] != now[name]:
                row[name], changed = now[name], True
    if changed:
        write_table(path, pa.Table.from_pylist(kept, schema=table.schema))
    return len(rows) - len(kept)


def compute_again(ws: Workspace, day: str) -> list[str]:
    """Summary, leaderboard, gate, report and tracker run of a night whose rows changed; lines on what could not be.

    The settings are the night's own, as its manifest has them.
    """
    folder = ws.night(day)
    manifest = ws.result(day, Manifest)
    for name in COMPUTED:
        (folder / name).unlink(missing_ok=True)
    try:
        settings = Settings.model_validate(manifest.settings if manifest else None)
    except ValueError:
        settings = ws.settings
    # A tracker that is configured no more still has what it was told.
    trackers = {t.model_dump_json(): t for t in (settings.tracking, ws.settings.tracking)}
    notes = [
        line
        for tracking in trackers.values()
        for line in untrack(Workspace(ws.root, settings.model_copy(update={"tracking": tracking}), ws.sample), day)
    ]
    if manifest is None or not (folder / "scores.parquet").exists():
        return notes
    then = Workspace(ws.root, settings, ws.sample)
    try:
        measure_release(then, day, load_release(ws, manifest.release))
        build_scores(then, day, sorted(manifest.systems))
        summarise(then, day)
        rank(then, day)
        decide(then, day)
        write_report(then, day)
        track(Workspace(ws.root, settings.model_copy(update={"tracking": ws.settings.tracking}), ws.sample), day)
    except UserError as fault:
        notes.append(f"{day}: its tables are without the rows, its summary could not be made: {fault}")
    return notes


def erase_drawn_labels(ws: Workspace, gone: dict[str, set[str]], successors: dict[str, str], hashes: set[str]) -> int:
    """Take the person's answers out of the samples drawn for labelling (`calibration/*.jsonl`)."""
    removed = 0
    blind = forget_drawn(ws, gone, successors, hashes)
    for path in sorted(ws.calibration.glob("*.jsonl")):
        text = path.read_text(encoding="utf-8-sig")
        if '"sample"' not in text and '"draw"' not in text:
            continue
        kept, lost = [], 0
        for line in filter(str.strip, text.split("\n")):
            try:
                row = json.loads(line)
                sample, drawn = row.get("sample") or {}, row.get("id") in blind.get(row.get("draw"), ())
            except (ValueError, AttributeError, TypeError):
                sample, drawn = {}, False
            old = str(sample.get("release"))
            if drawn or sample.get("example_id") in gone.get(old, ()) or (sample.get("answer_hash") or "-") in hashes:
                lost += 1
                continue
            new = successors.get(old)
            kept.append(line.replace(json.dumps(old), json.dumps(new)) if new else line)
        if lost or "".join(line + "\n" for line in kept) != text:
            write_text(path, "".join(line + "\n" for line in kept))
        removed += lost
    return removed


def surviving_answers(ws: Workspace) -> dict[str, set[str]]:
    """System: hashes of the answers that nights still hold."""
    found: dict[str, set[str]] = {}
    for path in ws.store.glob("nights*/*/*/responses.parquet"):
        column = read_table(path, ["answer_hash"])["answer_hash"]
        found.setdefault(path.parent.name, set()).update(pc.drop_null(pc.unique(column)).to_pylist())
    return found
