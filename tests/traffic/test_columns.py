"""Every Arrow type that Snowflake, BigQuery, Spark, Impala, pandas and polars write: read, or refused by name."""

import datetime as dt
import io
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.settings import Traffic
from ragbench_dagster.traffic.convert import NumberText
from ragbench_dagster.traffic.csv_files import Row
from ragbench_dagster.traffic.parquet import parquet_rows, type_name, values_of
from ragbench_dagster.traffic.parse import Decoder
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Node

MOMENT = dt.datetime(2026, 11, 20, 9, 0, 0, 123456, dt.UTC)
NAIVE = MOMENT.replace(tzinfo=None)
SECONDS = 1_795_165_200
MICROS = SECONDS * 1_000_000
NODE = pa.struct([("node_id", pa.string()), ("score", pa.decimal128(6, 4)), ("text", pa.binary())])
RAW = {"node_id": "n", "score": Decimal("0.9000"), "text": b"p"}
BARE = pa.struct([("list", pa.list_(pa.struct([("element", pa.string())])))])
BAG = pa.struct([("bag", pa.list_(pa.struct([("array_element", NODE)])))])


def table(**columns: Any) -> bytes:
    base = {"timestamp": pa.array([SECONDS]), "query": pa.array(["q"])}
    out = io.BytesIO()
    pq.write_table(pa.table({**base, **columns}), out)
    return out.getvalue()


def read(data: bytes, settings: Traffic | None = None) -> Any:
    from ragbench_dagster.traffic.fields import columns_read

    settings = settings or Traffic()
    decoder, reads = Decoder(settings), columns_read(settings)
    (row,) = parquet_rows(io.BytesIO(data), None, reads)
    return decoder.row(row)


