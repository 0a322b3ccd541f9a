"""A workspace whose scrubbed days are written directly: what the dataset stage reads, without the stages before it."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

from ragbench_dagster.records import SCRUBBED
from ragbench_dagster.settings import Settings
from ragbench_dagster.store import Workspace, rows_table, write_table


def workspace(root: Path, **dataset: Any) -> Workspace:
    """A workspace without a language model, so that labels are scrubbed in milliseconds."""
    return Workspace(root, Settings.model_validate({"scrub": {"ner": "off"}, "dataset": dataset}))


def request(query: str, **more: Any) -> dict[str, Any]:
    return {"query": query, "history": [], "category": "c", "weight": 1.0, "follow_up": False, "question": True} | more


def write_day(ws: Workspace, day: str, requests: list[dict[str, Any] | str]) -> None:
    """scrubbed.parquet of a day; a text stands for a plain request."""
    rows = []
    for number, row in enumerate(requests):
        full = request(row) if isinstance(row, str) else row
        rows.append({"request_key": f"{day}-{number:05d}", "day": dt.date.fromisoformat(day)} | full)
    write_table(ws.traffic(day) / "scrubbed.parquet", rows_table(rows, SCRUBBED))


def write_labels(ws: Workspace, labels: list[dict[str, Any]]) -> None:
    ws.labels.write_text("".join(json.dumps(label) + "\n" for label in labels), encoding="utf-8")


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
