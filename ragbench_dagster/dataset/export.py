"""A release in other people's formats. What is written is a pure function of the release."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.release import Release, load_release
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, dumps, write_table, write_text

FORMATS = ("jsonl", "parquet", "csv", "hf", "ragas", "llama_index")
# A cell that starts so is run as a formula by a spreadsheet (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_release(release: Release, to: Path, format: str = "jsonl") -> Path:
    """Write a release for another tool and return the file (or, for `hf`, the folder).

    `to` is a folder (the file's name is then the release's id) or a file name with a suffix.

    Args:
        format: `jsonl` {query, expected_doc_ids, expected_answer, category}; `parquet` and `csv` with all columns;
            `hf` a folder that `datasets.load_dataset` reads; `ragas` single-turn samples {user_input,
            reference, reference_context_ids}; `llama_index` the `examples` of a LabelledRagDataset.

    Raises:
        UserError: no such format, or the file cannot be written.
    """
    if format not in FORMATS:
        raise UserError(f"{format}: no such export format; one of {', '.join(FORMATS)}")
    rows = release.examples.to_pylist()
    if format == "hf":
        return _hugging_face(release, to)
    ending = {"parquet": ".parquet", "csv": ".csv", "llama_index": ".json"}.get(format, ".jsonl")
    path = to if to.suffix and not to.is_dir() else to / f"{release.id}{ending}"
    if format == "parquet":
        write_table(path, release.examples)
    elif format == "csv":
        write_text(path, to_csv(map(_csv_row, rows), list(release.examples.column_names)))
    elif format == "llama_index":
        write_text(path, dumps({"examples": [_llama_index(row) for row in rows]}) + "\n")
    else:
        shape: Callable[[dict[str, Any]], dict[str, Any]] = _ragas if format == "ragas" else _jsonl
        write_text(path, "".join(json.dumps(shape(row), ensure_ascii=False) + "\n" for row in rows))
    return path


def expected(row: dict[str, Any]) -> list[str] | dict[str, float] | None:
    """The expected ids of an example as a labels file spells them: a list, or {id: grade}."""
    ids, grades = row["expected_doc_ids"], row["expected_grades"]
    if ids is None or grades is None:
        return ids
    return dict(zip(ids, grades, strict=True))


def _jsonl(row: dict[str, Any]) -> dict[str, Any]:
    shaped = {
        "query": row["query"],
        "expected_doc_ids": expected(row),
        "expected_answer": row["expected_answer"],
        "category": row["category"],
    }
    # Only where there is something to say: a follow-up means nothing without its history, the rest must not be
    # taken for a person's label when the file is read again.
    if row["history"]:
        shaped["history"] = row["history"]
    for flag in ("conflict", "synthetic"):
        if row[flag]:
            shaped[flag] = True
    return shaped


def _ragas(row: dict[str, Any]) -> dict[str, Any]:
    """Field names of ragas' SingleTurnSample."""
    turns = [*row["history"], row["query"]] if row["history"] else None
    return {
        "user_input": "\n".join(turns) if turns else row["query"],
        "reference": row["expected_answer"],
        "reference_context_ids": row["expected_doc_ids"],
    }


def _llama_index(row: dict[str, Any]) -> dict[str, Any]:
    """Field names of LlamaIndex' LabelledRagDataExample."""
    by = {"model_name": "ragbench", "type": "human"}
    return {
        "query": row["query"],
        "query_by": by,
        "reference_contexts": row["expected_doc_ids"],
        "reference_answer": row["expected_answer"] or "",
        "reference_answer_by": by if row["expected_answer"] else None,
    }


def _csv_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _cell(value) for name, value in {**row, "expected_doc_ids": expected(row)}.items()}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    return str(value)


def neutral(cell: str) -> str:
    """`cell` with an apostrophe in front where a spreadsheet would run it as a formula; import takes it off."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def to_csv(rows: Iterable[dict[str, Any]], columns: list[str]) -> str:
    """CSV text with a byte order mark (spreadsheets then read UTF-8) and no cell that runs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([neutral(str(row.get(name, ""))) for name in columns])
    return "\ufeff" + out.getvalue()


def _hugging_face(release: Release, to: Path) -> Path:
    """A folder with `data/test-*.parquet` and a card whose header names the split."""
    folder = to / release.id
    write_table(folder / "data" / "test-00000-of-00001.parquet", release.examples)
    manifest = release.manifest
    write_text(
        folder / "README.md",
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: data/test-*.parquet\n---\n"
        f"# {release.id}\n\n{manifest['examples']} questions from {len(manifest['window']['present'])} days of logs, "
        f"{manifest['labelled']} labelled. Personal data was removed before anything was stored.\n",
    )
    return folder


# Which files were written outside the store from a release: so that `ragbench forget` finds them again.
#
#     store/releases/exports.jsonl   {kind: release|queue, path, release, format}, a line for each
#
# Files that were copied on, committed or sent are beyond it; `forget` says which it changed.


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
