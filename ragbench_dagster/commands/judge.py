"""`ragbench estimate`, `reproduce` and `calibrate`: the judge's cost, its past and its reference."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ragbench_dagster.commands.options import (
    DateOption,
    JsonOption,
    SampleOption,
    WorkspaceOption,
    last_night,
    open_workspace,
    parse_day,
    print_json,
    print_table,
    progress_bar,
    say,
)


def estimate(
    workspace: WorkspaceOption = None, date: DateOption = None, sample: SampleOption = 0, as_json: JsonOption = False
) -> None:
    """Calls, tokens, cost and time of a night before it runs; what the ledger holds is free."""
    from ragbench_dagster.evaluation.estimate import estimate_night
    from ragbench_dagster.orchestration.runs import choose_day, prepare_dataset

    ws = open_workspace(workspace, sample)
    day, _ = choose_day(ws, parse_day(date))
    with progress_bar() as progress:
        prepare_dataset(ws, day, progress)
    found = estimate_night(ws, day)
    if as_json:
        print_json(found)
        return
    header = ["system", "metric", "items", "paid", "calls", "prompt_tokens", "completion_tokens", "cost_usd"]
    print_table("Estimate", header, [[r.get(h) for h in header] for r in found["rows"]])
    print(f"total: {found['calls']:,} calls, {found['cost_usd'] if found['cost_usd'] is not None else 'unknown'} USD")


def reproduce(
    night: Annotated[str, typer.Argument(help="Night, YYYY-MM-DD.")],
    workspace: WorkspaceOption = None,
    sample: SampleOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Recompute a past night's tables from its manifest and the ledger, without calls. Exit 1 where a figure differs."""
    from ragbench_dagster.reporting.reproduce import reproduce_night

    ws = open_workspace(workspace, sample)
    found: dict[str, Any] = reproduce_night(ws, last_night(ws, night))
    if as_json:
        print_json(found)
    else:
        print_table(f"Night {night} from the ledger", ["table", "rows", "differences"], found["tables"])
    same = bool(found["same"])
    say("every figure matches" if same else "figures differ")
    sys.exit(0 if same else 1)


def calibrate(
    workspace: WorkspaceOption = None,
    date: DateOption = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Record the reference that drift is measured against.")
    ] = False,
    who: Annotated[str, typer.Option("--who", help="Who accepts.")] = "",
    why: Annotated[str, typer.Option("--why", help="Why.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Check the judge against people now; with --accept, record today's judge as the reference."""
    from ragbench_dagster.calibration.calibrate import agreement_rows, calibrate_now
    from ragbench_dagster.calibration.sentinel import accept_reference, rounds_line

    ws = open_workspace(workspace)
    with progress_bar() as progress:
        if accept:
            found = accept_reference(ws, who, why, progress)
        else:
            found = calibrate_now(ws, parse_day(date), progress)
    if as_json:
        print_json(found)
        return
    if accept:
        print_table(
            "Accepted reference", ["key", "value"], [[k, v] for k, v in found.items() if not isinstance(v, dict | list)]
        )
        say(rounds_line(found))
        return
    print_table(
        "Agreement with people", ["metric", "n", "kappa", "balanced accuracy"], [r[:4] for r in agreement_rows(found)]
    )
