"""Rows of a Parquet file as plain dicts, within bounds. Which field means what belongs to `fields` and `convert`.

Text stays a dictionary until a row is taken out, so that a value which a million rows repeat stands in memory once;
a row's size is known before it is made. One bad value makes one bad row, whatever it makes Arrow or Python raise.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterator, Mapping
from typing import IO, Any

import msgspec
import numpy as np

from ragbench_dagster.inputs import reason_of
from ragbench_dagster.traffic.columns import type_name, values_of
from ragbench_dagster.traffic.lines import Damaged
from ragbench_dagster.traffic.model import Opaque
from ragbench_dagster.traffic.parquet_pages import Oversized, check_group, check_rows
from ragbench_dagster.traffic.tables import Reads, Row, twice

PARQUET_MAGIC = b"PAR1"
BATCH = 256  # rows in memory at a time
LONGEST_ROW = 16 << 20  # bytes of a row's values


def parquet_rows(stream: IO[bytes], wanted: Collection[str] | None, reads: Reads | None = None) -> Iterator[Row]:
    """Rows of a Parquet file, a few in memory at a time.

    Args:
        stream: an open file that can seek.
        wanted: top-level columns to take out of the file; None takes all.
        reads: whether a column of this name is one of ours or of the settings: only those make a row bad, and only
            their names are told. None: all of them, and none is told.

    Raises:
        Damaged: not Parquet, or broken inside; the rows before the damage were yielded.
    """
    line = 0
    try:
        file, columns, leaves, types = _opened(stream, wanted)
        check_rows(file.metadata, stream.seek(0, io.SEEK_END))
        doubled = twice(file.schema_arrow.names, reads) if reads else None
        if doubled is not None:
            yield from (Row(row, b"columns", fault=doubled) for row in range(1, file.metadata.num_rows + 1))
            return
        for group in range(file.metadata.num_row_groups):
            try:
                check_group(stream, file.metadata, group, leaves)
            except Oversized as fault:
                yield Row(line + 1, b"large", fault=f"a row group is too large: {fault}")
                line += file.metadata.row_group(group).num_rows
                continue
            for batch in file.iter_batches(BATCH, [group], columns, use_threads=False):
                yield from _rows(batch, line, types, reads)
                line += batch.num_rows
    except OSError as fault:
        if fault.errno is not None:
            raise  # the disk or the network failed, not the file
        raise Damaged("damaged Parquet (OSError)") from None
    except Oversized as fault:
        raise Damaged(f"damaged Parquet: {fault}") from None
    except Exception as fault:  # whatever Arrow says of hostile bytes
        raise Damaged(f"damaged Parquet ({type(fault).__name__})") from None


def _opened(
    stream: IO[bytes], wanted: Collection[str] | None
) -> tuple[Any, list[str] | None, list[int], Mapping[str, str]]:
    """(the file, its columns to read, the positions of their leaves, the types of all columns)."""
    import pyarrow.parquet as pq

    plain = pq.ParquetFile(stream)
    columns = None if wanted is None else [n for n in plain.schema_arrow.names if n in wanted]
    leaves, texts = [], []
    for at in range(len(plain.schema)):
        leaf = plain.schema.column(at)
        # A column's own name may hold dots: a leaf belongs to it by its first piece, or whole.
        if columns is None or any(leaf.path == n or leaf.path.startswith(f"{n}.") for n in columns):
            leaves.append(at)
            if leaf.physical_type == "BYTE_ARRAY":
                texts.append(leaf.path)
    types = {field.name: type_name(field.type) for field in plain.schema_arrow}
    return pq.ParquetFile(stream, read_dictionary=texts, pre_buffer=False), columns, leaves, types


def _rows(batch: Any, before: int, types: Mapping[str, str], reads: Reads | None) -> Iterator[Row]:
    """The batch's rows, made as many at a time as one row may take."""
    sizes = sum((row_sizes(column) for column in batch.columns), np.zeros(batch.num_rows, dtype=np.int64))
    at = 0
    while at < batch.num_rows:
        if sizes[at] > LONGEST_ROW:
            yield Row(before + at + 1, b"long", fault=f"longer than {LONGEST_ROW >> 20} MiB")
            at += 1
            continue
        more = int(np.searchsorted(np.cumsum(sizes[at:]), LONGEST_ROW, side="right"))
        yield from _made(batch.slice(at, max(1, more)), before + at, types, reads)
        at += max(1, more)


def _made(batch: Any, before: int, types: Mapping[str, str], reads: Reads | None) -> Iterator[Row]:
    names = batch.schema.names
    try:
        columns = [values_of(column) for column in batch.columns]
    except Exception:  # a time that Python has no word for, a text that is no UTF-8, ...
        if batch.num_rows > 1:
            for at in range(batch.num_rows):
                yield from _made(batch.slice(at, 1), before + at, types, reads)
            return
        columns = []
        for at, column in enumerate(batch.columns):
            value, fault = _one(column)
            if fault is not None and (reads is None or reads(names[at])):
                told = f"column {at + 1}" if reads is None else f"{names[at]} ({types[names[at]]})"
                yield Row(before + 1, b"value", fault=f"{told}: cannot be read: {fault}")
                return
            columns.append([value])
    for line, values in enumerate(zip(*columns, strict=True) if columns else [()] * batch.num_rows, before + 1):
        kept = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        try:
            blob = _encode(kept)
        except Exception as fault:
            yield Row(line, b"value", fault=f"cannot be read: {reason_of(fault)}")
            continue
        yield Row(line, hashlib.blake2b(blob, digest_size=16).digest(), kept, types=types)


def _one(column: Any) -> tuple[Any, str | None]:
    """(the value of a column of one row, why there is none)."""
    try:
        return values_of(column)[0], None
    except Exception as fault:
        return Opaque("a value that cannot be read"), reason_of(fault)


_encode = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


def row_sizes(array: Any) -> np.ndarray:
    """Bytes that each element of an Arrow array takes once it is made, without making it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if len(array) == 0:
        return np.zeros(0, dtype=np.int64)
    if pa.types.is_dictionary(kind):
        inner = row_sizes(array.dictionary)
        at = pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return np.append(inner, 0)[at]  # the last one stands for null
    if pa.types.is_struct(kind):
        return sum((row_sizes(a) for a in array.flatten()), np.zeros(len(array), dtype=np.int64))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _list_sizes(array)
    if isinstance(array, pa.ExtensionArray):
        return row_sizes(array.storage)
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind) or (
        pa.types.is_large_binary(kind)
    ):  # fmt: skip
        return pc.fill_null(pc.binary_length(array).cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    width = _width(kind)
    return np.full(len(array), array.nbytes // len(array) + 1 if width is None else width, dtype=np.int64)


def _width(kind: Any) -> int | None:
    """Bytes of a value of a type of fixed width, else None (a dictionary's width is that of its indices)."""
    try:
        return None if hasattr(kind, "index_type") else max(1, int(kind.bit_width) // 8)
    except ValueError:
        return None


def _list_sizes(array: Any) -> np.ndarray:
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    width = None if hasattr(array, "keys") else _width(array.type.value_type)
    if width is not None:
        return np.diff(offsets) * (width + 8)
    inner = row_sizes(array.keys) + row_sizes(array.items) if hasattr(array, "keys") else row_sizes(array.values)
    total = np.concatenate([[0], np.cumsum(inner + 8)])  # each element is an object of its own
    return total[offsets[1:]] - total[offsets[:-1]]
