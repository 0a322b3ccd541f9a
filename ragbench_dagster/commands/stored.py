"""Commands that read the store and run nothing: failures, leaderboard, report, history."""

from __future__ import annotations

from typing import Annotated

import typer

from ragbench_dagster.commands.options import (
    DateOption,
    JsonOption,
    SampleOption,
    WorkspaceOption,
    last_night,
    open_workspace,
    print_json,
    print_table,
    say,
)
from ragbench_dagster.errors import UserError


def failures(
    workspace: WorkspaceOption = None,
    date: DateOption = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Only this metric.")] = None,
    category: Annotated[str | None, typer.Option("--category", help="Only this category.")] = None,
    system: Annotated[str | None, typer.Option("--system", help="Only this system.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="At most this many.")] = 20,
    sample: SampleOption = 0,
    as_json: JsonOption = False,
) -> None:
    """The failing cases of a night with the judge's feedback, worst first; from the store, without calls."""
    from ragbench_dagster.reporting.failures import failing_cases

    ws = open_workspace(workspace, sample)
    day = last_night(ws, date)
    rows = failing_cases(ws, day, metric=metric, category=category, system=system, limit=limit)
    if as_json:
        print_json(rows)
        return
    header = ["example", "system", "metric", "category", "score", "query", "feedback"]
    keys = ["example_id", "system", "metric", "category", "score", "query", "feedback"]
    print_table(f"Failing cases of {day}", header, [[_short(r.get(k)) for k in keys] for r in rows])
    if len(rows) == limit:
        say(f"the worst {limit}; more with -n")


def _short(value: object) -> object:
    return value if not isinstance(value, str) or len(value) <= 160 else value[:157] + "..."


def leaderboard(
    workspace: WorkspaceOption = None, date: DateOption = None, sample: SampleOption = 0, as_json: JsonOption = False
) -> None:
    """Systems ranked per metric; those that cannot be told apart share a rank."""
    from ragbench_dagster.reporting.leaderboard import leaderboard_table, rank

    ws = open_workspace(workspace, sample)
    found = rank(ws, last_night(ws, date))
    if as_json:
        print_json(found)
        return
    table = leaderboard_table(found)
    print_table(table["title"], table["columns"], table["rows"])


def report(
    workspace: WorkspaceOption = None, date: DateOption = None, sample: SampleOption = 0, as_json: JsonOption = False
) -> None:
    """Write the night's self-contained HTML report again and print its path."""
    from ragbench_dagster.reporting.report import write_report

    ws = open_workspace(workspace, sample)
    day = last_night(ws, date)
    path = write_report(ws, day)
    if as_json:
        print_json({"date": day, "report": str(path)})
    else:
        print(path)


def history(
    workspace: WorkspaceOption = None,
    best: Annotated[str | None, typer.Option("--best", help="The best night of this metric.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Nights shown.")] = 30,
    as_json: JsonOption = False,
) -> None:
    """All nights; with --best, the best value a metric ever had and with which judge, prompt and system version."""
    from ragbench_dagster.reporting.history import history_rows

    ws = open_workspace(workspace)
    rows = history_rows(ws, best=best)[:limit]
    if best and not rows:
        raise UserError(f"--best {best}: no night has this metric; see: ragbench history")
    if as_json:
        print_json(rows)
        return
    header = list(rows[0]) if rows else ["date"]
    print_table("Nights", header, [list(r.values()) for r in rows])
