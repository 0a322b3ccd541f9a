"""Two columns of one name: the same rule for every row of the file, and never a mixture of the two."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.settings import Traffic
from ragbench_dagster.traffic.csv_files import csv_rows
from ragbench_dagster.traffic.fields import columns_read
from ragbench_dagster.traffic.parquet import parquet_rows
from ragbench_dagster.traffic.parse import Decoder
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Span
from ragbench_dagster.traffic.traces.span_records import SpanDecoder

HEAD = ["timestamp", "query", "request_id"]
CELLS = {"timestamp": "2026-11-20T09:00:00Z", "query": "q", "latency_ms": "1.5", "source_nodes": '["n"]'}
FIELDS = ["timestamp", "query", "request_id", "response", "source_nodes", "latency_ms", "category", "user_id", "model",
          "conversation_id", "history"]  # fmt: skip


def as_csv(names, rows) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue().encode()


def as_parquet(names, rows) -> bytes:
    out = io.BytesIO()
    columns = [pa.array([row[at] or None for row in rows], pa.string()) for at in range(len(names))]
    pq.write_table(pa.Table.from_arrays(columns, names), out)
    return out.getvalue()


KINDS = {"csv": as_csv, "parquet": as_parquet}


def read(kind, names, rows, fields=None, where=None):
    settings = Traffic.model_validate({"fields": fields or {}, "where": where or {}})
    decoder, reads = Decoder(settings), columns_read(settings)
    data = io.BytesIO(KINDS[kind](names, rows))
    found = csv_rows(data, reads) if kind == "csv" else parquet_rows(data, None, reads)
    return [decoder.row(row) for row in found]


def rows_for(names, filled):
    """One row for each pattern of filled cells in the columns beyond the head."""
    made = []
    for number, pattern in enumerate(filled):
        head = [CELLS["timestamp"], f"q{number}", f"r{number}"]
        extra = [CELLS.get(name, f"{name} {at}") for at, name in enumerate(names[3:])]
        made.append(head + [cell if full else "" for cell, full in zip(extra, pattern, strict=True)])
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_stands_twice_makes_every_row_bad_with_one_reason(kind, field) -> None:
    names = [*HEAD, field] if field in HEAD else [*HEAD, field, field]
    filled = [(True,) * (len(names) - 3), (False,) * (len(names) - 3), (True,) + (False,) * (len(names) - 4)]
    found = read(kind, names, rows_for(names, filled))
    assert [type(entry) for entry in found] == [BadLine] * 3
    assert {entry.reason for entry in found} == {f"{field}: two columns of this name; rename one"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("names", "fields", "where", "reason"),
    [
        # nobody reads it
        (["note", "note"], {}, {}, None),
        (["", ""], {}, {}, None),
        (["response", "Response"], {}, {}, None),
        (["answer", "answer"], {}, {}, None),
        # mapped away: our own name is not read
        (["response", "response", "answer"], {"response": "answer"}, {}, None),
        (["response", "response"], {"response": {"const": "x"}}, {}, None),
        # read by a mapping or a condition
        (["answer", "answer"], {"response": "answer"}, {}, "answer"),
        (["body", "body"], {"response": "body.answer"}, {}, "body"),
        (["body.answer", "body.answer"], {"response": "body.answer"}, {}, "body.answer"),
        (["list", "list"], {"response": "list[0]"}, {}, "list"),
        (["kind", "kind"], {}, {"kind": "chat"}, "kind"),
        (["kind", "kind", "model", "model"], {}, {"kind": "chat"}, "kind, model"),
        (["bodyguard", "bodyguard"], {"response": "body.answer"}, {}, None),
    ],
)
def test_only_columns_that_are_read_count(kind, names, fields, where, reason) -> None:
    names = [*HEAD, *names]
    found = read(kind, names, rows_for(names, [(True,) * (len(names) - 3)] * 2), fields, where)
    reasons = {entry.reason for entry in found if isinstance(entry, BadLine)}
    assert reasons == ({f"{reason}: two columns of this name; rename one"} if reason else set())


@pytest.mark.parametrize("text", ["response ,response", '"response",response', "response,response,response"])
def test_headings_are_compared_as_they_are_read(text) -> None:
    settings = Traffic()
    cells = ",".join("abc"[: text.count(",") + 1])
    data = io.BytesIO(f"timestamp,query,{text}\n1795168800,q,{cells}\n".encode())
    (row,) = csv_rows(data, columns_read(settings))
    assert row.fault == "response: two columns of this name; rename one"


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.sampled_from(["response", "category", "note", "model", "other"]), max_size=5),
    st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=6),
)
def test_rows_of_a_file_are_never_read_by_two_rules(kind, extra, patterns) -> None:
    names = [*HEAD, *extra]
    rows = rows_for(names, [pattern[: len(extra)] for pattern in patterns])
    found = read(kind, names, rows)
    assert len(found) == len(rows)
    doubled = any(extra.count(name) > 1 for name in ("response", "category", "model"))
    assert {type(entry) for entry in found} == {BadLine if doubled else LogRequest}
    if not doubled and "response" in extra:
        at = names.index("response")
        assert [entry.response or "" for entry in found] == [row[at] for row in rows]


@pytest.mark.parametrize(
    ("form", "name", "bad"),
    [
        ("openinference", "attributes.input.value", True),
        ("openinference", "context.trace_id", True),
        ("openinference", "notes of jane", False),
        ("langfuse", "input", True),
        ("langfuse", "id", True),
        ("langfuse", "bookmarked", False),
    ],
)
def test_traces_in_a_table_follow_the_same_rule(form, name, bad) -> None:
    settings = Traffic(format=form)
    decoder = SpanDecoder(settings)
    base = {"context.trace_id": "t", "context.span_id": "s", "start_time": CELLS["timestamp"],
            "attributes.input.value": "q"} if form == "openinference" else {
            "id": "s", "trace_id": "t", "start_time": CELLS["timestamp"], "input": json.dumps("q")}  # fmt: skip
    names, cells = [*base, name], [*base.values(), "again"]
    if name not in base:
        names, cells = [*names, name], [*cells, "and again"]
    (row,) = csv_rows(io.BytesIO(as_csv(names, [cells])), columns_read(settings, decoder.knows))
    (entry,) = decoder.row(row)
    assert isinstance(entry, BadLine if bad else Span)
    assert not bad or entry.reason == f"{name}: two columns of this name; rename one"
