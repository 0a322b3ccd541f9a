"""A tick of the daemon's scheduler launches the night of the day before; nobody switched anything on."""

import datetime as dt
import logging

import pytest
from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time, instance_for_test
from dagster._core.workspace.load_target import ModuleTarget
from dagster._scheduler.scheduler import launch_scheduled_runs

MOCKED = {"run_launcher": {"module": "dagster._core.test_utils", "class": "MockedRunLauncher"}}


@pytest.mark.parametrize(
    ("before", "after", "job", "day"),
    [
        ("2026-11-23T01:50", "2026-11-23T02:01", "nightly", "2026-11-22"),
        ("2026-11-24T01:20", "2026-11-24T01:31", "refresh_dataset", "2026-11-23"),
    ],
)
def test_a_tick_launches_the_run_of_the_day_before(make_workspace, monkeypatch, before, after, job, day):
    ws = make_workspace(days=2)
    monkeypatch.setenv("RAGBENCH_WORKSPACE", str(ws.root))
    target = ModuleTarget(
        "ragbench_dagster.definitions", attribute=None, working_directory=None, location_name="ragbench_dagster"
    )
    with (
        instance_for_test(overrides=MOCKED) as instance,
        create_test_daemon_workspace_context(target, instance) as context,
    ):
        iteration_times: dict = {}  # what the daemon keeps between its iterations
        for at in (before, after):
            now = dt.datetime.fromisoformat(at).replace(tzinfo=dt.UTC)
            with freeze_time(now):
                list(launch_scheduled_runs(context, logging.getLogger("test"), now, iteration_times))
        runs = [(r.job_name, r.tags["dagster/partition"], r.tags["dagster/schedule_name"]) for r in instance.get_runs()]
    assert [(name, partition) for name, partition, _ in runs] == [(job, day)]
