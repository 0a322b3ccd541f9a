"""`ragbench prune`: nights, traffic, caches and Dagster's event log stay bounded."""

from __future__ import annotations

from typing import Annotated

import typer

from ragbench_dagster.commands.common import JsonOption, WorkspaceOption, open_workspace, print_json, print_table, say


def prune(
    keep_days: Annotated[int, typer.Option("--keep-days", help="Nights of so many days up to the last one stay.")],
    workspace: WorkspaceOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old nights, traffic, caches and runs; releases, verdicts and what a kept night needs stay."""
    from ragbench_dagster.orchestration.event_log import drop_runs, drop_ticks
    from ragbench_dagster.orchestration.resources import store_lock
    from ragbench_dagster.reporting.retention import drop, outdated

    ws = open_workspace(workspace)
    with store_lock(ws.root, say):
        old = outdated(ws, keep_days)
        counts = {"nights": len(old.nights), "days of traffic": len(old.traffic)}
        if not dry_run:
            counts = drop(ws, old)
            drop_ticks(ws, keep_days)
        stay = set(old.needed)
        counts["runs"] = drop_runs(
            ws,
            lambda days: days[1] < old.first_kept and days[0] not in stay,
            lambda day: (ws.traffic(day) / "scrubbed.parquet").exists(),
            dry_run,
        )
    if as_json:
        print_json({"dry_run": dry_run, "removed": counts, "first_kept": old.first_kept, "needed": old.needed})
        return
    print_table("Would be removed" if dry_run else "Removed", ["what", "n"], [[k, v] for k, v in counts.items()])
    kept = f"; of those before, {', '.join(old.needed)} stay: nights are measured against them" if old.needed else ""
    say(f"nights from {old.first_kept} on stay{kept}")
