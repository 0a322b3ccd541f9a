"""`ragbench logs check`: what the night would read, before a night."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbench_dagster.commands.common import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    print_json,
    print_table,
    say,
)

if TYPE_CHECKING:
    from ragbench_dagster.traffic.preview import Shape

app = typer.Typer(help="The log files, before a night.", no_args_is_help=True)
_LONGEST = 120  # characters of a text that are shown


@app.callback()
def logs_() -> None:
    """The log files, before a night."""


@app.command("check")
def check(
    n: Annotated[int, typer.Option("-n", min=1, help="Lines of each file that are looked at.")] = 20,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the first lines of each log file as they are read: fields, what nobody reads, three scrubbed requests."""
    from ragbench_dagster.traffic.preview import preview

    found = preview(open_workspace(workspace), n)
    if as_json:
        facts = {"files": found.files, "looked_at": found.looked_at}
        print_json({**facts, "shapes": list(map(_as_json, found.shapes)), "requests": found.requests})
        return
    if found.looked_at < found.files:
        say(f"looked at {found.looked_at} of {found.files} files")
    for shape in found.shapes:
        _print_shape(shape)
    rows = [[row["day"], _cut(row["query"]), _cut(row["response"]), len(row["source_nodes"] or ()), row["latency_ms"],
             row["category"]] for row in found.requests]  # fmt: skip
    if rows:
        print_table("Read as (scrubbed)", ["day", "query", "response", "passages", "ms", "category"], rows)


def _as_json(shape: Shape) -> dict[str, Any]:
    read = {ours: {"from": where, "there": there} for ours, (where, there) in shape.read.items()}
    return {**asdict(shape), "read": read, "hints": shape.hints}


def _print_shape(shape: Shape) -> None:
    more = f" and {len(shape.files) - 1} more" if len(shape.files) > 1 else ""
    title = f"{shape.files[0]}{more}: {shape.lines} lines, {shape.requests} read"
    rows = [[ours, where if there else f"{where} (not there)", there] for ours, (where, there) in shape.read.items()]
    if shape.requests:
        print_table(title, ["field", "read from", "there"], rows)
    rest = [["bad line", reason, count] for reason, count in sorted(shape.bad.items(), key=lambda item: -item[1])]
    rest += [["kept out", "by traffic.where", shape.left_out]] if shape.left_out else []
    rest += [["not read", name, None] for name in shape.unmapped]
    rest += [["hint", hint, None] for hint in shape.hints]
    if rest:
        print_table("" if shape.requests else title, ["", "", "lines"], rest)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
