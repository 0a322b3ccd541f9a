"""Rows of a Parquet file as plain dicts, within bounds. Which field means what belongs to `fields` and `convert`.

Text stays a dictionary until a row is taken out, so that a value which a million rows repeat stands in memory once;
a row's size is known before it is made. One bad value makes one bad row, whatever it makes Arrow or Python raise.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterator
from typing import IO, Any

import msgspec
import numpy as np

from ragbench_dagster.inputs import reason_of
from ragbench_dagster.traffic.lines import Damaged
from ragbench_dagster.traffic.parquet_pages import Oversized, check_group, check_rows
from ragbench_dagster.traffic.tables import Row

PARQUET_MAGIC = b"PAR1"
BATCH = 256  # rows in memory at a time
LONGEST_ROW = 16 << 20  # bytes of a row's values


def parquet_rows(stream: IO[bytes], wanted: Collection[str] | None) -> Iterator[Row]:
    """Rows of a Parquet file, a few in memory at a time.

    Args:
        stream: an open file that can seek.
        wanted: top-level columns to read; None reads all.

    Raises:
        Damaged: not Parquet, or broken inside; the rows before the damage were yielded.
    """
    line = 0
    try:
        file, columns, leaves = _opened(stream, wanted)
        check_rows(file.metadata, stream.seek(0, io.SEEK_END))
        for group in range(file.metadata.num_row_groups):
            try:
                check_group(stream, file.metadata, group, leaves)
            except Oversized as fault:
                yield Row(line + 1, b"large", fault=f"a row group is too large: {fault}")
                line += file.metadata.row_group(group).num_rows
                continue
            for batch in file.iter_batches(BATCH, [group], columns, use_threads=False):
                yield from _rows(batch, line)
                line += batch.num_rows
    except OSError as fault:
        if fault.errno is not None:
            raise  # the disk or the network failed, not the file
        raise Damaged("damaged Parquet (OSError)") from None
    except Oversized as fault:
        raise Damaged(f"damaged Parquet: {fault}") from None
    except Exception as fault:  # whatever Arrow says of hostile bytes
        raise Damaged(f"damaged Parquet ({type(fault).__name__})") from None


def _opened(stream: IO[bytes], wanted: Collection[str] | None) -> tuple[Any, list[str] | None, list[int]]:
    """(the file, its columns to read, the positions of their leaves)."""
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
    return pq.ParquetFile(stream, read_dictionary=texts, pre_buffer=False), columns, leaves


def _rows(batch: Any, before: int) -> Iterator[Row]:
    """The batch's rows, made as many at a time as one row may take."""
    sizes = sum((row_sizes(column) for column in batch.columns), np.zeros(batch.num_rows, dtype=np.int64))
    batch = _microseconds(batch)
    at = 0
    while at < batch.num_rows:
        if sizes[at] > LONGEST_ROW:
            yield Row(before + at + 1, b"long", fault=f"longer than {LONGEST_ROW >> 20} MiB")
            at += 1
            continue
        more = int(np.searchsorted(np.cumsum(sizes[at:]), LONGEST_ROW, side="right"))
        yield from _made(batch.slice(at, max(1, more)), before + at)
        at += max(1, more)


def _made(batch: Any, before: int) -> Iterator[Row]:
    try:
        rows = batch.to_pylist()
    except Exception as fault:  # a time that Python has no word for, a text that is no UTF-8, ...
        if batch.num_rows > 1:
            for at in range(batch.num_rows):
                yield from _made(batch.slice(at, 1), before + at)
            return
        yield Row(before + 1, b"value", fault=f"{_culprit(batch)}: cannot be read: {reason_of(fault)}")
        return
    for line, values in enumerate(rows, before + 1):
        kept = {k: v for k, v in values.items() if v is not None}
        try:
            blob = _encode(kept)
        except Exception as fault:
            yield Row(line, b"value", fault=f"cannot be read: {reason_of(fault)}")
            continue
        yield Row(line, hashlib.blake2b(blob, digest_size=16).digest(), kept)


_encode = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


def _culprit(batch: Any) -> str:
    """The position of the column that cannot be made; its name may be anybody's."""
    for at, column in enumerate(batch.columns):
        try:
            column.to_pylist()
        except Exception:
            return f"column {at + 1}"
    return "row"


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


def _microseconds(batch: Any) -> Any:
    """Times in nanoseconds as microseconds: Arrow would hand them on as pandas objects.

    A zone is dropped for UTC, in which Parquet keeps the moment: it may be one that nobody knows.
    """
    import pyarrow as pa

    for at, column in enumerate(batch.schema):
        if not pa.types.is_timestamp(column.type):
            continue
        zone = "UTC" if column.type.tz else None
        unit = "us" if column.type.unit == "ns" else column.type.unit
        if (unit, zone) != (column.type.unit, column.type.tz):
            batch = batch.set_column(at, column.name, batch.column(at).cast(pa.timestamp(unit, zone), safe=False))
    return batch
