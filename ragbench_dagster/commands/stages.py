"""`ragbench stage ...`: one stage as a filter, JSON Lines in and out.

Settings are read only when a workspace is named; otherwise pure defaults, from any folder.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from ragbench_dagster.commands.options import WorkspaceOption
from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Settings
from ragbench_dagster.store import Workspace, finite
from ragbench_dagster.text.format import safe_terminal

if TYPE_CHECKING:
    from ragbench_dagster.traffic.scrubbing.placeholders import Word

app = typer.Typer(help="One stage as a filter: JSON Lines on stdin, JSON Lines on stdout.", no_args_is_help=True)


def _settings(path: Path | None) -> tuple[Settings, Workspace | None]:
    named = path or os.environ.get("RAGBENCH_WORKSPACE")
    if not named:
        return Settings(), None
    ws = Workspace.open(named)
    return ws.settings, ws


def read_rows(stream: Any = None) -> Iterator[dict[str, Any]]:
    """JSON Lines from stdin; only LF ends a row (U+2028 may stand inside a string).

    Raises:
        UserError: names the row that is no JSON object.
    """
    for number, line in enumerate(stream or sys.stdin.buffer, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        try:
            row = _decode(line)
        except (ValueError, RecursionError) as fault:
            raise UserError(f"stdin: row {number}: not JSON ({type(fault).__name__}); correct the row") from fault
        if not isinstance(row, dict):
            raise UserError(f"stdin: row {number}: not a JSON object; correct the row")
        yield row


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        # json reads what msgspec refuses: a lone surrogate. NaN and numbers beyond a double stay refused.
        return json.loads(line, parse_constant=_refuse, parse_float=_finite)


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _refuse(word)


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def write_rows(rows: Iterable[dict[str, Any]]) -> None:
    """Strict JSON Lines on stdout; a lone surrogate is written as U+FFFD."""
    out = sys.stdout.buffer
    for row in rows:
        try:
            out.write(msgspec.json.encode(row) + b"\n")  # five times as fast; NaN becomes null
        except (TypeError, UnicodeEncodeError):
            text = json.dumps(finite(row), ensure_ascii=False, allow_nan=False)
            out.write(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode() + b"\n")
    out.flush()


def need(rows: Iterable[dict[str, Any]], **fields: type | tuple[type, ...]) -> Iterator[dict[str, Any]]:
    """Pass rows on that have these fields of these types.

    Raises:
        UserError: names the row and the field.
    """
    for number, row in enumerate(rows, 1):
        for name, kind in fields.items():
            if not isinstance(row.get(name), kind):
                raise UserError(f"stdin: row {number}: {name!r} is missing or of another type; correct the row")
        yield row


@app.command()
def scrub(
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the most frequent replaced words on stderr, by kind of evidence.")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """{text} -> {text, spans: [{start, end, type}]}; spans index the input text."""
    from ragbench_dagster.traffic.scrubbing import build_scrubber, stage_scrub

    settings, ws = _settings(workspace)
    seen: Counter[Word] | None = Counter() if explain else None
    write_rows(stage_scrub(need(read_rows(), text=str), build_scrubber(settings.scrub, ws.root if ws else None), seen))
    if seen is not None:
        _explain(seen, ws)


def _explain(seen: Counter[Word], ws: Workspace | None) -> None:
    """The replaced words themselves, on stderr alone; with a workspace also the hashes that its lists show."""
    from ragbench_dagster.traffic.scrubbing.quality import KEPT, word_mark
    from ragbench_dagster.traffic.scrubbing.spans import Evidence

    print("evidence   strong  times  type              " + ("word's hash   word" if ws else "word"), file=sys.stderr)
    for kind in Evidence:
        rows = sorted(((n, t, w) for (e, t, w), n in seen.items() if e == kind), key=lambda r: (-r[0], r[1], r[2]))
        for times, type_, word in rows[:KEPT]:
            mark = word_mark(type_, word, ws.keyed) + "  " if ws else ""
            strong = "yes" if kind.strong else "no"
            shown = safe_terminal(word)[:60]
            print(f"{kind:<10} {strong:<6} {times:>6}  {type_:<17} {mark}{shown}", file=sys.stderr)


@app.command()
def dedupe(workspace: WorkspaceOption = None) -> None:
    """{id, query} -> adds cluster and canonical, in input order."""
    from ragbench_dagster.dataset.dedupe import stage_dedupe

    settings, ws = _settings(workspace)
    write_rows(stage_dedupe(need(read_rows(), id=(str, int), query=str), settings.dataset.dedupe, ws))


@app.command()
def retrieval(
    k: Annotated[list[int] | None, typer.Option("-k", min=1, help="Cut-off; may be given several times.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only the means, with their n.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """{query_id, expected, retrieved} -> adds hit_rate@k, mrr@k, precision@k, recall@k, ap@k, ndcg@k."""
    from ragbench_dagster.evaluation.retrieval import stage_retrieval

    _settings(workspace)
    write_rows(stage_retrieval(read_rows(), k or [5, 10], summary))


@app.command()
def judge(
    metric: Annotated[str, typer.Option("--metric", help="faithfulness, relevancy, correctness, ...")],
    workspace: WorkspaceOption = None,
) -> None:
    """{id, query, contexts, response, reference} -> adds status, score, passing, feedback."""
    from ragbench_dagster.evaluation.judge_runner import stage_judge

    settings, ws = _settings(workspace)
    write_rows(stage_judge(read_rows(), metric, settings.judge, ws))


@app.command()
def agreement(
    human: Annotated[str, typer.Option("--human", help="Dotted path to people's label.")],
    judge: Annotated[str, typer.Option("--judge", help="Dotted path to the judge's verdict or score.")],
    threshold: Annotated[float | None, typer.Option("--threshold", help="For a judge that is not 0/1.")] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Rows with both verdicts -> one JSON object: table, accuracy, kappa, ... with intervals."""
    from ragbench_dagster.calibration.agreement import stage_agreement

    _settings(workspace)
    write_rows([stage_agreement(read_rows(), human, judge, threshold)])
