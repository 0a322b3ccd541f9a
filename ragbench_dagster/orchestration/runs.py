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
from dagster import AssetCheckEvaluation, DagsterInstance
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from ragbench_dagster.errors import Interrupted, RunFailed, UserError
from ragbench_dagster.orchestration.assets.bodies import finish_removal
from ragbench_dagster.orchestration.build import build_definitions
from ragbench_dagster.orchestration.checks import CHECKS, evaluate
from ragbench_dagster.orchestration.instance import PID_TAG, disk_faults, open_instance, process_mark
from ragbench_dagster.orchestration.jobs import INGEST, QUIET
from ragbench_dagster.orchestration.partitions import first_day, ranges, today
from ragbench_dagster.orchestration.resources import WorkspaceResource, show_progress_with, store_lock
from ragbench_dagster.orchestration.sensors import RANGE_END, RANGE_START
from ragbench_dagster.settings_parts import near
from ragbench_dagster.store import Workspace, sweep

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


# `ragbench run`: catch up every missing day, then the night; the same assets and instance as the UI.
#
# Which days are missing is asked of the store, never of Dagster: deleting a run deletes its materializations,
# and a moved start or a restored store would fool it.

Progress = Callable[[str, int, int], None]


@dataclass
class NightOutcome:
    """What one `ragbench run` did."""

    day: str
    caught_up: list[tuple[str, str]] = field(default_factory=list)
    days: list[str] = field(default_factory=list)  # all of them
    warnings: list[str] = field(default_factory=list)
    calls_judge: int = 0
    calls_system: int = 0
    blocked: list[str] = field(default_factory=list)  # failed blocking checks, one line each
    run_id: str = ""


def choose_day(ws: Workspace, asked: str | None) -> tuple[str, list[str]]:
    """The night's day and warnings: `asked`, else the last day in the logs before today (UTC).

    Raises:
        UserError: no logs, only future days, a day that is not over, or one before the start.
    """
    from ragbench_dagster.traffic.scan import scan_logs

    index = scan_logs(ws)
    past = [d for d in index.days if d < today()]
    if not index.days:
        first = f" (the first bad line: {index.first_bad})" if index.first_bad else ""
        raise UserError(
            f"{ws.settings.traffic.source}: no log lines found{first}; put *.jsonl, *.jsonl.gz, *.parquet or *.csv there"
        )
    if not past:
        raise UserError(
            f"every log line lies on or after today ({today()} UTC by this machine's clock); check the clock"
        )
    if asked is None:
        return past[-1], []
    if asked >= today():
        raise UserError(f"--date {asked}: the day is not over (today is {today()} UTC by this machine's clock)")
    start = first_day(ws, index)
    if asked < start:
        raise UserError(f"--date {asked}: before the first day {start}; move traffic.start in ragbench.yaml")
    return asked, [] if asked in past else [f"{asked}: no log lines; the current release serves"]


def run_night(
    ws: Workspace,
    day: str,
    *,
    system: str | None = None,
    progress: Progress | None = None,
    max_usd: float | None = None,
) -> NightOutcome:
    """Catch up, then materialise everything for `day`.

    Raises:
        UserError: any fault of the input, the settings, the judge's provider or the machine.
        Interrupted: SIGINT or SIGTERM; everything finished is kept.
    """
    outcome = NightOutcome(day)
    show_progress_with(progress)
    tell = progress or (lambda *_: None)
    with disk_faults(ws), store_lock(ws.root):
        sweep(ws.root)
        finish_removal(ws)
        _preflight(ws)
        instance = open_instance(ws)
        resource = WorkspaceResource(root=str(ws.root), sample=ws.sample, max_usd=-1.0 if max_usd is None else max_usd)
        defs = build_definitions({"workspace": resource})
        _catch_up(ws, defs, instance, outcome, tell)
        chosen = _branch(defs, system) if system else None
        done = run_job(defs, instance, "nightly", (day, day), assets=chosen, on_step=tell)
        outcome.run_id = done.run_id
        outcome.blocked += done.failed_blocking
        outcome.warnings += [line for line in done.failed_checks if line.startswith(TOLD)]
        _count(done, outcome)
        if done.fault_step == TRACKING:
            outcome.warnings.append(f"not tracked: {done.fault}")
        elif not done.failed_blocking:
            done.require_success()
    return outcome


# Failed checks that the summary and the gate do not tell anyway.
TOLD = ("dataset_release: duplicate_rate", "dataset_release: category_mix")


