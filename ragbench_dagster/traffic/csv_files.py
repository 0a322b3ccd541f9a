"""Rows of CSV files as plain dicts; their cells stay text. Parquet belongs to `parquet`, fields to `convert`."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import IO, Any

import msgspec

from ragbench_dagster.traffic.lines import Damaged, numbered_lines, text_chunks

LONGEST_CELL = 16 << 20  # characters; an unclosed quote cannot swallow more than this


class Row(msgspec.Struct):
    """One row: its values, or why it has none."""

    line: int  # CSV: the line its record starts on; Parquet: the row, 1-based
    digest: bytes
    values: dict[str, Any] | None = None
    fault: str | None = None
    types: Mapping[str, str] | None = None  # Parquet: the type of each column, for reasons


Reads = Callable[[str], bool]  # whether a column of this name is read at all


def twice(names: Collection[str], reads: Reads) -> str | None:
    """Why no row of a table can be read: two columns that are read have one name. None where none have.

    Which of the two is meant is not for us to guess, and the last that is not empty would mix them row by row.
    """
    found = [name for name, count in Counter(names).items() if count > 1 and name and reads(name)]
    return f"{', '.join(sorted(found))}: two columns of this name; rename one" if found else None


def csv_rows(stream: IO[bytes], reads: Reads) -> Iterator[Row]:
    """Rows of a CSV file (comma, semicolon or tab, told by its header); empty cells are left out.

    Args:
        stream: the file.
        reads: which columns are read.

    Raises:
        Damaged: broken gzip; the rows before the damage were yielded.
    """
    csv.field_size_limit(min(LONGEST_CELL, sys.maxsize))
    feed = _Feed(stream)
    header = feed.header()
    if header is None:
        return
    delimiter = max(",;\t", key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter, strict=True))]
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    fault = twice(names, reads)
    while True:
        feed.mark()
        try:
            cells = next(reader, None)
        except csv.Error as broken:
            yield Row(feed.first, feed.digest(), fault=f"not CSV: {_plain(broken)}")
            continue
        if cells is None:
            break
        if not any(cells):
            continue
        yield Row(feed.first, feed.digest(), fault=fault) if fault else _row(feed, names, cells)
    if feed.damage:
        raise feed.damage


def _row(feed: _Feed, names: list[str], cells: list[str]) -> Row:
    line, digest = feed.first, feed.digest()
    if len(cells) != len(names):
        return Row(line, digest, fault=f"{len(cells)} cells under {len(names)} headings")
    if not feed.valid:
        return Row(line, digest, fault="not valid UTF-8")
    return Row(line, digest, {name: cell for name, cell in zip(names, cells, strict=True) if name and cell})


def _plain(fault: csv.Error) -> str:
    # "',' expected after '"'" and the like name punctuation only, but a reader need not learn that by luck.
    return "a cell is too long" if "field larger" in str(fault) else "quotes do not match"


class _Feed:
    """Lines for the csv module that remembers where a record starts, its bytes and whether they are UTF-8."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = numbered_lines(text_chunks(stream))
        self._hash = hashlib.blake2b(digest_size=16)
        self._last = 0
        self.first = 1
        self.valid = True
        self.damage: Damaged | None = None

    def header(self) -> str | None:
        """The first line with anything in it; a spreadsheet's `sep=;` hint is passed over."""
        for line in self:
            if line.strip() and not line.lower().startswith("sep="):
                return line
        return None

    def mark(self) -> None:
        """The next line starts a record."""
        self.first, self.valid = self._last + 1, True
        self._hash = hashlib.blake2b(digest_size=16)

    def digest(self) -> bytes:
        return self._hash.digest()

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        try:
            self._last, line = next(self._lines)
        except Damaged as fault:
            self.damage = fault
            raise StopIteration from None
        if line is None:
            self.valid = False
            line = b""
        self._hash.update(line + b"\n")
        try:
            return line.decode("utf-8") + "\n"
        except UnicodeDecodeError:
            self.valid = False
            return line.decode("utf-8", "replace") + "\n"
