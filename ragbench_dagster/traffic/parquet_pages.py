"""What a Parquet file would take in memory, told by its page headers before anything is unpacked.

A few hundred bytes can unpack to gigabytes: a zstd page of zeros, a dictionary value that every row repeats, a
list of a billion nulls. The footer may lie, the page headers cannot: their sizes are what a reader allocates. Format:
parquet.thrift (PageHeader) in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

LONGEST_PAGE = 32 << 20  # bytes, unpacked; writers make pages of one MiB, and larger ones for a large value
MOST_VALUES = 12 << 20  # of the repeated columns of a row group together
MOST_ROWS_A_BYTE = 100  # of a file: more rows than that are a claim, not data
_HEADER = 4096  # bytes read at first; a header with statistics may be longer
_LONGEST_HEADER = 1 << 20


class Oversized(Exception):
    """A row group that would not fit; the message says why, in a few words."""


class Page(NamedTuple):
    unpacked: int  # bytes
    packed: int  # bytes
    values: int  # nulls among them


def check_rows(metadata: Any, size: int) -> None:
    """Raises Oversized where a file of `size` bytes claims more rows than it can hold."""
    if metadata.num_rows > max(1_000_000, MOST_ROWS_A_BYTE * size):
        raise Oversized(f"claims {metadata.num_rows:,} rows in {size:,} bytes")


def check_group(stream: IO[bytes], metadata: Any, group: int, columns: list[int]) -> None:
    """Look at every page header of a row group's columns.

    Args:
        stream: the file.
        metadata: pyarrow's FileMetaData.
        group: position of the row group.
        columns: positions of the leaf columns that will be read.

    Raises:
        Oversized: a page, or the values of the nested columns, would not fit.
        ValueError, IndexError: no page headers stand there: the file is damaged.
    """
    nested = 0
    rows = metadata.row_group(group).num_rows
    for at in columns:
        flat = metadata.schema.column(at).max_repetition_level == 0
        values = 0
        for page in _pages(stream, metadata.row_group(group).column(at)):
            if page.unpacked > LONGEST_PAGE:
                raise Oversized(f"a page of {page.unpacked >> 20:,} MiB, {LONGEST_PAGE >> 20} MiB are read")
            values += page.values
            nested += 0 if flat else page.values
            if nested > MOST_VALUES or (flat and values > 2 * rows + MOST_VALUES):
                raise Oversized(f"more than {MOST_VALUES:,} nested values; write smaller row groups")


def _pages(stream: IO[bytes], chunk: Any) -> Iterator[Page]:
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
        start = chunk.dictionary_page_offset
    at, end = start, start + chunk.total_compressed_size
    while at < end:
        size = _HEADER
        while True:
            stream.seek(at)
            data = stream.read(size)
            try:
                page, length = _page(data)
                break
            except IndexError:
                if len(data) < size or size >= _LONGEST_HEADER:
                    raise
                size *= 16
        if page.packed < 0 or page.unpacked < 0 or page.values < 0:
            raise ValueError("a negative size")
        yield page
        at += length + page.packed


def _page(data: bytes) -> tuple[Page, int]:
    """(the page, bytes that its header takes)."""
    fields, length = _struct(data, 0)
    # 5: DataPageHeader, 7: DictionaryPageHeader, 8: DataPageHeaderV2; num_values is the first field of each.
    inner: Any = fields.get(5) or fields.get(8) or {}
    return Page(fields.get(2, 0), fields.get(3, 0), inner.get(1, 0)), length


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """(integers and structs by field number, where the struct ends) of a compact-protocol struct."""
    if depth > 8:
        raise ValueError("no page header")
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, kind, depth)


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true, false
        return kind == 1, at
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        size, at = _varint(data, at)
        return None, at + size
    if kind in (9, 10):
        head = data[at]
        count, at = (head >> 4, at + 1) if head >> 4 < 15 else _varint(data, at + 1)
        for _ in range(min(count, len(data))):
            _, at = _value(data, at, head & 15 if head & 15 > 2 else 3, depth + 1)
        return None, at
    if kind == 12:
        return _struct(data, at, depth + 1)
    raise ValueError("no page header")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("no page header")


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint."""
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at