# who writes it, field, Arrow type, value -> what the request holds
READ = [
    ("snowflake NUMBER", "request_id", pa.decimal128(38, 0), Decimal(10**37 + 1), str(10**37 + 1)),
    ("bigquery NUMERIC", "request_id", pa.decimal128(38, 9), Decimal("123.000000000"), "123"),
    ("bigquery BIGNUMERIC", "user_id", pa.decimal256(76, 38), Decimal(10**30 + 7), str(10**30 + 7)),
    ("bigquery NUMERIC", "conversation_id", pa.decimal128(38, 9), Decimal("12.500000000"), "12.5"),
    ("snowflake NUMBER", "category", pa.decimal128(10, 2), Decimal("0.00"), "0"),
    ("snowflake NUMBER", "latency_ms", pa.decimal128(10, 2), Decimal("12.50"), 12.5),
    ("spark DECIMAL", "latency_ms", pa.decimal128(9, 0), Decimal(900), 900.0),
    ("snowflake epoch", "timestamp", pa.decimal128(20, 0), Decimal(SECONDS), MICROS),
    ("snowflake epoch", "timestamp", pa.decimal128(20, 6), Decimal(f"{SECONDS}.250000"), MICROS + 250_000),
    ("snowflake epoch ms", "timestamp", pa.decimal128(38, 0), Decimal(SECONDS * 1000), MICROS),
    ("snowflake epoch ns", "timestamp", pa.decimal128(38, 0), Decimal(MICROS * 1000 + 1), MICROS),
    ("impala STRING", "query", pa.binary(), "für Gäste".encode(), "für Gäste"),
    ("impala STRING", "response", pa.large_binary(), "答え".encode(), "答え"),
    ("impala STRING", "category", pa.binary(), b"plans", "plans"),
    ("impala STRING", "request_id", pa.binary(), b"00017", "00017"),
    ("impala CHAR", "model", pa.binary(4), b"m-v1", "m-v1"),
    ("impala STRING", "timestamp", pa.binary(), b"2026-11-20 09:00:00 UTC", MICROS),
    ("impala STRING", "latency_ms", pa.binary(), b"12.5", 12.5),
    ("spark STRING of JSON", "source_nodes", pa.binary(), b'["a", "b"]', (Node("a"), Node("b"))),
    ("polars", "query", pa.large_string(), "q2", "q2"),
    ("polars", "query", pa.string_view(), "q2", "q2"),
    ("polars", "query", pa.binary_view(), b"q2", "q2"),
    ("pandas category", "category", pa.dictionary(pa.int32(), pa.string()), "c", "c"),
    ("pandas category", "query", pa.dictionary(pa.int8(), pa.large_string()), "q2", "q2"),
    ("impala dictionary", "response", pa.dictionary(pa.int32(), pa.binary()), b"r", "r"),
    ("pandas nullable", "user_id", pa.float64(), 1000.0, "1000"),
    ("parquet UUID", "request_id", pa.uuid(), UUID(int=5).bytes, str(UUID(int=5))),
    ("bigquery INT64", "request_id", pa.int64(), 9007199254740993, "9007199254740993"),
    ("arrow", "user_id", pa.uint64(), 2**64 - 1, str(2**64 - 1)),
    ("arrow", "conversation_id", pa.int8(), 7, "7"),
    ("arrow", "latency_ms", pa.float16(), 2.5, 2.5),
    ("arrow", "latency_ms", pa.float32(), 2.5, 2.5),
    ("arrow", "latency_ms", pa.uint16(), 3, 3.0),
    ("arrow duration", "latency_ms", pa.duration("s"), dt.timedelta(seconds=2), 2000.0),
    ("arrow duration", "latency_ms", pa.duration("us"), dt.timedelta(microseconds=1500), 1.5),
    ("arrow duration", "latency_ms", pa.duration("ns"), dt.timedelta(microseconds=1500), 1.5),
    ("spark TIMESTAMP", "timestamp", pa.timestamp("us", "UTC"), MOMENT, MICROS + 123_456),
    ("snowflake TIMESTAMP_TZ", "timestamp", pa.timestamp("us", "+05:30"), MOMENT, MICROS + 123_456),
    ("bigquery TIMESTAMP", "timestamp", pa.timestamp("ns", "UTC"), MOMENT, MICROS + 123_456),
    ("parquet", "timestamp", pa.timestamp("ms", "Europe/Berlin"), MOMENT.replace(microsecond=0), MICROS),
    ("spark INT96", "timestamp", pa.timestamp("ns"), NAIVE, MICROS + 123_456),
    ("bigquery DATETIME", "timestamp", pa.timestamp("us"), NAIVE, MICROS + 123_456),
    ("arrow", "timestamp", pa.timestamp("s"), NAIVE.replace(microsecond=0), MICROS),
    ("bigquery DATE", "timestamp", pa.date32(), dt.date(2026, 11, 20), MICROS - 9 * 3_600_000_000),
    ("pandas", "timestamp", pa.date64(), dt.date(2026, 11, 20), MICROS - 9 * 3_600_000_000),
    ("spark ARRAY<STRING>", "source_nodes", pa.list_(pa.string()), ["a", None], (Node("a"), Node(None))),
    ("impala ARRAY<STRING>", "source_nodes", pa.list_(pa.binary()), [b"a"], (Node("a"),)),
    ("snowflake ARRAY", "source_nodes", pa.list_(pa.decimal128(38, 0)), [Decimal(7)], (Node("7"),)),
    ("polars", "source_nodes", pa.large_list(NODE), [RAW], (Node("n", 0.9, "p"),)),
    ("arrow", "source_nodes", pa.list_(NODE, 1), [RAW], (Node("n", 0.9, "p"),)),
    ("spark ARRAY<MAP>", "source_nodes", pa.list_(pa.map_(pa.string(), pa.string())),
     [[("id", "n"), ("score", "0.5"), ("text", "p")]], (Node("n", 0.5, "p"),)),
    ("bigquery REPEATED", "source_nodes", BARE, {"list": [{"element": "a"}, {"element": "b"}]}, (Node("a"), Node("b"))),
    ("hive ARRAY", "source_nodes", BAG, {"bag": [{"array_element": RAW}]}, (Node("n", 0.9, "p"),)),
    ("llamaindex", "source_nodes", pa.list_(pa.struct([("node", NODE), ("score", pa.float32())])),
     [{"node": RAW, "score": 0.5}], (Node("n", 0.5, "p"),)),
    ("empty", "source_nodes", pa.list_(pa.null()), [], ()),
    ("spark ARRAY", "history", pa.list_(pa.binary()), [b"before"], ("before",)),
    ("chat", "history", pa.list_(pa.struct([("role", pa.string()), ("content", pa.binary())])),
     [{"role": "user", "content": b"before"}], ("user: before",)),
    ("null column", "response", pa.null(), None, None),
]  # fmt: skip
ATTRIBUTES = {"timestamp": "time_us", "source_nodes": "nodes"}


@pytest.mark.parametrize(("writer", "field", "kind", "value", "expected"), READ, ids=lambda v: str(v)[:40])
def test_a_warehouse_type_with_a_plain_meaning_is_read(writer, field, kind, value, expected) -> None:
    if isinstance(kind, pa.BaseExtensionType):
        column: Any = pa.ExtensionArray.from_storage(kind, pa.array([value], kind.storage_type))
    else:
        column = pa.array([value], kind)
    found = read(table(**{field: column}))
    assert isinstance(found, LogRequest), found
    assert getattr(found, ATTRIBUTES.get(field, field)) == expected


