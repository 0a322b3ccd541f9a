"""The door for what comes from outside: which files are opened, and what a decoder may raise.

Only regular files are opened, and without blocking: behind a name (or a link) may stand a pipe that nobody writes to,
or a device that never ends. A decoder (JSON, YAML, Parquet, a date) may raise anything on hostile bytes: a value
error, a stack that is too deep, a number that is too large, no memory. `decoded` makes one fault of all of them.
What bytes mean, and what becomes of a bad row, belongs to the readers.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from ragbench_dagster.errors import UserError

T = TypeVar("T")


class Undecodable(ValueError):
    """Bytes that a decoder refuses; the message is a short reason without any of the text."""


def open_regular(path: str | Path) -> IO[bytes]:
    """The file at `path`, open for reading.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe, a socket or a device (`strerror` says so).
    """
    # O_NONBLOCK: opening a pipe would wait for a writer. It changes nothing for regular files.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "a pipe, socket or device, not a file", str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | Path, limit: int | None = None) -> bytes:
    """The bytes of a regular file.

    Args:
        path: the file.
        limit: most bytes that are read; None: all.

    Raises:
        OSError: as `open_regular`, or the file is longer than `limit`.
    """
    with open_regular(path) as file:
        if limit is None:
            return file.read()
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"longer than {limit >> 20} MiB", str(path))
    return data


def read_text(path: Path, limit: int | None = None) -> str:
    """The text of a regular UTF-8 file, its byte order mark dropped.

    Raises:
        UserError: it cannot be read or is not UTF-8; the line names the file.
    """
    try:
        return read_regular(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise UserError(f"{path.name}: not UTF-8 text; save it as UTF-8") from fault
    except OSError as fault:
        raise UserError(f"{path.name}: cannot be read ({fault.strerror}); check it") from fault


def decoded(decode: Callable[..., T], *given: Any, **more: Any) -> T:
    """`decode(*given, **more)`.

    Raises:
        Undecodable: whatever the decoder raised; an interrupt passes.
    """
    try:
        return decode(*given, **more)
    except Exception as fault:
        raise Undecodable(reason_of(fault)) from fault


def reason_of(fault: Exception) -> str:
    """Why a decoder gave up, in a few words that quote nothing."""
    if isinstance(fault, RecursionError):
        return "nested too deeply"
    if isinstance(fault, MemoryError):
        return "too large"
    if isinstance(fault, OverflowError):
        return "a number is too large"
    return type(fault).__name__


# Reading the small input files people edit by hand: JSON Lines or CSV, as spreadsheets leave them.
#
# Byte order marks, CRLF, semicolons and tabs are understood; numbers stay the text they were typed as.
# What the rows mean belongs to `labels.py` and `labels.py`.

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