def _preflight(ws: Workspace) -> None:
    """What cannot work is told before an hour of other work, not after it.

    Raises:
        UserError: a judge that cannot be used, a system that is named but does not exist.
    """
    from ragbench_dagster.evaluation.judge_session import evaluators_for
    from ragbench_dagster.evaluation.systems import configured_systems

    settings = ws.settings
    evaluators_for(settings.judged_metrics, settings.judge, ws)
    known = set(configured_systems(ws))
    named = {"gate.systems": [] if settings.gate.systems == "all" else settings.gate.systems}
    named["pairwise"] = [name for pair in settings.pairwise for name in pair]
    for key, names in named.items():
        for name in names:
            if name not in known:
                there = ", ".join(sorted(known)) or "none"
                raise UserError(f"ragbench.yaml: {key}: {name!r} is no system{near(name, known)}; there are {there}")


def prepare_dataset(ws: Workspace, day: str, progress: Progress | None = None) -> None:
    """Catch up and cut the release that serves `day`; no system and no judge is called.

    Raises:
        UserError: a blocking check holds the release, or a fault of the input.
    """
    outcome = NightOutcome(day)
    show_progress_with(progress)
    tell = progress or (lambda *_: None)
    with disk_faults(ws), store_lock(ws.root):
        instance = open_instance(ws)
        defs = build_definitions({"workspace": WorkspaceResource(root=str(ws.root))})
        _catch_up(ws, defs, instance, outcome, tell)
        for name in ("ingest", "refresh_dataset"):
            done = run_job(defs, instance, name, (day, day), on_step=tell)
            if done.failed_blocking:
                raise UserError(f"stopped by a blocking check: {done.failed_blocking[0]}")
            done.require_success()


def _catch_up(
    ws: Workspace, defs: dg.Definitions, instance: DagsterInstance, outcome: NightOutcome, tell: Progress
) -> None:
    """One range run per gap, without checks; then each day's checks are reported as results of their own."""
    from ragbench_dagster.traffic.scan import scan_logs, stale_days

    missing = [d for d in stale_days(ws, scan_logs(ws), outcome.day) if d != outcome.day]
    for first, last in ranges(missing):
        done = run_job(defs, instance, "catch_up", (first, last), on_step=tell)
        done.require_success()
        outcome.caught_up.append((first, last))
        outcome.days += [d for d in missing if first <= d <= last]
        _report_checks(ws, instance, done.run_id, [d for d in missing if first <= d <= last], outcome)


def _report_checks(
    ws: Workspace, instance: DagsterInstance, run_id: str, days: list[str], outcome: NightOutcome
) -> None:
    for day in days:
        for asset in INGEST:
            for check, blocking in CHECKS[asset]:
                result = evaluate(ws, day, check, blocking)
                if blocking and not result.passed:
                    outcome.blocked.append(f"{day}: {asset}: {check.__name__}: {result.description}")
                evaluation = AssetCheckEvaluation(
                    asset_key=dg.AssetKey(asset),
                    check_name=check.__name__,
                    passed=result.passed,
                    metadata=result.metadata,
                    severity=result.severity,
                    description=result.description,
                    blocking=blocking,
                    partition=day,
                )
                # As an event of the range run: a runless one may be reported once for a day, and never again.
                event = dg.DagsterEvent("ASSET_CHECK_EVALUATION", "catch_up", event_specific_data=evaluation)
                instance.report_dagster_event(event, run_id=run_id)


def _branch(defs: dg.Definitions, system: str) -> frozenset[dg.AssetKey]:
    """All assets but the branches of other systems.

    Raises:
        UserError: no such system.
    """
    graph = defs.resolve_asset_graph()
    keys = graph.get_all_asset_keys()
    branches = {key.path[0] for key in keys if len(key.path) == 2}
    if system not in branches:
        raise UserError(f"--system {system}: no such system; known: {', '.join(sorted(branches)) or 'none'}")
    return frozenset(key for key in keys if len(key.path) == 1 or key.path[0] == system)


def _count(done: RunOutcome, outcome: NightOutcome) -> None:
    for asset, values in done.materialized.items():
        calls: Any = values.get("calls") or 0
        if asset.endswith("/responses"):
            outcome.calls_system += int(calls)
        else:
            outcome.calls_judge += int(calls)
        if values.get("unavailable"):
            outcome.warnings.append(str(values["unavailable"]))
