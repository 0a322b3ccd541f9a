"""`ragbench forget`: a person's requests removed everywhere, and kept out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbench_dagster.commands.options import JsonOption, WorkspaceOption, open_workspace, print_json, print_table, say
from ragbench_dagster.errors import UserError

Several = list[str] | None


def forget(
    workspace: WorkspaceOption = None,
    user: Annotated[
        Several, typer.Option("--user", help="user_id as the logs have it; may be given several times.")
    ] = None,
    request: Annotated[Several, typer.Option("--request", help="request_id as the logs have it.")] = None,
    text_file: Annotated[
        Path | None,
        typer.Option("--text-file", help="Texts, one a line: requests that say one of them, whoever asked."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find and remove everything derived from a person's requests, and keep them out though the logs still hold them."""
    from ragbench_dagster.orchestration.event_log import drop_runs_of
    from ragbench_dagster.orchestration.resources import store_lock
    from ragbench_dagster.reporting import erasure

    ws = open_workspace(workspace)
    texts = _texts(text_file) if text_file else []
    if not (user or request or texts):
        raise UserError("forget: name whom: --user ID, --request ID or --text-file FILE")
    if not all(value.strip() for value in [*(user or []), *(request or [])]):
        raise UserError("forget: an id is empty; give it as the logs have it")
    with store_lock(ws.root, say):
        marks = erasure.marks_of(ws, user or [], request or [], texts)
        counts, notes = erasure.forget(ws, marks, dry_run, lambda days: drop_runs_of(ws, days))
    if as_json:
        print_json({"dry_run": dry_run, "removed": counts, "notes": notes})
        return
    print_table("Would be removed" if dry_run else "Removed", ["what", "n"], [[k, v] for k, v in counts.items()])
    for line in notes:
        say(line)
    if not dry_run:
        say("they stay out of every later run; the next one samples and cuts what changed: ragbench run")


def _texts(path: Path) -> list[str]:
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise UserError(f"--text-file {path.name}: cannot be read as UTF-8 text ({type(fault).__name__})") from fault
    found = [line.strip() for line in text.split("\n") if any(c.isalnum() for c in line)]
    if not found:
        raise UserError(f"--text-file {path.name}: holds no text; write one question or answer a line")
    return found


# `ragbench prune`: nights, traffic, caches and Dagster's event log stay bounded.


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
