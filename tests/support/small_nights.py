"""Small workspaces, releases and logged requests for the tests of this folder."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragbench_dagster.dataset.canonical import example_id, form_of
from ragbench_dagster.records import EXAMPLES, FORMS, SCRUBBED
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace, rows_table, write_table


@dataclass(frozen=True)
class SmallRelease:
    """What answering reads of a release."""

    id: str
    examples: pa.Table
    forms: pa.Table


def release(*queries: str, id: str = "r1", more: dict[str, list[str]] | None = None) -> SmallRelease:
    """A release of these questions; `more` names further forms of a question."""
    rows = sorted(
        (
            {"example_id": example_id(form_of(q)), "query": q, "history": [], "category": "c", "weight": 1.0}
            for q in queries
        ),
        key=lambda row: row["example_id"],
    )
    forms = {form_of(q): example_id(form_of(q)) for q in queries}
    for query, others in (more or {}).items():
        forms |= {form_of(other): example_id(form_of(query)) for other in others}
    table = rows_table([{"form": f, "example_id": e} for f, e in sorted(forms.items())], FORMS)
    return SmallRelease(id, rows_table(rows, EXAMPLES), table)


def workspace(root: Path, settings: str = "", **files: str) -> Workspace:
    """A workspace with a `ragbench.yaml` and further files (`engine_py` becomes engine.py)."""
    for name, text in files.items():
        (root / name.replace("_py", ".py").replace("_jsonl", ".jsonl")).write_text(text, encoding="utf-8")
    return Workspace.open(root, parse_settings(settings))


def log(ws: Workspace, day: str, *rows: dict[str, Any]) -> None:
    """Scrubbed requests of a day, as the traffic stage writes them."""
    made = []
    for i, row in enumerate(rows):
        hour = row.pop("hour", i)
        made.append(
            {
                "request_key": f"{day}-{i:03d}",
                "day": date.fromisoformat(day),
                "timestamp": datetime.fromisoformat(f"{day}T{hour:02d}:00:00").replace(tzinfo=UTC),
                "history": [],
                "follow_up": False,
                "question": True,
                "weight": 1.0,
                **row,
            }
        )
    write_table(ws.traffic(day) / "scrubbed.parquet", rows_table(made, SCRUBBED))


def answers(table: pa.Table, small: SmallRelease) -> dict[str, Any]:
    """Question to its row of records.RESPONSES."""
    queries = dict(zip(small.examples["example_id"].to_pylist(), small.examples["query"].to_pylist(), strict=True))
    return {queries[row["example_id"]]: row for row in table.to_pylist()}