# field, Arrow type, value, and how its type is named
REFUSED = [
    ("query", pa.int64(), 7, "int64"),
    ("query", pa.binary(), b"\xff\xfe", "binary"),
    ("query", pa.list_(pa.string()), ["q"], "list<string>"),
    ("query", pa.decimal128(5, 2), Decimal("1.50"), "decimal128(5, 2)"),
    ("query", pa.date32(), dt.date(2026, 1, 1), "date32[day]"),
    ("response", pa.struct([("jane@example.com", pa.string())]), {"jane@example.com": "x"}, "struct"),
    ("response", pa.map_(pa.string(), pa.int32()), [("a", 1)], "map<string, int32>"),
    ("response", pa.bool_(), True, "bool"),
    ("response", pa.timestamp("us", "UTC"), MOMENT, "timestamp[us, tz=UTC]"),
    ("request_id", pa.bool_(), False, "bool"),
    ("request_id", pa.binary(16), b"\xff" * 16, "fixed_size_binary[16]"),
    ("request_id", pa.list_(pa.int64()), [1], "list<int64>"),
    ("category", pa.time64("us"), dt.time(9, 0), "time64[us]"),
    ("category", pa.timestamp("ns"), NAIVE, "timestamp[ns]"),
    ("user_id", pa.date64(), dt.date(2026, 1, 1), "date32[day]"),
    ("model", pa.duration("s"), dt.timedelta(1), "duration[s]"),
    ("timestamp", pa.time32("ms"), dt.time(9, 0), "time32[ms]"),
    ("timestamp", pa.time64("ns"), dt.time(9, 0), "time64[ns]"),
    ("timestamp", pa.bool_(), True, "bool"),
    ("timestamp", pa.binary(), b"\xff", "binary"),
    ("timestamp", pa.list_(pa.int64()), [SECONDS], "list<int64>"),
    ("timestamp", pa.duration("s"), dt.timedelta(seconds=SECONDS), "duration[s]"),
    ("timestamp", pa.timestamp("s"), 10**15, "timestamp[ms]"),  # beyond the year 9999
    ("latency_ms", pa.time32("ms"), dt.time(0, 0, 1), "time32[ms]"),
    ("latency_ms", pa.bool_(), True, "bool"),
    ("latency_ms", pa.binary(), b"\xff", "binary"),
    ("latency_ms", pa.list_(pa.float64()), [1.0], "list<double>"),
    ("source_nodes", pa.map_(pa.string(), pa.float64()), [("a", 0.5)], "map<string, double>"),
    ("source_nodes", pa.int32(), 3, "int32"),
    ("source_nodes", pa.list_(pa.bool_()), [True], "list<bool>"),
    ("source_nodes", pa.list_(pa.list_(pa.string())), [["a"]], "list<list<string>>"),
    ("source_nodes", pa.list_(pa.map_(pa.string(), pa.string())), [[("id", "a"), ("id", "b")]],
     "list<map<string, string>>"),
    ("source_nodes", pa.struct([("list", pa.list_(pa.string()))]), {"list": ["a"]}, "struct"),
    ("history", pa.list_(pa.int64()), [1], "list<int64>"),
    ("history", pa.list_(pa.binary()), [b"\xff"], "list<binary>"),
    ("history", pa.list_(pa.struct([("content", pa.binary())])), [{"content": b"\xff"}], "list<struct>"),
    ("history", pa.map_(pa.string(), pa.string()), [("a", "b")], "map<string, string>"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "kind", "value", "named"), REFUSED, ids=lambda v: str(v)[:40])
def test_any_other_type_is_a_reason_that_names_column_and_type(field, kind, value, named) -> None:
    found = read(table(**{field: pa.array([value], kind)}))
    assert isinstance(found, BadLine), found
    assert found.reason.startswith(field)
    assert found.reason.endswith(f" (the column {field} is {named})") or f"{field} ({named})" in found.reason
    assert "jane" not in found.reason


def test_the_column_that_a_mapping_names_is_told() -> None:
    fields = {"query": "body.q", "latency_ms": {"path": "took", "factor": 1000}, "category": "meta[0]"}
    settings = Traffic.model_validate({"fields": fields})
    body = pa.array([{"q": 7}], pa.struct([("q", pa.int64())]))
    assert read(table(body=body), settings).reason == "query: text is wanted, not a number (the column body is struct)"
    dotted = table(**{"body.q": pa.array([b"\xff"], pa.binary())})
    assert read(dotted, settings).reason.endswith("(the column body.q is binary)")


