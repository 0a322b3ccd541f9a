"""Sensors: new or changed log files, and failed runs. Thin: a pure helper decides, and has the tests."""

import json
from dataclasses import dataclass
from typing import Any

import dagster as dg

from ragbench_dagster.orchestration.jobs import QUIET
from ragbench_dagster.orchestration.partitions import ranges
from ragbench_dagster.orchestration.resources import WorkspaceResource
from ragbench_dagster.store import Workspace

DAYS_PER_TICK = 30  # a tick may take 60 s; the rest follows at the next one
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


@dataclass(frozen=True)
class Tick:
    """What a tick asks for: ranges of days, and the cursor afterwards."""

    days: list[str]
    cursor: dict[str, Any]


def next_tick(cursor: dict[str, Any], fingerprints: dict[str, str], stale: list[str]) -> Tick:
    """Which days to run, given what was asked for already.

    Args:
        cursor: {"asked": {day: fingerprint}, "generation": int} of the last tick.
        fingerprints: content of the logs of each day that may be run.
        stale: days whose stored result is missing or older than the logs.

    A day is asked for once per content. The generation is part of the run key: content that comes back
    (A, B, then A again) would otherwise meet a used key and be dropped for ever.
    """
    asked = {d: f for d, f in cursor.get("asked", {}).items() if d in fingerprints}
    wanted = [d for d in stale if d in fingerprints and asked.get(d) != fingerprints[d]][:DAYS_PER_TICK]
    for day, mark in fingerprints.items():
        # A day whose stored result is current again is forgotten, so that the next change is seen.
        if day not in stale:
            asked[day] = mark
    generation = int(cursor.get("generation", 0)) + (1 if wanted else 0)
    asked.update({d: fingerprints[d] for d in wanted})
    return Tick(wanted, {"asked": asked, "generation": generation})


def look(ws: Workspace, days: dg.DailyPartitionsDefinition) -> tuple[dict[str, str], list[str]]:
    """Fingerprints of the days that may run now, and which of them are stale in the store."""
    from ragbench_dagster.traffic.scan import scan_logs, stale_days

    index = scan_logs(ws)
    known = set(days.get_partition_keys())
    last = max(known, default="")
    marks = {d: index.fingerprint(d) for d in index.days if d in known}
    return marks, [d for d in stale_days(ws, index, last) if d in known]


def log_file_sensor(days: dg.DailyPartitionsDefinition, jobs: dict[str, Any]) -> dg.SensorDefinition:
    @dg.sensor(
        name="log_files",
        jobs=[jobs["ingest"], jobs["catch_up"]],
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Samples and scrubs each day whose log files are new or changed, once for each content.",
    )
    def log_files(context: dg.SensorEvaluationContext, workspace: WorkspaceResource) -> dg.SensorResult | dg.SkipReason:
        marks, stale = look(workspace.open(), days)
        tick = next_tick(json.loads(context.cursor or "{}"), marks, stale)
        cursor = json.dumps(tick.cursor, sort_keys=True)
        if not tick.days:
            return dg.SensorResult(skip_reason="no new or changed log files", cursor=cursor)
        return dg.SensorResult(run_requests=requests(tick, marks), cursor=cursor)

    return log_files


def requests(tick: Tick, marks: dict[str, str]) -> list[dg.RunRequest]:
    """One run a gap: a single day with its checks, a longer range without."""
    generation, found = tick.cursor["generation"], []
    for first, last in ranges(tick.days):
        key = f"{first}|{last}|{marks[first]}|{generation}"
        if first == last:
            found.append(dg.RunRequest(run_key=key, job_name="ingest", partition_key=first, run_config=QUIET))
        else:
            tags = {RANGE_START: first, RANGE_END: last}
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
