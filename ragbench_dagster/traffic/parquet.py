"""Rows of a Parquet file as plain dicts, within bounds. Which field means what belongs to `fields` and `convert`.

Text stays a dictionary until a row is taken out, so that a value which a million rows repeat stands in memory once;
a row's size is known before it is made. One bad value makes one bad row, whatever it makes Arrow or Python raise.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import IO, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from ragbench_dagster.io.inputs import reason_of
from ragbench_dagster.traffic.convert import NumberText
from ragbench_dagster.traffic.csv_files import Reads, Row, twice
from ragbench_dagster.traffic.lines import Damaged
from ragbench_dagster.traffic.parquet_pages import Oversized, check_group, check_rows
from ragbench_dagster.traffic.requests import Opaque

# Columns of a Parquet file as plain values: what the types of warehouses and engines mean.
#
# Snowflake writes whole numbers as DECIMAL(38,0), BigQuery NUMERIC as DECIMAL(38,9), Impala and old versions of Spark
# text as BINARY without a mark, Spark maps as lists of pairs and times as INT96. All have one plain meaning and are read:
#
#     decimal                        a number: whole ones as integers, others with their digits
#     binary                         text, where it is UTF-8
#     dictionary, large types        as the values they hold
#     map                            an object, its keys as text
#     list.element, bag.array_element  a list (a group that an engine left without its mark)
#     duration                       a duration, whose unit is known
#     date, time, timestamp          a date, a time of day, a time; nanoseconds are cut to microseconds
#
# What has none becomes `Opaque`, with its reason: only a field that needs the value is then wrong.

Convert = Callable[[Any], Any]
NO_TEXT = Opaque("binary that is no UTF-8 text")
TWICE = Opaque("a map that names a key twice")
# One-column groups that stand for a list where the LIST mark is missing (BigQuery, Hive, Impala, Spark 1).
_GROUPS = {"list": ("element", "item"), "bag": ("array_element", "array"), "array": ("array", "element")}


def values_of(column: pa.Array) -> list[Any]:
    """The values of a column: text, numbers, times, lists and objects; None for null.

    Nested columns are taken apart, which costs half of Arrow's own way, and a value of a dictionary is made once.

    Raises:
        Exception: whatever Arrow or Python says of a value that cannot be made, such as a time outside the calendar.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return column.to_pylist() if kind.extension_name == "arrow.uuid" else values_of(column.storage)
    if kinds.is_dictionary(kind):
        return _of_dictionary(column)
    if kinds.is_struct(kind):
        return _objects(column)
    if kinds.is_map(kind):
        pairs = list(zip(*(_inner(column, part) for part in (column.keys, column.items)), strict=True))
        return [None if cut is None else _mapping(pairs[cut]) for cut in _cuts(column)]
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        items = _inner(column, column.values)
        return [None if cut is None else items[cut] for cut in _cuts(column)]
    if _is_list(kind):  # of fixed size, or a view: rare, and made one by one
        return [None if value is None else values_of(value) for value in (scalar.values for scalar in column)]
    convert = _convert(kind)
    found = _python_types(column).to_pylist()
    return found if convert is None else [None if v is None else convert(v) for v in found]


def _of_dictionary(column: pa.Array) -> list[Any]:
    used = pc.unique(column.indices.drop_null())
    made = dict(zip(used.to_pylist(), values_of(column.dictionary.take(used)), strict=True))
    return [None if at is None else made[at] for at in column.indices.to_pylist()]


def _objects(column: pa.Array) -> list[Any]:
    names = [field.name for field in column.type]
    if len(set(names)) < len(names):
        raise ValueError("a struct names a field twice")
    parts = [values_of(part) for part in column.flatten()]
    rows = zip(*parts, strict=True) if parts else iter([()] * len(column))
    group = _group(column.type)
    if group is None:
        found: list[Any] = [dict(zip(names, row, strict=True)) for row in rows]
    else:
        found = [None if row[0] is None else [None if i is None else i[group[1]] for i in row[0]] for row in rows]
    if column.null_count:
        return [value if there else None for value, there in zip(found, column.is_valid().to_pylist(), strict=True)]
    return found


def _inner(column: pa.Array, part: pa.Array) -> list[Any]:
    """The values of a list's or map's elements, those of this part of the column."""
    first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return values_of(part.slice(first, last - first))


def _cuts(column: pa.Array) -> list[slice | None]:
    """Where each list stands in `_inner`; None for null."""
    offsets = column.offsets.to_pylist()
    first = offsets[0]
    cuts: list[slice | None] = [slice(a - first, b - first) for a, b in pairwise(offsets)]
    if column.null_count:
        return [cut if there else None for cut, there in zip(cuts, column.is_valid().to_pylist(), strict=True)]
    return cuts


def _mapping(pairs: list[tuple[Any, Any]]) -> Any:
    found = {str(name): value for name, value in pairs}
    return found if len(found) == len(pairs) else TWICE


def _python_types(column: pa.Array) -> pa.Array:
    """A column in a type that Arrow hands on as plain Python values.

    Nanoseconds are cut: Arrow would make pandas objects of them. A zone is dropped for UTC, in which Parquet keeps
    the moment: it may be one that nobody knows.
    """
    kind = column.type
    if kinds.is_float16(kind):
        return column.cast(pa.float32())
    if kinds.is_timestamp(kind):
        wanted = pa.timestamp("us" if kind.unit == "ns" else kind.unit, "UTC" if kind.tz else None)
        return column if wanted == kind else column.cast(wanted, safe=False)
    return column


def type_name(kind: pa.DataType) -> str:
    """An Arrow type for a reason: without the names inside a struct, which may be anybody's data."""
    if kinds.is_dictionary(kind):
        return f"dictionary<{type_name(kind.value_type)}>"
    if kinds.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if kinds.is_struct(kind):
        return "struct"
    return f"list<{type_name(kind.value_type)}>" if _is_list(kind) else str(kind)


def _is_list(kind: pa.DataType) -> bool:
    return any(
        check(kind)
        for check in (
            kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view, kinds.is_large_list_view,
        )
    )  # fmt: skip


def _convert(kind: pa.DataType) -> Convert | None:
    """What makes a plain value of Arrow's Python value; None where that is one."""
    if kinds.is_decimal(kind):
        return _number
    is_binary = (kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary, kinds.is_binary_view)
    return _text if any(check(kind) for check in is_binary) else None


def _number(value: Decimal) -> int | NumberText | Opaque:
    whole = value.to_integral_value()
    return int(whole) if whole == value else NumberText(format(value, "f").rstrip("0"))


def _text(value: bytes) -> str | Opaque:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return NO_TEXT


def _group(kind: pa.StructType) -> tuple[str, str] | None:
    """(outer, inner) name where a struct is nothing but a list whose mark is missing."""
    if kind.num_fields != 1 or kind[0].name not in _GROUPS or not _is_list(kind[0].type):
        return None
    element = kind[0].type.value_type
    if not kinds.is_struct(element) or element.num_fields != 1 or element[0].name not in _GROUPS[kind[0].name]:
        return None
    return kind[0].name, element[0].name


# Rows of a Parquet file as plain dicts, within bounds. Which field means what belongs to `fields` and `convert`.

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
