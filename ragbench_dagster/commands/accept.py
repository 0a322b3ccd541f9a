"""`ragbench accept`: a person names the night that margins are measured against."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ragbench_dagster.commands.common import (
    JsonOption,
    WorkspaceOption,
    last_night,
    open_workspace,
    print_json,
    say,
)
from ragbench_dagster.store import read_json


def accept(
    night: Annotated[str, typer.Argument(help="Night, YYYY-MM-DD.")],
    by: Annotated[str, typer.Option("--by", help="Who accepts.")] = "",
    why: Annotated[str, typer.Option("--why", help="Why, in one line.")] = "",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept a night: from then on a margin is the loss allowed since it, over all later releases."""
    from ragbench_dagster.reporting.acceptance import accept_night

    ws = open_workspace(workspace)
    day = last_night(ws, night)
    entry = accept_night(ws, day, by, why)
    verdict = (read_json(ws.night(day) / "gate.json") or {}).get("verdict")
    if as_json:
        print_json({**asdict(entry), "verdict": verdict})
        return
    print(f"accepted: night {day} (release {entry.release}, its gate said {verdict})")
    if verdict == "fail":
        say("warning: that night failed; its losses are now the measure of later ones")
    say("decide a later night again with: ragbench gate --date YYYY-MM-DD")
