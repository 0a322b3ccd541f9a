"""CSV and Parquet: the same requests as from JSON Lines, ids as text always."""

import csv
import gzip
import io
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from ragbench_dagster.traffic.requests import BadLine, LogRequest, Node

HEADER = "timestamp,query,request_id,latency_ms,source_nodes,history,response\n"


def requests(entries):
    return [e for e in entries if isinstance(e, LogRequest)]


def bad(entries):
    return [(e.line, e.reason) for e in entries if isinstance(e, BadLine)]


def test_ids_of_the_case_are_the_same_requests_in_a_csv(shared, workspace, read):
    source = (shared / "cases/cases/log-ids-are-text/ws/logs/2026-11-20.jsonl").read_bytes()
    rows = [json.loads(x, parse_int=str) for x in source.split(b"\n") if x]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, ["timestamp", "request_id", "query", "response", "source_nodes"])
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "source_nodes": json.dumps(row["source_nodes"])})
    found = read(workspace({"2026-11-20.csv": out.getvalue().encode("utf-8-sig")}))
    assert [r.request_id for r in requests(found)] == [str(row["request_id"]) for row in rows]
    assert bad(found) == []
    as_jsonl = read(workspace({"2026-11-20.csv": b"", "2026-11-20.jsonl": source}))
    assert [(r.query, r.nodes, r.response) for r in requests(found)] == [
        (r.query, r.nodes, r.response) for r in requests(as_jsonl)
    ]


def test_csv_cells_quotes_and_line_numbers(workspace, read):
    body = (
        HEADER + '2026-11-20T09:00:00Z,"two\nlines, and ""quotes""",007,812.5,"[""a"", {""node_id"": ""b""}]",,\r\n'
        "\r\n"
        "1795168800,plain,1e3,,,,\n"
        "1795168800,too,many,cells,here,a,b,c,d\n"
        "1795168800,broken \xff,x,,,,\n"
        "1795168800,nan,x,nan,,,\n"
        "1795168800,list,x,,a|b,,\n"
    ).encode("latin-1")
    found = read(workspace({"a.csv": body}))
    first, second = requests(found)
    assert (first.query, first.request_id, first.latency_ms) == ('two\nlines, and "quotes"', "007", 812.5)
    assert first.nodes == (Node("a"), Node("b"))
    assert (second.line, second.request_id, second.nodes, second.response) == (5, "1e3", None, None)
    assert bad(found) == [
        (6, "9 cells under 7 headings"),
        (7, "not valid UTF-8"),
        (8, "latency_ms: not a finite number"),
        (9, "source_nodes: not a JSON array"),
    ]


def test_csv_dialects_of_spreadsheets(workspace, read):
    for text in ("timestamp;query\n1795168800;a, b\n", "sep=;\r\ntimestamp;query\r\n1795168800;a, b\r\n",
                 "\ufefftimestamp\tquery\n1795168800\ta, b\n"):  # fmt: skip
        found = read(workspace({"a.csv": text.encode()}))
        assert [r.query for r in requests(found)] == ["a, b"]


def test_unclosed_quote_is_one_bad_row_and_not_a_silent_loss(workspace, read):
    found = read(workspace({"a.csv": b'timestamp,query\n1795168800,good\n1795168800,"open\n1795168800,next\n'}))
    assert [r.query for r in requests(found)] == ["good"]
    assert bad(found) == [(3, "not CSV: quotes do not match")]


def test_empty_tables(workspace, read):
    assert read(workspace({"a.csv": b"", "b.csv": HEADER.encode(), "c.parquet": b"", "d.jsonl": b""})) == []


def test_cell_of_100_kilobytes_and_nul(workspace, read):
    query = "x" * 200_000 + "\0"
    found = read(workspace({"a.csv": f'timestamp,query\n1795168800,"{query}"\n'.encode()}))
    assert requests(found)[0].query == query


def test_gzipped_csv_that_ends_early(workspace, read):
    whole = gzip.compress(b"timestamp,query\n" + b"".join(b"1795168800,q%d\n" % n for n in range(5000)))
    found = read(workspace({"a.csv.gz": whole[: len(whole) // 2]}))
    assert [r.query for r in requests(found)[:3]] == ["q0", "q1", "q2"]
    assert len(requests(found)) > 1000
    assert bad(found)[-1][1] == "truncated gzip"
    assert len(bad(found)) <= 2  # the cut row and the damage


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=3)
    return out.getvalue()


def test_parquet_types_become_the_same_fields(workspace, read):
    moment = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
    table = pa.table(
        {
            "timestamp": pa.array([moment] * 4, pa.timestamp("ns", "UTC")),
            "query": ["a", "b", "c", None],
            "request_id": pa.array([9007199254740993, None, 7, 8], pa.int64()),
            "user_id": pa.array([1000.0, None, 2.5, 1.0]),  # an integer column with gaps, as pandas writes it
            "latency_ms": [1.0, float("nan"), float("inf"), 2.0],
            "source_nodes": [[{"node_id": "n", "score": 0.5, "text": None}], None, [], []],
            "embedding": [[0.1] * 8] * 4,
        }
    )
    found = read(workspace({"a.parquet": parquet(table)}))
    one, two = requests(found)
    assert (one.request_id, one.user_id, one.latency_ms) == ("9007199254740993", "1000", 1.0)
    assert one.nodes == (Node("n", 0.5),)
    assert one.time_us == int(moment.timestamp()) * 1_000_000
    assert (two.latency_ms, two.nodes) == (None, None)
    assert two.request_id.startswith("line:2:")
    assert bad(found) == [(3, "latency_ms: not a finite number"), (4, "query: missing")]


def test_parquet_without_a_zone_and_with_mapped_columns(workspace, read):
    table = pa.table({"at": pa.array([datetime(2026, 11, 20, 5, 0)], pa.timestamp("us")), "q": ["a"]})
    settings = "traffic: {timezone: America/New_York, fields: {timestamp: at, query: q}}"
    (found,) = read(workspace({"a.parquet": parquet(table)}, settings))
    assert (found.time_us, found.naive) == (1795168800 * 1_000_000, True)


def test_damaged_parquet_is_one_bad_line(workspace, read):
    whole = parquet(pa.table({"timestamp": [1795168800] * 10, "query": ["a"] * 10}))
    found = read(workspace({"a.parquet": whole[:-40]}))
    assert [line for line, _ in bad(found)] == [1]
    assert bad(found)[0][1].startswith("damaged Parquet")


def test_parquet_batches_keep_row_numbers(workspace, read):
    n = 1000
    table = pa.table({"timestamp": [1795168800] * n, "query": [f"q{i}" for i in range(n)]})
    found = read(workspace({"a.parquet": parquet(table)}))
    assert [(r.line, r.query) for r in requests(found)] == [(i + 1, f"q{i}") for i in range(n)]
