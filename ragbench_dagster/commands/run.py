"""`ragbench run` and `ragbench gate`: the night, its summary and its exit code."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from msgspec import structs

from ragbench_dagster.commands.options import (
    EXIT,
    DateOption,
    JsonOption,
    SampleOption,
    WorkspaceOption,
    complain,
    last_night,
    open_workspace,
    parse_day,
    print_json,
    print_table,
    progress_bar,
    say,
)
from ragbench_dagster.errors import UserError
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.store import Workspace, read_json


def run(
    workspace: WorkspaceOption = None,
    date: DateOption = None,
    system: Annotated[str | None, typer.Option("--system", help="Only this system's branch.")] = None,
    sample: SampleOption = 0,
    max_usd: Annotated[float | None, typer.Option("--max-usd", min=0, help="Budget of this run in USD.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Catch up, run the night, print its summary; the exit code is the gate's (0 pass, 1 fail, 3 inconclusive)."""
    ws = open_workspace(workspace, sample)
    asked = parse_day(date)
    from ragbench_dagster.orchestration.runs import choose_day, run_night

    day, warnings = choose_day(ws, asked)
    for line in warnings:
        say(f"warning: {line}")
    with progress_bar() as progress:
        done = run_night(ws, day, system=system, progress=progress, max_usd=max_usd)
    for first, last in done.caught_up:
        say(f"caught up {first}" + ("" if first == last else f" to {last}"))
    for line in dict.fromkeys([*done.warnings, *day_warnings(ws, day, done.days)]):
        say(f"warning: {line}")
    if done.blocked:
        for line in done.blocked:
            complain(f"stopped by a blocking check: {line}")
        sys.exit(2)
    if as_json:
        print_json(run_json(ws, day, done.calls_judge, done.calls_system))
    else:
        print_summary(ws, day, done.calls_judge, done.calls_system)
    sys.exit(EXIT[stored_decision(ws, day).verdict])


def day_warnings(ws: Workspace, day: str, read_now: list[str]) -> list[str]:
    """What a reader of the night must know: empty days, damaged files, naive times, k beyond a system's lists."""
    from ragbench_dagster.traffic.privacy import findings

    facts = read_json(ws.traffic(day) / "facts.json") or {}
    lines = [f"{day}: {w}" for w in facts.get("warnings", [])]
    if not facts.get("read"):
        lines.append(f"{day}: no requests that day; the current release serves")
    manifest = ws.result(day, Manifest)
    return lines + findings(ws, [*read_now, day]) + (manifest.warnings if manifest else [])


def run_json(ws: Workspace, day: str, calls_judge: int, calls_system: int) -> dict[str, Any]:
    """The object of `run --json` (design 13)."""
    from ragbench_dagster.reporting.summary import summary_for_json

    manifest = stored_manifest(ws, day)
    facts = [read_json(p) for p in sorted((ws.store / "traffic").glob("*/facts.json"))]
    total = {k: sum(f.get(k, 0) for f in facts) for k in ("read", "redelivered", "sampled", "quarantined")}
    return {
        "date": day,
        "release": {"id": manifest.release, "examples": manifest.examples},
        "quarantined": total.pop("quarantined"),
        "requests": total,
        "calls": {"judge": calls_judge, "system": calls_system},
        **summary_for_json(ws, day),
    }


def stored_manifest(ws: Workspace, day: str) -> Manifest:
    """The conditions of a night that ran.

    Raises:
        UserError: it never ran.
    """
    from ragbench_dagster.reporting.night_results import Night

    return Night.open(ws, day).manifest


def print_summary(ws: Workspace, day: str, calls_judge: int, calls_system: int) -> None:
    """The night for a person: tables, then the gate's word with its reasons."""
    from ragbench_dagster.reporting.summary import summary_tables

    manifest = stored_manifest(ws, day)
    first, last = manifest.window
    print(f"Night {day} · release {manifest.release} ({first} to {last}) · {manifest.examples:,} examples")
    print(f"Judge: {manifest.judge_label} · {calls_judge:,} judge calls, {calls_system:,} system calls\n")
    for table in summary_tables(ws, day):
        print_table(table["title"], table["columns"], table["rows"])
    print_gate(stored_decision(ws, day))


def stored_decision(ws: Workspace, day: str) -> GateDecision:
    """The gate's word on a night that was decided.

    Raises:
        UserError: it was not.
    """
    gate = ws.result(day, GateDecision)
    if gate is None:
        raise UserError(f"{ws.night(day)}: the night was never decided; run: ragbench run --date {day}")
    return gate


def print_gate(gate: GateDecision) -> None:
    print(f"Gate: {gate.verdict.upper()}")
    for reason in gate.reasons:
        print(f"  - {' '.join(reason.split())}")


def gate(
    workspace: WorkspaceOption = None,
    date: DateOption = None,
    sample: SampleOption = 0,
    output: Annotated[str, typer.Option("--format", help="text, json, junit or github.")] = "text",
    as_json: JsonOption = False,
) -> None:
    """Decide a night again from the store: nothing is run. Exit code 0 pass, 1 fail, 3 inconclusive."""
    from ragbench_dagster.reporting.ci.github import FORMATS, render_gate
    from ragbench_dagster.reporting.gate.decide import decide

    output = "json" if as_json else output
    if output not in FORMATS:
        raise UserError(f"--format {output}: not known; choose one of {', '.join(FORMATS)}")
    ws = open_workspace(workspace, sample)
    day = last_night(ws, date)
    result = decide(ws, day)
    print(render_gate(ws, day, result, output))
    sys.exit(EXIT[result.verdict])


# `ragbench accept`: a person names the night that margins are measured against.


def accept(
    night: Annotated[str, typer.Argument(help="Night, YYYY-MM-DD.")],
    by: Annotated[str, typer.Option("--by", help="Who accepts.")] = "",
    why: Annotated[str, typer.Option("--why", help="Why, in one line.")] = "",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept a night: from then on a margin is the loss allowed since it, over all later releases."""
    from ragbench_dagster.reporting.baselines import accept_night

    ws = open_workspace(workspace)
    day = last_night(ws, night)
    entry = accept_night(ws, day, by, why)
    verdict = stored_decision(ws, day).verdict
    if as_json:
        print_json({**structs.asdict(entry), "verdict": verdict})
        return
    print(f"accepted: night {day} (release {entry.release}, its gate said {verdict})")
    if verdict == "fail":
        say("warning: that night failed; its losses are now the measure of later ones")
    say("decide a later night again with: ragbench gate --date YYYY-MM-DD")
