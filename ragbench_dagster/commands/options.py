"""What all commands share: options, the workspace, tables, JSON and messages.

Results go to stdout, everything else to stderr. Text under judgement is untrusted: it is stripped of control
characters and of what a CI runner would obey before it reaches a terminal.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ragbench_dagster.errors import UserError
from ragbench_dagster.masking import mask
from ragbench_dagster.store import Workspace, dumps
from ragbench_dagster.text.format import decimal, safe_terminal

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Folder with ragbench.yaml; default RAGBENCH_WORKSPACE, else data/."),
]
DateOption = Annotated[str | None, typer.Option("--date", help="Night, YYYY-MM-DD (UTC).")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else there.")]
SampleOption = Annotated[int, typer.Option("--sample", min=0, help="Judge a fixed, stratified sample of N examples.")]

EXIT = {"pass": 0, "fail": 1, "inconclusive": 3}


def open_workspace(path: Path | None, sample: int = 0) -> Workspace:
    """The workspace of a command: the option, RAGBENCH_WORKSPACE, else `data/`."""
    return Workspace.open(path or os.environ.get("RAGBENCH_WORKSPACE") or "data").sampled(sample)


def parse_day(value: str | None) -> str | None:
    """An ISO day, or None.

    Raises:
        UserError: not a day.
    """
    if value is None:
        return None
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            raise ValueError("another form of a date")
        return date.fromisoformat(value).isoformat()
    except ValueError as fault:
        raise UserError(f"--date {safe_terminal(value)}: not a day; write YYYY-MM-DD") from fault


def last_night(ws: Workspace, asked: str | None = None) -> str:
    """The night asked for, else the last one in the store.

    Raises:
        UserError: there is no such night.
    """
    folder = ws.night("x").parent
    nights = sorted(p.name for p in folder.glob("????-??-??") if (p / "summary.json").exists())
    day = parse_day(asked)
    if day is None and nights:
        return nights[-1]
    if day in nights:
        return str(day)
    known = f"; the last night is {nights[-1]}" if nights else ""
    raise UserError(f"no night {day or ''} in {folder}{known}; run: ragbench run".replace("night  in", "night in"))


def complain(line: str) -> None:
    """One line on stderr."""
    print(f"ragbench: {safe_terminal(mask(line))}", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """One line on stderr, not an error."""
    print(safe_terminal(mask(line)), file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    print(dumps(value), flush=True)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], wide: bool = False) -> None:
    """A table on stdout; numbers to three digits, unknown as a dash."""
    table = Table(title=Text(title), title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    for i, name in enumerate(header):
        number = any(isinstance(r[i], int | float) and not isinstance(r[i], bool) for r in rows)
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(v)) for v in row))
    console = _Console(width=None if sys.stdout.isatty() and not wide else 140, highlight=False)
    console.print(table)
    console.print()


class _Console(Console):
    """rich ends with 1 where the reader of a pipe went away; 1 is the gate's word for fail."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else decimal(value)
    return safe_terminal(mask(str(value)))


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A progress callback: a bar on a terminal, a line every ten seconds elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_progress()
        return
    columns = [
        TextColumn("{task.description:<32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)

        def tell(label: str, done: int, total: int) -> None:
            bars.update(task, description=safe_terminal(label)[:32], completed=done, total=total or None)

        yield tell


def _plain_progress() -> Callable[[str, int, int], None]:
    last = time.monotonic()

    def tell(label: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= 10:
            last = now
            say(f"{label}: {done:,} of {total:,}")

    return tell
