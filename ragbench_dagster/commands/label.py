"""`ragbench label`: the labelling queue, and its way back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbench_dagster.commands.options import (
    DateOption,
    JsonOption,
    WorkspaceOption,
    last_night,
    open_workspace,
    parse_day,
    print_json,
    print_table,
    say,
)

app = typer.Typer(help="The labelling queue: the heaviest unlabelled questions.", no_args_is_help=True)


@app.command("next")
def next_(
    n: Annotated[int, typer.Option("-n", min=1, help="How many questions.")] = 50,
    to: Annotated[
        Path | None, typer.Option("--to", help="File to write, .jsonl or .csv; default: JSON Lines on stdout.")
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Write the heaviest unlabelled questions with candidate passages, to be filled in by a person."""
    from ragbench_dagster.dataset.labelling import label_queue, write_queue

    ws = open_workspace(workspace)
    rows = label_queue(ws, n)
    if to is None:
        from ragbench_dagster.commands.stages import write_rows

        write_rows(rows)
        return
    from ragbench_dagster.dataset.export import register
    from ragbench_dagster.dataset.release import latest

    write_queue(rows, to)
    register(ws, "queue", to, latest(ws).id)  # type: ignore[union-attr]  # rows come from it
    say(f"wrote {len(rows)} questions to {to}; fill in expected_doc_ids, then: ragbench label import {to}")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A filled-in queue, .jsonl or .csv.")],
    force: Annotated[bool, typer.Option("--force", help="Take ids that no corpus and no system has, too.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Validate labels and merge them into labels.jsonl; conflicts and unknown ids are refused; says how coverage grew."""
    from ragbench_dagster.dataset.labelling import import_labels

    found = import_labels(open_workspace(workspace), file, force)
    if as_json:
        print_json(found)
    else:
        print_table("Labels", ["figure", "value"], [[k, v] for k, v in found.items()])


@app.command("answers")
def answers_(
    system: Annotated[str, typer.Option("--system", help="Whose answers.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="Judged metric; may be given several times.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many answers.")] = 200,
    date: DateOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Draw a random sample of a night's answers for people to grade: the best correction of the judge there is."""
    from ragbench_dagster.calibration.label_sample import label_sample

    ws = open_workspace(workspace)
    day = last_night(ws, date)
    path = label_sample(ws, day, system, metric or ws.settings.judged_metrics, n)
    say(f"wrote {path}; fill in human, then: ragbench run --date {day}")


@app.command("audit")
def audit_(
    system: Annotated[str, typer.Option("--system", help="Whose answers.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="Judged metric; may be given several times.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=2, help="How many answers a week, half passed and half failed.")] = 26,
    date: DateOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Draw a few of the week's answers for people to grade, blind to the verdict: do the judge's errors still hold?"""
    from ragbench_dagster.calibration.label_audit import draw_audit

    ws = open_workspace(workspace)
    day = last_night(ws, date)
    for name in metric or ws.settings.judged_metrics:
        path, found = draw_audit(ws, day, system, name, n)
        say(
            f"wrote {path}: {found['passed']} answers that the judge passed and {found['failed']} that it failed, of "
            f"{found['week_n']} this week; fill in human (null: unsure)"
        )


@app.command("changes")
def changes_(
    system: Annotated[str, typer.Option("--system", help="Whose answers.")],
    metric: Annotated[str, typer.Option("--metric", help="Judged metric.")],
    since: Annotated[
        str | None, typer.Option("--since", help="Night to compare with; default: the one the gate compares with.")
    ] = None,
    date: DateOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Draw answers that changed since a night, old and new, for people to grade: does the judge see the change?"""
    from ragbench_dagster.calibration.label_changes import draw_changes
    from ragbench_dagster.reporting.comparability import night_compared

    ws = open_workspace(workspace)
    day = last_night(ws, date)
    before = parse_day(since) or night_compared(ws, day, system, metric)
    path, found = draw_changes(ws, day, before, system, metric)
    say(
        f"wrote {path}: {found['drawn']} pairs of {found['gained']} gained, {found['lost']} lost and {found['same']} "
        f"changed under the same verdict since {before}; fill in human, then: ragbench gate --date {day}"
    )


@app.command("paraphrase")
def paraphrase_(
    n: Annotated[int, typer.Option("-n", min=1, help="How many questions.")] = 50,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the judge's LLM rephrase the heaviest labelled questions; marked synthetic, never part of the gate."""
    import asyncio

    from ragbench_dagster.dataset.labelling import paraphrase
    from ragbench_dagster.evaluation import spending
    from ragbench_dagster.evaluation.judge import governed_llm

    ws = open_workspace(workspace)
    llm = governed_llm(ws)
    spending.enter(ws, "label paraphrase")

    async def work() -> dict[str, int]:
        async def ask(prompt: str) -> str:
            return str((await llm.acomplete(prompt)).text)

        try:
            return await paraphrase(ws, n, ask)
        finally:
            await llm.aclose()

    found = asyncio.run(work())
    spending.finish(ws, "label paraphrase")
    if as_json:
        print_json(found)
    else:
        print_table("Paraphrases", ["figure", "value"], [[k, v] for k, v in found.items()])
