"""One run of a job in this process, on the persistent instance, as if the UI had launched it.

`create_run_for_job` with the code location's origin shows the run everywhere in the UI (Runs, Jobs, Timeline,
Re-execute), which `materialize` and `execute_in_process` do not. The two private imports work at the pinned
Dagster version; `tests/orchestration` holds a smoke test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster import DagsterInstance
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from ragbench_dagster.errors import Interrupted, RunFailed, UserError
from ragbench_dagster.orchestration.instance import PID_TAG, process_mark
from ragbench_dagster.orchestration.jobs import QUIET
from ragbench_dagster.orchestration.sensors import RANGE_END, RANGE_START

MODULE = "ragbench_dagster.definitions"
LOCATION = "ragbench_dagster"
OWN_ERRORS = ("UserError", "JudgeUnavailable", "Interrupted")
TRACKING = "experiment_run"  # the one step whose failure leaves the night's verdict standing


@dataclass
class RunOutcome:
    """What a run said: metadata of each materialised asset, failed checks, and why it failed."""

    run_id: str
    success: bool = True
    materialized: dict[str, dict[str, Any]] = field(default_factory=dict)  # "S/verdicts": {name: value}
    failed_blocking: list[str] = field(default_factory=list)  # "asset: check: line"
    failed_checks: list[str] = field(default_factory=list)  # the same, of those that do not block
    fault: str = ""  # one line
    fault_step: str = ""  # the step that failed first

    def require_success(self) -> None:
        """Raises RunFailed where the run did not succeed."""
        if not self.success:
            raise RunFailed(f"run {self.run_id[:8]} failed: {self.fault}")


def _origin() -> RemoteRepositoryOrigin:
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name=MODULE, working_directory=os.getcwd())
    return RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, LOCATION), "__repository__")


def run_job(
    defs: dg.Definitions,
    instance: DagsterInstance,
    name: str,
    days: tuple[str, str],
    *,
    assets: frozenset[dg.AssetKey] | None = None,
    on_step: Callable[[str, int, int], None] | None = None,
) -> RunOutcome:
    """Run the job `name` for one day (first == last) or a contiguous range.

    Args:
        assets: only these assets of the job.
        on_step: called as on_step(asset, done steps, all steps).

    Raises:
        Interrupted: SIGINT or SIGTERM arrived; finished work is kept.
        UserError: a body raised one; the message is the body's.
    """
    job = defs.resolve_job_def(name)
    if assets is not None:
        job = job.get_subset(asset_selection=assets)
    first, last = days
    if first == last:
        tags = dict(job.get_tags_for_partition_key(first, selected_asset_keys=assets))
    else:
        tags = {RANGE_START: first, RANGE_END: last}
    origin = _origin()
    tags |= {".dagster/repository": origin.get_label(), PID_TAG: process_mark()}
    run = instance.create_run_for_job(
        job_def=job,
        run_config=QUIET,
        tags=tags,
        asset_selection=assets,
        remote_job_origin=origin.get_job_origin(name),
    )
    outcome = RunOutcome(run.run_id)
    steps, done = len(job.graph.node_defs), 0
    for event in execute_run_iterator(InMemoryJob(job), run, instance):
        if event.is_step_start and on_step:
            on_step(event.step_key or "", done, steps)
        elif event.is_step_success or event.is_step_failure:
            done += 1
        _note(event, outcome)
    _conclude(instance, outcome)
    return outcome


def _note(event: Any, outcome: RunOutcome) -> None:
    if event.is_step_materialization:
        made = event.step_materialization_data.materialization
        values = {k: v.value for k, v in made.metadata.items() if hasattr(v, "value")}
        outcome.materialized.setdefault("/".join(made.asset_key.path), {}).update(values)
    elif event.event_type_value == "ASSET_CHECK_EVALUATION":
        check = event.asset_check_evaluation_data
        if not check.passed:
            line = f"{'/'.join(check.asset_key.path)}: {check.check_name}: {check.description or 'failed'}"
            (outcome.failed_blocking if check.blocking else outcome.failed_checks).append(line)
    elif event.is_step_failure and not outcome.fault:
        error = event.step_failure_data.error
        # Our own errors are told as they are; what caused them (a JSON error, say) names no file and no row.
        while error is not None and error.cause is not None and error.cls_name not in OWN_ERRORS:
            error = error.cause
        outcome.fault = f"{error.cls_name}|{error.message.strip()}" if error else "unknown fault"
        outcome.fault_step = event.step_key or ""


def _conclude(instance: DagsterInstance, outcome: RunOutcome) -> None:
    record = instance.get_run_by_id(outcome.run_id)
    outcome.success = bool(record and record.is_success)
    if outcome.success:
        return
    # An interrupt does not raise out of an in-process step: only the tag tells it from a failure.
    if record and record.tags.get("dagster/failure_reason") == "UNEXPECTED_TERMINATION":
        raise Interrupted("interrupted; everything finished is kept, run the same command to go on")
    kind, _, message = outcome.fault.partition("|")
    message = message.split(f"{kind}: ", 1)[-1]
    if kind == "Interrupted":
        raise Interrupted(message)
    if kind in OWN_ERRORS and outcome.fault_step != TRACKING:
        raise UserError(message.split("\n")[0])
    outcome.fault = message
