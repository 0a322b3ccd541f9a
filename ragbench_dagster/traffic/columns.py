"""Columns of a Parquet file as plain values: what the types of warehouses and engines mean.

Snowflake writes whole numbers as DECIMAL(38,0), BigQuery NUMERIC as DECIMAL(38,9), Impala and old versions of Spark
text as BINARY without a mark, Spark maps as lists of pairs and times as INT96. All have one plain meaning and are read:

    decimal                        a number: whole ones as integers, others with their digits
    binary                         text, where it is UTF-8
    dictionary, large types        as the values they hold
    map                            an object, its keys as text
    list.element, bag.array_element  a list (a group that an engine left without its mark)
    duration                       a duration, whose unit is known
    date, time, timestamp          a date, a time of day, a time; nanoseconds are cut to microseconds

What has none becomes `Opaque`, with its reason: only a field that needs the value is then wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from ragbench_dagster.traffic.convert import NumberText
from ragbench_dagster.traffic.model import Opaque

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
