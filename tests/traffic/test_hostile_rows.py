"""Whatever a decoder raises makes one bad row: the rows before and after it are requests."""

import io
import json
from contextlib import suppress
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragbench_dagster.settings import Traffic
from ragbench_dagster.traffic import parquet_pages
from ragbench_dagster.traffic.convert import to_request
from ragbench_dagster.traffic.lines import Damaged
from ragbench_dagster.traffic.parquet import LONGEST_ROW, parquet_rows, row_sizes
from ragbench_dagster.traffic.parse import Decoder
from ragbench_dagster.traffic.requests import BadLine, LogRequest
from ragbench_dagster.traffic.traces.span_records import SpanDecoder

GOOD = b'{"timestamp": "2026-11-20T10:00:00Z", "query": "is it open?"}'
DEEP = 100_000


def line(**more):
    return json.dumps({"timestamp": "2026-11-20T10:00:00Z", "query": "q", **more}).encode()


def nested(field, value):
    """A line whose `field` holds raw JSON."""
    return GOOD[:-1] + f', "{field}": {value}}}'.encode()


HOSTILE = {
    "3,000 brackets": b"[" * 3_000,
    "100,000 brackets in a field": nested("source_nodes", "[" * DEEP + "]" * DEEP),
    "100,000 objects in a history": nested("history", '{"a":' * DEEP + "1" + "}" * DEEP),
    "a time of 6,000 digits": nested("timestamp", "9" * 6_000),
    "a time of 6,000 digits as text": line(timestamp="9" * 6_000),
    "a time beyond the calendar": line(timestamp="9999-12-31T23:59:59-12:00"),
    "a time of 1e308": nested("timestamp", "1e308"),
    "a latency of 6,000 digits": nested("latency_ms", "9" * 6_000),
    "a latency of 1e999": nested("latency_ms", "1e999"),
    "a JSON string that nests": line(source_nodes="[" * DEEP),
    "a history that nests as text": line(history="[" * DEEP),
    "a number for a passage's text": line(source_nodes=[{"id": "a", "text": 5}]),
    "NaN": nested("latency_ms", "NaN"),
    "half a surrogate escape": b'{"timestamp": "2026-11-20T10:00:00Z", "query": "a\\ud8',
    "a NUL": b"\x00" * 40,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_is_one_bad_line_with_a_reason_that_quotes_nothing(name):
    found = Decoder(Traffic()).line(7, HOSTILE[name])
    assert isinstance(found, BadLine), found
    assert found.line == 7
    assert 0 < len(found.reason) < 160
    assert "99999" not in found.reason
    assert "[[[" not in found.reason


@pytest.mark.parametrize("value", ["9" * 400, "-" + "9" * 400, "1e400", '"1e400"', '"' + "9" * 5_000 + '"', "[1]"])
@pytest.mark.parametrize("field", ["latency_ms", "timestamp"])
def test_a_number_under_a_factor_may_be_of_any_size(field, value):
    traffic = Traffic.model_validate({"fields": {field: {"path": "t", "factor": 1000}}})
    found = Decoder(traffic).line(1, nested("t", value))
    assert isinstance(found, BadLine), found


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["langfuse", "openinference"])
def test_a_hostile_line_of_a_trace_is_bad_lines_too(form, name):
    """No exception leaves the door, whatever stands in the line."""
    for found in SpanDecoder(Traffic(format=form)).line(3, HOSTILE[name]):
        assert isinstance(found, BadLine), found


@pytest.mark.parametrize("attributes", [[{"key": "a", "value": {"kvlistValue": 5}}], "[" * DEEP, {"a": {"b": 1e300}}])
def test_strange_attributes_of_a_span_are_its_own_affair(attributes):
    span = {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": attributes, "traceId": "t"}, 7]}]}]}
    found = list(SpanDecoder(Traffic(format="openinference")).line(3, json.dumps(span).encode()))
    assert found
    assert all(isinstance(f, BadLine) for f in found)


def parquet(columns, **how):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **{"compression": "zstd", **how})
    return buffer


def rows(buffer, wanted=None):
    return list(parquet_rows(buffer, wanted))


