"""What `ragbench logs check` and the doctor say of the first lines, before a night."""

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragbench_dagster.commands.doctor import fields
from ragbench_dagster.traffic import preview as module
from ragbench_dagster.traffic.preview import preview

BASE = {"timestamp": "2026-11-20T09:00:00Z", "query": "Is it open?"}
OFF = "scrub: {ner: off}\n"


def settings(traffic: str = "{}") -> str:
    return f"{OFF}traffic: {traffic}"


def only(found):
    (shape,) = found.shapes
    return shape


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("question", "query"), ("prompt", "query"), ("input", "query"), ("message", "query"), ("User-Query", "query"),
        ("time", "timestamp"), ("ts", "timestamp"), ("created_at", "timestamp"), ("@timestamp", "timestamp"),
        ("answer", "response"), ("output", "response"), ("completion", "response"), ("Reply", "response"),
        ("contexts", "source_nodes"), ("documents", "source_nodes"), ("sources", "source_nodes"),
        ("duration_ms", "latency_ms"), ("took", "latency_ms"), ("session_id", "conversation_id"),
        ("thread_id", "conversation_id"), ("chat_history", "history"), ("id", "request_id"), ("uuid", "request_id"),
        ("userid", "user_id"), ("model_name", "model"), ("topic", "category"), ("intent", "category"),
    ],
)  # fmt: skip
def test_a_field_under_another_name_is_told_with_the_line_that_would_read_it(workspace, theirs, ours) -> None:
    row = {**BASE, theirs: "x"}
    row.pop(ours, None)
    shape = only(preview(workspace({"a.jsonl": [row] * 3}, settings())))
    assert shape.unmapped == [theirs]
    assert shape.hints == [f"traffic.fields: {{{ours}: {theirs}}} would read {theirs} as {ours}"]
    shape = only(preview(workspace({"a.jsonl": [row] * 3}, settings(f"{{fields: {{{ours}: '{theirs}'}}}}"))))
    assert (shape.unmapped, shape.hints) == ([], [])


@pytest.mark.parametrize(
    ("row", "traffic", "read", "unmapped"),
    [
        (BASE, "{}", {"query": ("query", 2), "response": ("response", 0)}, []),
        ({**BASE, "response": "a", "source_nodes": ["n"]}, "{}", {"response": ("response", 2), "source_nodes": ("source_nodes", 2)}, []),
        ({**BASE, "request_id": 7}, "{}", {"request_id": ("request_id", 2)}, []),
        ({**BASE, "body": {"q": "Q?", "lang": "en"}}, "{fields: {query: body.q}}", {"query": ("body.q", 2)}, ["body.lang", "query"]),
        ({**BASE, "took_s": 2}, "{fields: {latency_ms: {path: took_s, factor: 1000}}}", {"latency_ms": ("took_s x 1000", 2)}, []),
        (BASE, "{fields: {category: {const: chat}}}", {"category": ("the same value for every line", 2)}, []),
        ({**BASE, "kind": "chat"}, "{where: {kind: chat}}", {"query": ("query", 2)}, []),
        ({**BASE, "nothing": None}, "{}", {"query": ("query", 2)}, ["nothing"]),
    ],
)  # fmt: skip
def test_what_is_read_under_which_name(workspace, row, traffic, read, unmapped) -> None:
    shape = only(preview(workspace({"a.jsonl": [row, row]}, settings(traffic))))
    assert {ours: shape.read[ours] for ours in read} == read
    assert shape.unmapped == unmapped
    assert (shape.lines, shape.requests, shape.bad) == (2, 2, {})


def test_tables_tell_the_columns_that_nobody_reads(workspace) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({**{k: [v] for k, v in BASE.items()}, "embedding": [[0.1]], "note": ["x"]}), out)
    shape = only(preview(workspace({"a.parquet": out.getvalue()}, settings())))
    assert (shape.requests, shape.unmapped) == (1, ["embedding", "note"])
    text = b"timestamp,query,note\n2026-11-20T09:00:00Z,Is it open?,x\n"
    shape = preview(workspace({"a.parquet": b"", "b.csv": text}, settings())).shapes[1]
    assert (shape.requests, shape.unmapped) == (1, ["note"])


