"""Rows of CSV files as plain dicts; their cells stay text. Parquet belongs to `columnar`, fields to `convert`."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Iterator
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


def csv_rows(stream: IO[bytes]) -> Iterator[Row]:
    """Rows of a CSV file (comma, semicolon or tab, told by its header); empty cells are left out.

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
    while True:
        feed.mark()
        try:
            cells = next(reader, None)
        except csv.Error as fault:
            yield Row(feed.first, feed.digest(), fault=f"not CSV: {_plain(fault)}")
            continue
        if cells is None:
            break
        if not any(cells):
            continue
        yield _row(feed, names, cells)
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