TIMES = pa.array([0, 2**62, -(2**62)], pa.int64())
VALUES = {
    "microseconds beyond the calendar": TIMES.cast(pa.timestamp("us")),
    "milliseconds beyond the calendar": TIMES.cast(pa.timestamp("ms")),
    "days beyond the calendar": pa.array([0, 2**30, -(2**30)], pa.int32()).cast(pa.date32()),
    "durations beyond Python": pa.array([0, 2**62, -(2**62)], pa.int64()).cast(pa.duration("s")),
    "text that is no UTF-8": pa.Array.from_buffers(
        pa.string(), 3, pa.array([b"ok", b"caf\xff", b"\xc0"], pa.binary()).buffers()
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_one_bad_value_of_a_parquet_file_is_one_bad_row(name):
    found = rows(parquet({"q": ["a", "b", "c"], "value": VALUES[name]}))
    assert [r.line for r in found] == [1, 2, 3]
    assert found[0].values is not None
    assert found[0].values["q"] == "a"
    assert [r.values for r in found[1:]] == [None, None]
    assert found[1].fault.startswith("column 2: cannot be read: ")


def test_a_zone_that_nobody_knows_does_not_hide_the_moment():
    """Parquet keeps a time with a zone in UTC: the zone's name is for display only."""
    moment = pa.array([1_795_000_000_000_000], pa.int64()).cast(pa.timestamp("us", "Mars/Base"))
    found = rows(parquet({"timestamp": moment, "query": ["q"]}))
    assert isinstance(to_request(found[0].values, 1, b"d", ZoneInfo("UTC")), LogRequest)
    assert found[0].values["timestamp"].utcoffset().total_seconds() == 0


def test_a_value_that_every_row_repeats_stands_in_memory_once():
    """1,368 bytes of file, 256 rows of 8 MiB: a batch of them was 2.2 GB."""
    before = pa.total_allocated_bytes()
    buffer = parquet({"query": ["x" * (8 << 20)] * 64})
    most = 0
    for row in parquet_rows(buffer, None):
        most = max(most, pa.total_allocated_bytes() - before)
        assert len(row.values["query"]) == 8 << 20
    assert most < 100 << 20


def test_a_row_beyond_16_mib_is_bad_before_it_is_made():
    long = "x" * (LONGEST_ROW + 1)
    found = rows(parquet({"query": ["a", long, "b"], "n": [[1], [2], [3]]}))
    assert [r.fault for r in found] == [None, "longer than 16 MiB", None]


def test_the_size_of_nested_rows_counts_every_level():
    nodes = [[{"text": "abc", "score": 1.0}, {"text": None, "score": None}], None, []]
    assert row_sizes(pa.array(nodes))[0] >= 3 + 16
    assert list(row_sizes(pa.array(nodes).slice(1))) == [0, 0]
    texts = row_sizes(pa.array([["abcdef" * 100], [], ["a"] * 3], pa.list_(pa.string())))
    assert texts[0] >= 600
    assert texts[1] == 0
    repeated = pa.ListArray.from_arrays([0, 1, 3], pa.array(["x" * 1000, "y", "x" * 1000]).dictionary_encode())
    assert list(row_sizes(repeated) // 1000) == [1, 1]


def test_a_list_that_repeats_long_texts_is_sized_before_it_is_made():
    found = rows(parquet({"q": ["a", "b"], "texts": [["x" * 100_000] * 500, ["y"]]}))
    assert [r.fault for r in found] == ["longer than 16 MiB", None]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"q": ["a", "x" * (70 << 20)]}, "a page of 70 MiB"),
        ({"q": ["a", "b"], "n": pa.array([[None] * 13_000_000, [1]], pa.list_(pa.int64()))}, "nested values"),
    ],
)
def test_what_would_unpack_to_too_much_is_told_by_its_page_headers(columns, words):
    """The next row group is read."""
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, pa.table(columns).schema, compression="zstd") as writer:
        writer.write_table(pa.table(columns))
        writer.write_table(pa.table({name: pa.table(columns)[name].slice(1) for name in columns} | {"q": ["good"]}))
    before = pa.total_allocated_bytes()
    found = rows(buffer)
    assert words in found[0].fault
    assert found[-1].values["q"] == "good"
    assert pa.total_allocated_bytes() - before < 100 << 20


def test_a_footer_that_claims_more_rows_than_bytes_is_not_believed(monkeypatch):
    monkeypatch.setattr(parquet_pages, "MOST_ROWS_A_BYTE", 1)
    with pytest.raises(Damaged, match="claims 1,500,000 rows"):
        rows(parquet({"q": pa.nulls(1_500_000, pa.string())}))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_page_headers_of_every_kind_are_understood(version, compression):
    """Nothing that is fine is refused: every page is seen, and no byte between them is left over."""
    columns = {"q": [f"question {n}" for n in range(5000)], "n": [[n, None] for n in range(5000)]}
    buffer = parquet(columns, compression=compression, data_page_version=version, data_page_size=4096)
    file = pq.ParquetFile(buffer)
    for at, values in ((0, 5000), (1, 10_000)):
        chunk = file.metadata.row_group(0).column(at)
        pages = list(parquet_pages._pages(buffer, chunk))
        assert len(pages) > 2
        assert sum(p.values for p in pages) >= values
    assert len(rows(buffer)) == 5000


@pytest.mark.parametrize("at", range(0, 400, 7))
def test_a_flipped_byte_never_raises_anything_but_damage(at):
    data = bytearray(parquet({"timestamp": ["t"] * 20, "query": [f"q{n}" for n in range(20)]}).getvalue())
    data[4 + at % (len(data) - 8)] ^= 0xFF
    with suppress(Damaged):  # anything else fails
        assert len(rows(io.BytesIO(bytes(data)))) <= 21