def test_two_columns_of_one_name_are_said_once(workspace) -> None:
    ws = workspace({"a.csv": b"timestamp,query,response,response\n" + b"1795168800,q,a,b\n" * 9}, settings())
    assert only(preview(ws)).bad == {"response: two columns of this name; rename one": 9}
    said = [line for _, _, line in fields(ws) if "two columns" in line and "none of" not in line]
    assert said == ["a.csv: response: two columns of this name; rename one"]


def test_a_table_without_a_heading_shows_no_ones_address(workspace) -> None:
    text = b"2026-11-20T09:00:00Z,write to jane.doe@example.com please\n" * 2
    shape = only(preview(workspace({"a.csv": text}, settings())))
    assert shape.requests == 0
    assert shape.unmapped == ["2026-11-20T09:00:00Z", "write to <EMAIL_ADDRESS> please"]


def test_three_requests_are_shown_scrubbed_and_no_more(workspace) -> None:
    rows = [
        {**BASE, "query": f"mail jane.doe{n}@example.com?", "response": "Ask joe@example.com.", "source_nodes": ["n"]}
        for n in range(5)
    ]
    found = preview(workspace({"a.jsonl": rows}, settings()))
    assert len(found.requests) == 3
    assert {(r["query"], r["response"]) for r in found.requests} == {
        ("mail <EMAIL_ADDRESS_1>?", "Ask <EMAIL_ADDRESS_2>.")
    }
    assert found.requests[0]["source_nodes"] == ["n"]
    assert "jane" not in json.dumps(found.requests)


def test_only_the_first_lines_of_each_file_are_read(workspace) -> None:
    rows = [BASE] * 30 + [b"{broken"] * 5
    shape = only(preview(workspace({"a.jsonl": rows, "b.jsonl": rows}, settings())))
    assert (shape.files, shape.lines, shape.requests, shape.bad) == (["a.jsonl", "b.jsonl"], 40, 40, {})


def test_files_that_look_alike_are_one_and_others_stand_beside(workspace) -> None:
    other = {"timestamp": BASE["timestamp"], "question": "q"}
    found = preview(workspace({"a.jsonl": [BASE], "b.jsonl": [other], "c.jsonl": [BASE, BASE]}, settings()))
    assert [(s.files, s.lines, s.requests) for s in found.shapes] == [
        (["a.jsonl", "c.jsonl"], 3, 3),
        (["b.jsonl"], 1, 0),
    ]
    assert found.shapes[1].bad == {"query: missing": 1}


def test_of_very_many_files_some_are_looked_at(workspace, monkeypatch) -> None:
    monkeypatch.setattr(module, "FILES", 5)
    found = preview(workspace({f"{n:02}.jsonl": [BASE] for n in range(40)}, settings()))
    assert (found.files, found.looked_at) == (40, 5)
    assert found.shapes[0].files[0] == "00.jsonl"
    assert found.shapes[0].files[-1] == "39.jsonl"


@pytest.mark.parametrize("form", ["langfuse", "openinference"])
def test_traces_are_joined_from_the_first_lines(workspace, form) -> None:
    row: dict[str, Any] = {"id": "t", "timestamp": BASE["timestamp"], "input": "Q?", "output": "A.", "bookmarked": True}
    if form == "openinference":
        row = {"context.trace_id": "t", "context.span_id": "s", "start_time": BASE["timestamp"], "bookmarked": True,
               "attributes.input.value": "Q?", "attributes.output.value": "A."}  # fmt: skip
    found = preview(workspace({"a.jsonl": [row]}, settings(f"{{format: {form}}}")))
    assert [(r["query"], r["response"]) for r in found.requests] == [("Q?", "A.")]
    assert only(found).unmapped == ["bookmarked"]


def test_the_doctor_tells_what_is_odd_and_is_silent_where_nothing_is(workspace) -> None:
    assert list(fields(workspace({"a.jsonl": [BASE]}, settings()))) == []
    ws = workspace({"a.jsonl": [{"ts": "2026-11-20T09:00:00Z", "question": "q"}]}, settings())
    levels = [(level, line) for level, _, line in fields(ws)]
    assert [level for level, _ in levels] == ["warning", "warning", "error"]
    assert levels[2][1] == "a.jsonl: none of the first 1 lines is a request: timestamp: missing"
