"""Reading the small input files people edit by hand: JSON Lines or CSV, as spreadsheets leave them.

Byte order marks, CRLF, semicolons and tabs are understood; numbers stay the text they were typed as.
What the rows mean belongs to `labels.py` and `corpus.py`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.inputs import Undecodable, decoded, read_regular

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"


# Columns that are read: two of one name would be one of the two, and nobody could say which.
_HEADINGS = {"query", "expected_doc_ids", "expected_answer", "category", "level", "label_level", "history",
             "synthetic", "example_id", "doc_id", "text"}  # fmt: skip


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a JSON Lines or CSV file as (row number, fields); empty lines are passed over.

    The row number is the 1-based line of a JSON Lines file and the record of a CSV file, its header being 1.
    JSON numbers come as the text that stands in the file ("012" and "12" stay two ids).

    Raises:
        UserError: the file is missing, a Git LFS pointer, or not text; or a row is not an object.
    """
    data = read_bytes(path)
    text = _decode(data, path)
    if text.lstrip()[:1] in ("{", "["):
        yield from _json_rows(text, path)
    elif text.strip():
        yield from _csv_rows(text, path)


def read_bytes(path: Path) -> bytes:
    """The bytes of an input file.

    Raises:
        UserError: missing, unreadable or a Git LFS pointer.
    """
    try:
        data = read_regular(path)
    except FileNotFoundError as fault:
        raise UserError(f"{path.name}: no such file in {path.parent}") from fault
    except OSError as fault:
        raise UserError(f"{path.name}: cannot be read ({fault.strerror}); check it") from fault
    if data.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(LFS_POINTER):
        raise UserError(f"{path.name}: this is a Git LFS pointer, run git lfs pull")
    return data


def _decode(data: bytes, path: Path) -> str:
    # Spreadsheets save "Unicode text" as UTF-16 with a byte order mark.
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as fault:
        row = data.count(b"\n", 0, fault.start) + 1
        raise UserError(f"{path.name}: row {row}: not UTF-8 text; save the file as UTF-8") from fault


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _json_rows(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    # Only LF ends a line: U+2028 and friends are ordinary characters inside a JSON string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = decoded(json.loads, line, parse_int=str, parse_float=str, parse_constant=_no_constant)
        except Undecodable as fault:
            raise UserError(f"{path.name}: row {number}: not valid JSON; correct or remove the line") from fault
        if not isinstance(row, dict):
            raise UserError(f"{path.name}: row {number}: must be a JSON object with keys and values")
        yield number, row


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    header = text.split("\n", 1)[0]
    if header.lower().startswith("sep=") and "\n" in text:  # a hint that spreadsheets write and read
        text = text.split("\n", 1)[1]
        header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    csv.field_size_limit(16 * 1024 * 1024)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(reader)]
        twice = sorted(name for name in _HEADINGS if names.count(name) > 1)
        if twice:
            raise UserError(f"{path.name}: row 1: two columns are called {twice[0]}; rename one")
        for number, cells in enumerate(reader, 2):
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > len(names) and any(cell.strip() for cell in cells[len(names) :]):
                raise UserError(
                    f"{path.name}: row {number}: {len(cells)} cells under {len(names)} headings; "
                    "quote cells that hold the separator"
                )
            yield number, {name: cell for name, cell in zip(names, cells, strict=False) if name}
    except csv.Error as fault:
        raise UserError(f"{path.name}: row {reader.line_num}: not valid CSV ({fault})") from fault
