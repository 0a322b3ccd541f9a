"""Jobs and schedules. All are named after what a person would ask for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

# Silences stderr without dropping context.log.info from the event log (python_log_level would).
QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
INGEST = ("sampled_requests", "scrubbed_requests")
DATASET = ("scrub_quality", "dataset_release", "dedupe_quality")
REPORTING = ("score_table", "summary", "leaderboard", "gate", "report", "experiment_run")


def jobs(systems: list[str]) -> dict[str, Any]:
    """The jobs by name."""
    ingest = dg.AssetSelection.assets(*INGEST)
    branches = dg.AssetSelection.groups(*systems) if systems else dg.AssetSelection.assets()
    found = [
        dg.define_asset_job("nightly", dg.AssetSelection.all(), description="Everything for a day."),
        dg.define_asset_job("ingest", ingest, description="Sample and scrub the logs of a day."),
        # A range run with checks would leave them planned for ever; `launch` reports them day by day.
        dg.define_asset_job("catch_up", ingest.without_checks(), description="Sample and scrub a range of days."),
        dg.define_asset_job(
            "refresh_dataset",
            dg.AssetSelection.assets(*DATASET),
            description="Cut the release that serves a day.",
        ),
        dg.define_asset_job(
            "evaluate",
            branches | dg.AssetSelection.assets("judge_sentinel", "judge_calibration", *REPORTING),
            description="Answer, judge and report a day on its release.",
        ),
        dg.define_asset_job(
            "calibrate_judge",
            dg.AssetSelection.assets("judge_calibration"),
            description="Check the judge against people.",
        ),
    ]
    return {job.name: job for job in found}


def schedules(found: dict[str, Any]) -> list[dg.ScheduleDefinition]:
    """Nightly at 02:00 UTC for the day before; the dataset refresh weekly, before that night."""

    @dg.schedule(
        name="nightly_schedule",
        job=found["nightly"],
        cron_schedule="0 2 * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="02:00 UTC, everything for the day before.",
    )
    def nightly_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        return _the_day_before(context)

    @dg.schedule(
        name="refresh_schedule",
        job=found["refresh_dataset"],
        cron_schedule="30 1 * * 2",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Tuesdays 01:30 UTC: the release of the 90 days that end on Monday.",
    )
    def refresh_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        return _the_day_before(context)

    return [nightly_schedule, refresh_schedule]


def _the_day_before(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    at = context.scheduled_execution_time or datetime.now(UTC)
    day = (at.astimezone(UTC).date() - timedelta(days=1)).isoformat()
    return dg.RunRequest(run_key=day, partition_key=day, run_config=QUIET)
