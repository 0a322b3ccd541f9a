"""What all asset bodies share: the workspace under the lock, capped metadata, errors without text.

Dagster keeps metadata and error messages for ever, so neither may hold the text of a question or an
answer, nor grow with the data.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg
import pyarrow as pa

from ragbench_dagster.errors import Interrupted, UserError
from ragbench_dagster.masking import mask
from ragbench_dagster.orchestration.instance import disk_line
from ragbench_dagster.orchestration.resources import WorkspaceResource, store_lock
from ragbench_dagster.store import Workspace
from ragbench_dagster.text.format import decimal

MAX_ROWS = 20
MAX_BYTES = 4_000
OWNERS = ["team:ragbench"]


def guarded(body: Callable[..., Any]) -> Callable[..., Any]:
    """Run an asset body under the store's lock; an unexpected error loses its message, not its place.

    An exception's message may quote what it choked on (`KeyError: 'my name is ...'`), and the event log keeps it.
    """

    def run(context, workspace):  # type: ignore[no-untyped-def]
        ws = workspace.open()
        with store_lock(ws.root, context.log.info):
            try:
                finish_removal(ws)
                return body(context, workspace)
            except (UserError, Interrupted) as fault:
                # Dagster keeps the causes too, and theirs are words of a library or of the user's own code.
                fault.args = (mask(str(fault)),)
                raise fault from None
            except dg.Failure:
                raise
            except Exception as fault:
                line = disk_line(ws, fault)
                if line is not None:
                    raise UserError(line) from None
                frame = traceback.extract_tb(fault.__traceback__)[-1]
                place = f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} in {frame.name}"
                raise RuntimeError(
                    f"{type(fault).__name__} at {place} (message withheld: it may quote user text)"
                ) from None

    # Dagster reads these at run time; as postponed strings it could not resolve them in this module.
    run.__annotations__ = {
        "context": dg.AssetExecutionContext,
        "workspace": WorkspaceResource,
        "return": dg.MaterializeResult,
    }
    run.__name__, run.__doc__ = body.__name__, body.__doc__
    return run


def finish_removal(ws: Workspace) -> None:
    """What a killed `ragbench forget` left is removed before anything is made from it."""
    if (ws.store / "forget.json").exists():
        from ragbench_dagster.orchestration.event_log import drop_runs_of
        from ragbench_dagster.reporting import erasure

        erasure.resume(ws, lambda days: drop_runs_of(ws, days))


def columns(schema: pa.Schema) -> dg.TableSchema:
    """An Arrow schema as Dagster's column schema."""
    return dg.TableSchema(columns=[dg.TableColumn(name=f.name, type=str(f.type)) for f in schema])


def metadata(**values: Any) -> dict[str, Any]:
    """Plain, finite metadata: numpy scalars become Python's, unknown values are left out.

    numpy scalars fail a run at serialisation, a NaN froze the run page.
    """
    clean: dict[str, Any] = {}
    for name, value in values.items():
        if hasattr(value, "item") and not isinstance(value, str):
            value = value.item()
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            continue
        if isinstance(value, str):
            value = value[:MAX_BYTES]
        clean[name] = value
    return clean


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> dg.MarkdownMetadataValue:
    """A small Markdown table: at most 20 rows and 4 kB; cells are escaped."""

    def cell(value: Any) -> str:
        if value is None:
            return "–"
        text = decimal(value) if isinstance(value, float) else str(value)
        text = "".join(c if c.isprintable() else " " for c in text)[:80]
        for mark in "\\`*_{}[]<>|#!&":
            text = (
                text.replace(mark, "\\" + mark)
                if mark not in "<>&"
                else text.replace(mark, {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[mark])
            )
        return text

    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    size = sum(map(len, lines))
    for done, row in enumerate(rows):
        line = "| " + " | ".join(map(cell, row)) + " |"
        size += len(line.encode()) + 1
        if done == MAX_ROWS or size > MAX_BYTES - 60:
            lines.append(f"\n{len(rows) - done} more rows are in the store.")
            break
        lines.append(line)
    return dg.MetadataValue.md("\n".join(lines))


def per_day(context: Any, facts: dict[str, dict[str, Any]]) -> dg.MaterializeResult:
    """Metadata of one day, or of each day of a range run."""
    if len(facts) == 1:
        return dg.MaterializeResult(metadata=next(iter(facts.values())))
    for day, values in facts.items():
        context.add_asset_metadata(values, partition_key=day)
    return dg.MaterializeResult()


# How an asset of this graph is declared: the one place for partitions, owners, kinds and freshness.

# Every night is due by 06:00 UTC, four hours after the tick; it may begin at midnight.
FRESH = dg.FreshnessPolicy.cron(deadline_cron="0 6 * * *", lower_bound_delta=timedelta(hours=6), timezone="UTC")


def night_asset(
    days: dg.DailyPartitionsDefinition,
    *,
    name: str,
    group: str,
    kinds: set[str],
    deps: Sequence[Any],
    description: str,
    schema: pa.Schema | None = None,
    prefix: str | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorator: a daily asset whose body is `body(context, workspace)`."""

    def build(body: Callable[..., Any]) -> dg.AssetsDefinition:
        return dg.asset(
            key=dg.AssetKey([prefix, name]) if prefix else dg.AssetKey(name),
            partitions_def=days,
            group_name=group,
            owners=OWNERS,
            kinds=kinds,
            deps=deps,
            description=description,
            code_version="1",
            freshness_policy=FRESH,
            metadata={"dagster/column_schema": columns(schema)} if schema is not None else None,
        )(guarded(body))

    return build