def test_a_map_column_is_looked_into_by_a_path() -> None:
    settings = Traffic.model_validate({"fields": {"query": "payload.question", "user_id": "payload.7"}})
    kind = pa.map_(pa.binary(), pa.binary())
    found = read(table(payload=pa.array([[(b"question", b"Wo?"), (b"7", b"u")]], kind)), settings)
    assert (found.query, found.user_id) == ("Wo?", "u")
    found = read(table(payload=pa.array([[(7, "u"), (8, "v")]], pa.map_(pa.int64(), pa.string()))), settings)
    assert found.reason == "query: missing"


def test_a_value_that_nobody_reads_makes_no_row_bad() -> None:
    odd = {
        "blob": pa.array([b"\xff"], pa.binary()),
        "when": pa.array([10**15], pa.timestamp("s")),
        "pairs": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
        "span": pa.array([10**15], pa.duration("s")),
    }
    assert isinstance(read(table(**odd)), LogRequest)


def test_a_file_without_any_column_of_ours_loses_no_row_in_silence(workspace) -> None:
    from ragbench_dagster.traffic.files import Source
    from ragbench_dagster.traffic.logs import Reader

    out = io.BytesIO()
    pq.write_table(pa.table({"other": [1, 2, 3]}), out)
    ws = workspace({"2026-11-20.parquet": out.getvalue()})
    source = Source(ws)
    found = list(Reader(source, ws.settings.traffic).read(source.files(str)[0]))
    assert [(e.line, e.reason) for e in found] == [(n, "timestamp: missing") for n in (1, 2, 3)]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**20), max_value=10**20))
def test_a_decimal_keeps_its_digits(value: Decimal) -> None:
    (found,) = values_of(pa.array([value], pa.decimal128(38, 9)))
    text = found.text if isinstance(found, NumberText) else str(found)
    assert Decimal(text) == value
    assert "E" not in text
    assert not ("." in text and text.endswith(("0", ".")))


@given(st.binary(max_size=12))
def test_bytes_are_text_exactly_where_they_are_utf8(raw: bytes) -> None:
    (found,) = values_of(pa.array([raw], pa.binary()))
    try:
        assert found == raw.decode("utf-8")
    except UnicodeDecodeError:
        assert not isinstance(found, str | bytes)


def test_names_of_types_hold_no_name_of_a_field() -> None:
    kind = pa.list_(pa.struct([("secret", pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.string())))]))
    assert type_name(kind) == "list<struct>"
    assert type_name(pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.string()))) == "map<string, dictionary<string>>"


def test_rows_without_types_get_no_ending() -> None:
    found = Decoder(Traffic()).row(Row(1, b"d", {"timestamp": SECONDS, "query": 7}))
    assert isinstance(found, BadLine)
    assert found.reason == "query: text is wanted, not a number"


NESTED = pa.list_(pa.struct([("a", pa.string()), ("b", pa.list_(pa.int64())), ("c", pa.struct([("d", pa.string())]))]))
TEXTS = st.none() | st.sampled_from(["x", "y", "zz"])
ITEMS = st.none() | st.fixed_dictionaries(
    {"a": TEXTS, "b": st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), "c": st.none() | st.fixed_dictionaries({"d": TEXTS})}
)  # fmt: skip


@given(
    st.lists(st.none() | st.lists(ITEMS, max_size=4), max_size=8), st.integers(0, 8), st.integers(0, 8), st.booleans()
)
def test_nested_columns_are_what_arrow_makes_of_them(rows, first, size, parquet) -> None:
    """Taken apart or not, whole or a slice, with nulls at every level."""
    array = pa.array(rows, NESTED)
    if parquet:
        buffer = io.BytesIO()
        pq.write_table(pa.table({"n": array}), buffer)
        held = pq.ParquetFile(buffer, read_dictionary=["n.list.element.a", "n.list.element.c.d"]).read()["n"]
        array = held.combine_chunks() if held.num_chunks else array
        array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    part = array.slice(first, size)
    assert values_of(part) == part.to_pylist() == rows[first : first + size]


@given(
    st.lists(
        st.none()
        | st.lists(
            st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(-(10**30), 10**30)),
            max_size=3,
            unique_by=lambda p: p[0],
        ),
        max_size=6,
    ),
    st.integers(0, 5),
)
def test_maps_are_objects_in_any_slice(rows, first) -> None:
    found = values_of(pa.array(rows, pa.map_(pa.string(), pa.decimal128(38, 0))).slice(first))
    assert found == [None if row is None else dict(row) for row in rows[first:]]
