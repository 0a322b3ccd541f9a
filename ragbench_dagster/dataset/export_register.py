"""Which files were written outside the store from a release: so that `ragbench forget` finds them again.

    store/releases/exports.jsonl   {kind: release|queue, path, release, format}, a line for each

Files that were copied on, committed or sent are beyond it; `forget` says which it changed.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.export import export_release
from ragbench_dagster.dataset.frozen import load_release
from ragbench_dagster.store import Workspace, write_text


def register_file(ws: Workspace) -> Path:
    return ws.store / "releases" / "exports.jsonl"


def read_register(ws: Workspace) -> list[dict[str, Any]]:
    path = register_file(ws)
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    found = []
    for line in lines:
        try:
            found.append(dict(json.loads(line)))
        except ValueError:  # cut by a kill; the export it was to tell of was written again or is not there
            continue
    return found


def register(ws: Workspace, kind: str, path: Path, release: str, format: str = "") -> None:
    """Note a file (or the folder of a Hugging Face export) that holds questions of `release`."""
    row = {"kind": kind, "path": str(path.resolve()), "release": release, "format": format}
    known = read_register(ws)
    if row not in known:
        write_register(ws, [*known, row])


def write_register(ws: Workspace, rows: list[dict[str, Any]]) -> None:
    """Replace the register."""
    write_text(register_file(ws), "".join(json.dumps(r, ensure_ascii=False, sort_keys=True) + "\n" for r in rows))


def renew_exports(ws: Workspace, successors: dict[str, str], gone: dict[str, list[str]]) -> list[str]:
    """Replace every known file of a release that changed; returns their paths. Done twice, it changes nothing.

    Args:
        ws: the workspace.
        successors: old release: the one in its place.
        gone: old release: examples that are the person's.

    Raises:
        UserError: a file cannot be written.
    """
    rows, touched = [], []
    known = read_register(ws)
    for row in known:
        path, old = Path(row["path"]), row["release"]
        if old not in successors:
            rows.append(row)
            continue
        if path.exists():
            touched.append(str(path))
            if row["kind"] == "queue":
                _filter_queue(path, gone[old])
                rows.append({**row, "release": successors[old]})
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            named = path.stem != old and path.name != old
            again = export_release(load_release(ws, successors[old]), path if named else path.parent, row["format"])
            rows.append({**row, "path": str(again.resolve()), "release": successors[old]})
    if rows != known:
        write_register(ws, rows)
    return touched


def _filter_queue(path: Path, gone: Collection[str]) -> None:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() != ".csv":
        kept = [line for line in text.split("\n") if line.strip() and _example(line) not in gone]
        write_text(path, "".join(line + "\n" for line in kept))
        return
    table = list(csv.reader(io.StringIO(text, newline="")))
    at = table[0].index("example_id") if table and "example_id" in table[0] else -1
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(r for r in table if at < 0 or len(r) <= at or r[at] not in gone)
    write_text(path, "\ufeff" + out.getvalue())


def _example(line: str) -> Any:
    try:
        return json.loads(line).get("example_id")
    except (ValueError, AttributeError):
        return None
