"""`ragbench doctor --repair`: mends what can be mended without a person's decision, and says what it did.

What is paid for or cannot be made again (releases, verdicts, the key) is never removed: of those it only says what is
wrong, as `doctor` does.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from ragbench_dagster.access import close_to_others, exposed
from ragbench_dagster.commands.options import say
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, read_json, read_table, sweep, write_json

Mended = Iterator[str]


def repair(ws: Workspace) -> list[tuple[str, str, str]]:
    """(mended|error, where, one line) of everything that was done, and of what could not be."""
    from ragbench_dagster.orchestration.resources import store_lock

    rows = []
    with store_lock(ws.root, say):
        for part in PARTS:
            try:
                for line in part(ws):  # what was mended before a fault is told, too
                    rows.append(("mended", part.__name__, line))
            except (UserError, OSError) as fault:
                rows.append(("error", part.__name__, str(fault)))
    return rows


def permissions(ws: Workspace) -> Mended:
    """Others' rights on the store, Dagster's home, the key and the list of the forgotten."""
    closed = close_to_others(list(exposed(ws.root)))
    if closed:
        yield f"{closed} files and folders were open to other users; they are closed"


def leftovers(ws: Workspace) -> Mended:
    """What killed writers and a killed `prune` left half-written."""
    from ragbench_dagster.reporting.retention import leftovers as on_their_way_out

    found = sweep(ws.root) + on_their_way_out(ws)
    if found:
        yield f"{found} half-written files and folders of killed processes were removed"


def removals(ws: Workspace) -> Mended:
    """A `forget` that was killed."""
    from ragbench_dagster.orchestration.assets.bodies import finish_removal

    if (ws.store / "forget.json").exists():
        finish_removal(ws)
        yield "a removal that `ragbench forget` had begun was finished"


def runs(ws: Workspace) -> Mended:
    """Runs of dead processes, which would stay STARTED and hold up the queue."""
    if not (ws.dagster_home / "history").exists():
        return
    from ragbench_dagster.orchestration.instance import mark_dead_runs

    found = mark_dead_runs(ws)
    if found:
        yield f"{found} runs of processes that are dead were marked as failed"


def verdicts(ws: Workspace) -> Mended:
    """Paid verdicts that wait beside the ledger are taken in when it is opened."""
    from ragbench_dagster.evaluation.ledger import Ledger, location

    name = location(ws)
    path = Path(name.removeprefix("sqlite:///"))
    if name.startswith("sqlite:///") and not path.exists():
        return
    with Ledger.open(ws) as ledger:
        before = ledger.count()
    with Ledger.open(ws) as ledger:
        taken = ledger.count() - before
    if taken:
        yield f"{taken} verdicts that had waited beside the ledger were taken in"
    if name.startswith("sqlite:///"):
        with closing(sqlite3.connect(path, timeout=60)) as database:
            said = database.execute("PRAGMA quick_check").fetchone()[0]
        if said != "ok":
            raise UserError(f"{path}: damaged ({said}); restore it from a copy: nothing here can mend it")


def days(ws: Workspace) -> Mended:
    """Damaged files of days that the logs still hold, and damaged caches: the next run makes them again."""
    from ragbench_dagster.traffic.scan import scan_logs

    cache = ws.store / "cache"
    for path in sorted([*cache.glob("digests/*.parquet"), *cache.glob("embeddings*.parquet")]):
        if not _reads(path, read_table):
            path.unlink()
            yield f"{path.relative_to(ws.root)}: damaged cache, removed"
    logged, lost = set(scan_logs(ws).days), list[Path]()
    for folder in sorted((ws.store / "traffic").glob("????-??-??")):
        damaged = [p for p in folder.glob("*.parquet") if not _reads(p, read_table)]
        damaged += [p for p in folder.glob("*.json") if not _reads(p, read_json)]
        for path in damaged:
            if folder.name not in logged:
                lost.append(path)
                continue
            path.unlink()
            yield f"{path.relative_to(ws.root)}: damaged, removed; ragbench run makes it again"
    if lost:
        raise UserError(f"{lost[0]}: damaged ({len(lost)} files are), and the logs of that day are gone; restore it")


def pointers(ws: Workspace) -> Mended:
    """Refresh days that name a release which is not there."""
    from ragbench_dagster.dataset.release import tombstone

    for path in sorted((ws.store / "releases").glob("????-??-??.json")):
        if not _reads(path, read_json):
            path.unlink()
            yield f"{path.relative_to(ws.root)}: damaged, removed; the next run finds its release again"
            continue
        row = read_json(path)
        grave = tombstone(ws, row["release"])
        if grave is not None:
            write_json(path, {**row, "release": grave["successor"]})
            yield f"{path.stem}: pointed to a release that was withdrawn; it points to {grave['successor']}"
        elif not (ws.release(row["release"]) / "manifest.json").exists():
            path.unlink()
            yield f"{path.stem}: its release {row['release']} is gone; the next run cuts it again"


def exports(ws: Workspace) -> Mended:
    """A register line that a kill cut short."""
    from ragbench_dagster.dataset.export import read_register, register_file, write_register

    path = register_file(ws)
    if path.exists() and len(read_register(ws)) != len(path.read_text("utf-8").splitlines()):
        write_register(ws, read_register(ws))
        yield f"{path.relative_to(ws.root)}: a line that was cut short was removed"


def _reads(path: Path, read: Callable[[Path], object]) -> bool:
    try:
        read(path)
    except (UserError, json.JSONDecodeError):
        return False
    return True


# A removal first: the rest must not be made from what is to go.
PARTS: list[Callable[[Workspace], Mended]] = [
    permissions, leftovers, pointers, exports, verdicts, removals, runs, days,
]  # fmt: skip
