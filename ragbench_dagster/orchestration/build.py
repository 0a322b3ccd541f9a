"""The whole wiring on one page. A test can swap any resource through `overrides`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from ragbench_dagster.masking import guard_logs
from ragbench_dagster.orchestration import partitions
from ragbench_dagster.orchestration.assets.dataset import dataset_assets
from ragbench_dagster.orchestration.assets.reporting import calibration_assets, reporting_assets
from ragbench_dagster.orchestration.assets.systems import system_assets
from ragbench_dagster.orchestration.assets.traffic import traffic_assets
from ragbench_dagster.orchestration.checks import asset_checks
from ragbench_dagster.orchestration.jobs import jobs, schedules
from ragbench_dagster.orchestration.resources import WorkspaceResource
from ragbench_dagster.orchestration.sensors import failure_sensor, log_file_sensor
from ragbench_dagster.store import Workspace


def workspace_root() -> str:
    """RAGBENCH_WORKSPACE, else `data/` in the current folder."""
    return str(Path(os.environ.get("RAGBENCH_WORKSPACE") or "data").resolve())


def build_definitions(overrides: Mapping[str, Any] | None = None) -> dg.Definitions:
    """The code location for the workspace of this process.

    Args:
        overrides: resources by name that replace the default ones ("workspace").
    """
    from ragbench_dagster.evaluation.systems import configured_systems
    from ragbench_dagster.traffic.scan import scan_logs

    os.umask(0o077)  # whatever a run writes is for this user alone
    guard_logs()
    resources: dict[str, Any] = {"workspace": WorkspaceResource(root=workspace_root()), **(overrides or {})}
    ws: Workspace = resources["workspace"].open()
    index = scan_logs(ws)
    days = partitions.daily(partitions.first_day(ws, index))
    systems = configured_systems(ws, index)
    found = jobs(list(systems))
    return dg.Definitions(
        assets=[
            *traffic_assets(days),
            *dataset_assets(days, ws.settings.dataset.reach_days),
            *(asset for name, system in systems.items() for asset in system_assets(days, name, system.kind)),
            *calibration_assets(days, list(systems)),
            *reporting_assets(days, list(systems)),
        ],
        asset_checks=asset_checks(days),
        jobs=list(found.values()),
        schedules=schedules(found),
        sensors=[log_file_sensor(days, found), failure_sensor()],
        resources=resources,
        # A process for each step costs seconds of start-up; concurrency lives inside the assets.
        executor=dg.in_process_executor,
    )
