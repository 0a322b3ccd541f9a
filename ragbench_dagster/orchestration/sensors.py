"""Sensors: new or changed log files, and failed runs. Thin: a pure helper decides, and has the tests."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from ragbench_dagster.orchestration.instance import reap
from ragbench_dagster.orchestration.jobs import QUIET
from ragbench_dagster.orchestration.partitions import ranges
from ragbench_dagster.orchestration.resources import WorkspaceResource
from ragbench_dagster.store import Workspace

DAYS_PER_TICK = 30  # a tick may take 60 s; the rest follows at the next one
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
CONTENT_TAG = "ragbench/content"  # 2026-11-20=FINGERPRINT,...: what a run of this sensor was asked for
GENERATION_TAG = "ragbench/generation"
RUNS_READ = 200  # the latest; what is unfinished is read whatever its age
_SHORT = 12  # digits of a fingerprint
_AGAIN_S, _AGAIN_MAX_S = 600.0, 86_400.0


@dataclass(frozen=True)
class Asked:
    """A run that covers days from `first` to `last`."""

    first: str
    last: str
    unfinished: bool = False
    failed_at: float | None = None  # seconds since 1970, UTC
    content: dict[str, str] = field(default_factory=dict)  # day: short fingerprint, where this sensor asked
    generation: int = 0

    def covers(self, day: str) -> bool:
        return self.first <= day <= self.last


@dataclass(frozen=True)
class Tick:
    """What a tick asks for, and the generation afterwards."""

    days: list[str]
    generation: int


def next_tick(generation: int, stale: dict[str, str], runs: Sequence[Asked], now: float) -> Tick:
    """Which days to run now.

    Args:
        generation: of the last tick that asked; 0 where the cursor is new or was cleared.
        stale: day to fingerprint, of those whose stored result is missing or older than the logs.
        runs: the latest runs of any origin.
        now: seconds since 1970, UTC.

    The store says what must run, the runs what is under way: so a deleted store is made again, and a cleared cursor
    repeats nothing. A day whose run of this content failed is asked for again after 10 minutes, then after twice as
    long each time. Every request has a generation of its own in its run key: content that comes back (A, B, then A
    again) would otherwise meet a used key and be dropped for ever.
    """
    wanted = [day for day, mark in sorted(stale.items()) if _is_due(day, mark, runs, now)][:DAYS_PER_TICK]
    highest = max([generation, *(run.generation for run in runs)])
    return Tick(wanted, highest + 1 if wanted else highest)


def _is_due(day: str, mark: str, runs: Sequence[Asked], now: float) -> bool:
    over = [run for run in runs if run.covers(day)]
    if any(run.unfinished for run in over):
        return False
    failed = [run.failed_at for run in over if run.failed_at is not None and run.content.get(day) == mark[:_SHORT]]
    pause = min(_AGAIN_S * 2 ** (len(failed) - 1), _AGAIN_MAX_S) if failed else 0.0
    # A clock that was set back must not silence a day: a failure in the future counts as one now.
    return not failed or now - min(now, max(failed)) >= pause


def asked_runs(instance: dg.DagsterInstance) -> list[Asked]:
    """The latest runs over days, newest first; runs whose process was killed are finished first."""
    reap(instance)
    records = instance.get_run_records(limit=RUNS_READ)
    unfinished = instance.get_run_records(dg.RunsFilter(statuses=NOT_FINISHED_STATUSES))
    by_id = {record.dagster_run.run_id: record for record in [*records, *unfinished]}
    return [asked for record in by_id.values() if (asked := _asked(record)) is not None]


def _asked(record: Any) -> Asked | None:
    run = record.dagster_run
    day = run.tags.get("dagster/partition")
    first, last = (day, day) if day else (run.tags.get(RANGE_START), run.tags.get(RANGE_END))
    if not first or not last:
        return None
    content = dict(pair.split("=", 1) for pair in run.tags.get(CONTENT_TAG, "").split(",") if "=" in pair)
    generation = run.tags.get(GENERATION_TAG, "")
    return Asked(
        first,
        last,
        run.status in NOT_FINISHED_STATUSES,
        record.update_timestamp.timestamp() if run.is_failure_or_canceled else None,
        content,
        int(generation) if generation.isdecimal() else 0,
    )


def look(ws: Workspace, days: dg.DailyPartitionsDefinition) -> dict[str, str]:
    """Day to fingerprint of the days that may run now and are stale in the store."""
    from ragbench_dagster.traffic.scan import scan_logs, stale_days

    index = scan_logs(ws)
    known = set(days.get_partition_keys())
    last = max(known, default="")
    return {d: index.fingerprint(d) for d in stale_days(ws, index, last) if d in known}


def generation_of(cursor: str | None) -> int:
    """The generation in a cursor; 0 where there is none, or another thing stands there."""
    try:
        found = json.loads(cursor or "{}")
        return int(found["generation"]) if isinstance(found, dict) else 0
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return 0


def log_file_sensor(days: dg.DailyPartitionsDefinition, jobs: dict[str, Any]) -> dg.SensorDefinition:
    @dg.sensor(
        name="log_files",
        jobs=[jobs["ingest"], jobs["catch_up"]],
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Samples and scrubs each day that the store lacks or whose log files are new or changed.",
    )
    def log_files(context: dg.SensorEvaluationContext, workspace: WorkspaceResource) -> dg.SensorResult | dg.SkipReason:
        stale = look(workspace.open(), days)
        tick = next_tick(generation_of(context.cursor), stale, asked_runs(context.instance), time.time())
        cursor = json.dumps({"generation": tick.generation})
        if not tick.days:
            reason = f"{len(stale)} days are under way or failed" if stale else "no new or changed log files"
            return dg.SensorResult(skip_reason=reason, cursor=cursor)
        return dg.SensorResult(run_requests=requests(tick, stale), cursor=cursor)

    return log_files


def requests(tick: Tick, marks: dict[str, str]) -> list[dg.RunRequest]:
    """One run a gap: a single day with its checks, a longer range without."""
    found = []
    for first, last in ranges(tick.days):
        inside = [day for day in tick.days if first <= day <= last]
        tags = {
            CONTENT_TAG: ",".join(f"{day}={marks[day][:_SHORT]}" for day in inside),
            GENERATION_TAG: str(tick.generation),
        }
        key = f"{first}|{last}|{marks[first]}|{tick.generation}"
        if first == last:
            found.append(
                dg.RunRequest(run_key=key, job_name="ingest", partition_key=first, tags=tags, run_config=QUIET)
            )
        else:
            tags |= {RANGE_START: first, RANGE_END: last}
            found.append(dg.RunRequest(run_key=key, job_name="catch_up", tags=tags, run_config=QUIET))
    return found


def failure_sensor() -> dg.SensorDefinition:
    @dg.run_failure_sensor(
        name="failed_runs",
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Records each failed run in the store and alerts where alerts are configured.",
    )
    def failed_runs(context: dg.RunFailureSensorContext, workspace: WorkspaceResource) -> None:
        from ragbench_dagster.reporting.alerts import failed_run

        run = context.dagster_run
        day = run.tags.get("dagster/partition") or run.tags.get(RANGE_END) or ""
        failed_run(workspace.open(), run.run_id, run.job_name, day)

    return failed_runs
