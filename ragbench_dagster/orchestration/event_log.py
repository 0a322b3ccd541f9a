"""Dagster's own record of runs: kept small, and without what the law removed.

`DagsterInstance.delete_run` deletes a run's materializations too, and leaves its file: so the file is removed here,
the databases are packed, and what the store still holds is reported again, without its metadata.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import dagster as dg
from dagster import DagsterEventType, DagsterInstance, DagsterRun
from dagster._core.storage.dagster_run import FINISHED_STATUSES, RunsFilter

from ragbench_dagster.orchestration.instance import open_instance
from ragbench_dagster.orchestration.sensors import RANGE_END, RANGE_START
from ragbench_dagster.store import Workspace

PARTITION = "dagster/partition"
_PAGE = 100  # runs read together


def drop_runs(
    ws: Workspace, is_old: Callable[[tuple[str, str]], bool], still_there: Callable[[str], bool], dry_run: bool = False
) -> int:
    """Delete finished runs with all their events; returns how many.

    Args:
        ws: the workspace.
        is_old: of the first and the last day of a run.
        still_there: whether what was made for a day is in the store: it is reported again as materialised.
        dry_run: only count.
    """
    if not (ws.dagster_home / "history").exists():
        return 0
    with open_instance(ws) as instance:
        old = [run for run in _finished(instance) if (days := days_of(run)) is not None and is_old(days)]
        if dry_run:
            return len(old)
        for run in old:
            made = _made(instance, run.run_id)
            instance.delete_run(run.run_id)
            for path in (ws.dagster_home / "history" / "runs").glob(f"{run.run_id}.db*"):
                path.unlink(missing_ok=True)
            for key, day in made:
                if still_there(day):
                    instance.report_runless_asset_event(dg.AssetMaterialization(asset_key=key, partition=day))
    if old:
        pack(ws)
    return len(old)


def drop_ticks(ws: Workspace, keep_days: int) -> None:
    """Forget ticks of schedules and sensors that are older than so many days."""
    if not (ws.dagster_home / "schedules").exists():
        return
    before = time.time() - keep_days * 86_400
    with open_instance(ws) as instance:
        for state in instance.all_instigator_state():
            instance.purge_ticks(state.instigator_origin_id, state.selector_id, before)


def drop_runs_of(ws: Workspace, days: Collection[str]) -> int:
    """Delete the runs that made any of these days: their metadata may name what is gone."""
    return drop_runs(ws, lambda run: any(run[0] <= day <= run[1] for day in days), lambda day: True)


def days_of(run: DagsterRun) -> tuple[str, str] | None:
    """First and last day of a run; None where it has none."""
    day = run.tags.get(PARTITION)
    if day:
        return day, day
    first, last = run.tags.get(RANGE_START), run.tags.get(RANGE_END)
    return (first, last) if first and last else None


def _finished(instance: DagsterInstance) -> Iterator[DagsterRun]:
    cursor: str | None = None
    while page := instance.get_runs(RunsFilter(statuses=FINISHED_STATUSES), cursor=cursor, limit=_PAGE):
        yield from page
        cursor = page[-1].run_id


def _made(instance: DagsterInstance, run_id: str) -> list[tuple[dg.AssetKey, str]]:
    found, cursor = [], None
    while True:
        some = instance.get_records_for_run(run_id, cursor, {DagsterEventType.ASSET_MATERIALIZATION}, limit=1000)
        for record in some.records:
            event = record.event_log_entry.dagster_event
            if event is not None and event.asset_key is not None and event.partition is not None:
                found.append((event.asset_key, event.partition))
        if not some.has_more:
            return found
        cursor = some.cursor


def pack(ws: Workspace) -> None:
    """Give the freed pages of Dagster's SQLite files back; a file that is busy is left as it is."""
    for name in ("history/runs/index.db", "history/runs.db", "schedules/schedules.db"):
        path: Path = ws.dagster_home / name
        if path.exists():
            with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("VACUUM")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
