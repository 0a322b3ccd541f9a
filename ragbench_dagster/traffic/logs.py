"""Reading one log file, whatever its kind: an iterator of requests (or spans) and bad lines.

Kinds are told by content where content shows it (gzip, Parquet), else by the name (`.csv`, `.json`). Damage
inside a file is one bad line; what came before it is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import IO

import msgspec
from msgspec import Raw

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Traffic
from ragbench_dagster.traffic.csv_files import Row, csv_rows
from ragbench_dagster.traffic.fields import columns_read, parse_path
from ragbench_dagster.traffic.files import LogFile, Source
from ragbench_dagster.traffic.lines import BOM, Damaged, numbered_lines, text_chunks
from ragbench_dagster.traffic.log_format import log_format
from ragbench_dagster.traffic.parquet import PARQUET_MAGIC, parquet_rows
from ragbench_dagster.traffic.parse import COLUMNS, Decoder
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Span
from ragbench_dagster.traffic.traces.span_records import SpanDecoder

Entry = LogRequest | Span | BadLine


class Reader:
    """Reads the log files of one workspace; keeps nothing between files."""

    def __init__(self, source: Source, traffic: Traffic) -> None:
        self._source = source
        self._requests = Decoder(traffic)
        self._spans = SpanDecoder(traffic) if log_format(traffic.format).traces else None
        self._columns = _wanted_columns(traffic)
        self._reads = columns_read(traffic, log_format(traffic.format).knows)
        self.left_out = 0  # lines of the last file that traffic.where kept out

    def read(self, file: LogFile, only: Collection[int] | None = None) -> Iterator[Entry]:
        """The entries of `file` in its order.

        Args:
            file: what to read.
            only: line numbers to decode; None decodes all.

        Raises:
            UserError: the file cannot be read, or is a Git LFS pointer.
        """
        self.left_out = 0
        last = 0
        with self._source.open(file) as stream:
            try:
                for number, entries in self._numbered(file, stream, only):
                    last = number
                    yield from entries
            except _Damage as fault:
                yield BadLine(fault.line or last + 1, fault.reason, b"damage")
            except OSError as fault:
                raise UserError(f"{file.name}: cannot be read ({fault.strerror or 'I/O error'}); check it") from fault

    def _numbered(
        self, file: LogFile, stream: IO[bytes], only: Collection[int] | None
    ) -> Iterator[tuple[int, list[Entry]]]:
        head = stream.read(len(PARQUET_MAGIC))
        stream.seek(0)
        name = file.path.lower().removesuffix(".gz")
        if not head:
            return
        if head == PARQUET_MAGIC or name.endswith(".parquet"):
            yield from self._table(parquet_rows(stream, self._columns, self._reads), only)
        elif name.endswith(".csv"):
            yield from self._table(csv_rows(stream, self._reads), only)
        elif name.endswith(".json"):
            yield from self._document(stream, only)
        else:
            yield from self._lines(numbered_lines(text_chunks(stream)), only)

    def _lines(
        self, lines: Iterator[tuple[int, bytes | None]], only: Collection[int] | None
    ) -> Iterator[tuple[int, list[Entry]]]:
        held: tuple[int, list[Entry]] | None = None
        try:
            for number, line in lines:
                if held is not None:
                    yield held
                held = None
                if line is None:
                    held = number, [BadLine(number, "longer than 64 MiB", b"long")]
                elif only is not None and number not in only:
                    held = number, []
                elif line and not line.isspace():
                    held = number, self._decode(number, line)
        except Damaged as fault:
            # A line that the damage cut is no bad line of its own.
            cut = held is not None and held[0] == fault.cut and any(isinstance(e, BadLine) for e in held[1])
            if held is not None and not cut:
                yield held
            raise _Damage(str(fault), fault.cut if cut and fault.cut else 0) from None
        if held is not None:
            yield held

    def _document(self, stream: IO[bytes], only: Collection[int] | None) -> Iterator[tuple[int, list[Entry]]]:
        """A JSON document: an array's elements, or one object; else its lines are tried as JSON Lines."""
        chunks: list[bytes] = []
        damage: Damaged | None = None
        try:
            chunks.extend(text_chunks(stream))
        except Damaged as fault:
            damage = fault
        data = b"".join(chunks).removeprefix(BOM)
        try:
            found: list[Raw] = msgspec.json.decode(data, type=list[Raw])
            lines: Iterator[tuple[int, bytes | None]] = enumerate(map(bytes, found), 1)
        except msgspec.DecodeError:
            one = data.lstrip()[:1] == b"{" and _is_one(data)
            lines = iter([(1, data)]) if one else numbered_lines(iter([data]))
        if damage is not None:
            lines = _then(lines, damage)
        yield from self._lines(lines, only)

    def _table(self, rows: Iterator[Row], only: Collection[int] | None) -> Iterator[tuple[int, list[Entry]]]:
        try:
            for row in rows:
                yield row.line, ([] if only is not None and row.line not in only else self._from_row(row))
        except Damaged as fault:
            raise _Damage(str(fault)) from None

    def _decode(self, number: int, line: bytes) -> list[Entry]:
        if self._spans is not None:
            return list(self._spans.line(number, line))
        return self._kept(self._requests.line(number, line))

    def _from_row(self, row: Row) -> list[Entry]:
        if self._spans is not None:
            return list(self._spans.row(row))
        return self._kept(self._requests.row(row))

    def _kept(self, entry: LogRequest | BadLine | None) -> list[Entry]:
        if entry is None:
            self.left_out += 1
            return []
        return [entry]


class _Damage(Exception):
    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def _then(lines: Iterator[tuple[int, bytes | None]], damage: Damaged) -> Iterator[tuple[int, bytes | None]]:
    yield from lines
    raise damage


def _is_one(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


def _wanted_columns(traffic: Traffic) -> set[str] | None:
    """Top-level columns of a Parquet file that are needed; None for all."""
    paths = [m if isinstance(m, str) else m.path for m in traffic.fields.values()]
    mapped = [parse_path(p) for p in [*paths, *traffic.where] if p]
    if traffic.format != "ragbench" or any(len(p) > 1 for p in mapped):
        return None  # a column's own name may hold dots
    return {*COLUMNS, *(str(p[0]) for p in mapped if p)}
