"""Langfuse and OpenInference exports: the spans of a trace are one request."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragbench_dagster.traffic.requests import Node
from ragbench_dagster.traffic.sampling import gather
from ragbench_dagster.traffic.scan import scan_logs

LANGFUSE = "traffic: {format: langfuse}"
PHOENIX = "traffic: {format: openinference}"


def joined(ws):
    """Every request of the logs, joined as scrubbing would read it."""
    index = scan_logs(ws)
    rows = index.resolved.requests
    rows = rows[~rows["again"]]
    return index, [request for _, request in gather(index, rows)]


@pytest.fixture
def observations(shared):
    return (shared / "cases/cases/export-langfuse-observations/observations.jsonl").read_bytes()


def check_case(request):
    assert request.query == "How do I cancel a seat?"
    assert request.response == "Open Seats and choose Cancel."
    assert request.latency_ms == pytest.approx(1830)
    assert [n.node_id for n in request.nodes] == ["seat-2", "seat-9"]
    assert [n.text for n in request.nodes] == ["Seats can be cancelled.", "Seats cost money."]
    assert (request.user_id, request.history, request.request_id) == ("u-7", (), "t1")


def test_langfuse_case_is_one_request(workspace, observations):
    index, (request,) = joined(workspace({"observations_v2/1.jsonl": observations}, LANGFUSE))
    check_case(request)
    assert index.days == ["2026-11-20"]
    assert not index.resolved.bad.size


def test_order_and_files_of_the_spans_do_not_matter(workspace, observations):
    lines = observations.strip().split(b"\n")
    for at, order in enumerate(([2, 1, 0], [1, 2, 0])):
        files = {f"run{at}/{n}.jsonl": lines[i] for n, i in enumerate(order)}
        _, found = joined(workspace(files, LANGFUSE))
        check_case(found[0])
        assert len(found) == 1  # the second round brings every span again: still one request


def test_spans_delivered_again_count_once(workspace, observations):
    ws = workspace({"a.jsonl": observations, "b.jsonl": observations}, LANGFUSE)
    index, (request,) = joined(ws)
    check_case(request)
    assert index.resolved.requests["again"].sum() == 1


def test_a_root_exported_again_with_another_time_is_not_lost(workspace, observations):
    later = [json.loads(x) for x in observations.strip().split(b"\n")]
    earlier = [{**row, "start_time": row["start_time"].replace("08:00", "07:00")} for row in later]
    index, found = joined(workspace({"a.jsonl": later, "b.jsonl": earlier}, LANGFUSE))
    assert [r.request_id for r in found] == ["t1"]
    assert index.resolved.requests["again"].sum() == 1


def test_milliseconds_of_old_exports_do_not_become_seconds(workspace, observations):
    rows = [json.loads(x) for x in observations.strip().split(b"\n")]
    _, (request,) = joined(workspace({"a.jsonl": [{**r, "latency": r["latency"] * 1000} for r in rows]}, LANGFUSE))
    assert request.latency_ms == pytest.approx(1830)
    without_end = [{**r, "end_time": None} for r in rows]
    _, (request,) = joined(workspace({"a.jsonl": without_end}, LANGFUSE))
    assert request.latency_ms == pytest.approx(1830)


def test_legacy_traces_and_observations_are_joined(workspace):
    traces = [
        {"id": "t1", "timestamp": "2026-11-20 08:00:00.000000", "name": "chat", "user_id": "u", "session_id": "s",
         "input": "Where?", "output": "Here.", "metadata": {"topic": "places"}},
    ]  # fmt: skip
    observations = [
        {"id": "o1", "trace_id": "t1", "type": "SPAN", "parent_observation_id": None, "name": "rag", "input": "x",
         "start_time": "2026-11-20 08:00:00.100000", "end_time": "2026-11-20 08:00:00.600000"},
        {"id": "o2", "trace_id": "t1", "type": "SPAN", "parent_observation_id": "o1", "name": "retrieve",
         "start_time": "2026-11-20 08:00:00.200000", "output": ["d2", "d10"]},
        {"id": "o3", "trace_id": "t1", "type": "GENERATION", "parent_observation_id": "o1", "name": "llm",
         "start_time": "2026-11-20 08:00:00.300000", "provided_model_name": "m-2026"},
    ]  # fmt: skip
    others = {"scores/1.jsonl": [{"id": "s", "value": 1}], "manifests/1.json": b"{}"}
    files = {"traces/1.jsonl": traces, "observations/1.jsonl": observations, **others}
    settings = "traffic: {format: langfuse, fields: {category: metadata.topic}}"
    index, (request,) = joined(workspace(files, settings))
    assert (request.query, request.response, request.conversation_id) == ("Where?", "Here.", "s")
    assert (request.latency_ms, request.model, request.category) == (500, "m-2026", "places")
    assert request.nodes == (Node("d2"), Node("d10"))
    assert not index.resolved.bad.size


def test_downloads_in_camel_case(workspace):
    trace = {
        "trace": {"id": "t", "timestamp": "2026-11-20T08:00:00Z", "sessionId": "s", "userId": "u", "input": None},
        "observations": [
            {"id": "o", "traceId": "t", "type": "AGENT", "parentObservationId": None,
             "startTime": "2026-11-20T08:00:00Z", "endTime": "2026-11-20T08:00:02Z",
             "input": {"messages": [{"role": "user", "content": "Hi?"}]},
             "output": {"choices": [{"message": {"role": "assistant", "content": "Ho."}}]}},
            {"id": "r", "type": "RETRIEVER", "parentObservationId": "o", "startTime": "2026-11-20T08:00:01Z",
             "output": {"documents": [{"pageContent": "P", "metadata": {"source": "p.md"}}]}},
        ],
    }  # fmt: skip
    for content in (json.dumps(trace, indent=1).encode(), json.dumps([trace]).encode()):
        _, (request,) = joined(workspace({"t.json": content}, LANGFUSE))
        assert (request.query, request.response, request.latency_ms) == ("Hi?", "Ho.", 2000)
        assert request.nodes == (Node("p.md", None, "P"),)


def test_trace_without_a_question_is_one_bad_line_and_where_keeps_others_out(workspace):
    row = {"id": "o", "trace_id": "t", "type": "SPAN", "start_time": "2026-11-20 08:00:00", "environment": "prod"}
    index, found = joined(workspace({"a.jsonl": [row, {"id": "x", "trace_id": "t2"}]}, LANGFUSE))
    assert found == []
    assert [index.resolved.reasons[r] for r in index.resolved.bad["reason"]] == [
        "query: the root of the trace holds no question",
        "start_time: missing",
    ]
    only = "traffic: {format: langfuse, where: {environment: live}}"
    index, found = joined(workspace({"a.jsonl": [row]}, only))
    assert found == []
    assert not index.resolved.bad.size


def documents(prefix: str, n: int) -> dict:
    return {f"{prefix}retrieval.documents.{i}.document.id": f"d{i}" for i in sorted(range(n), key=str)}


def spans(prefix: str = "attributes.") -> list[dict]:
    """Root and retriever as a Phoenix data frame has them; 12 documents in the order of text: 0, 1, 10, 11, 2, ..."""
    common = {"context.trace_id": "t", "start_time": "2026-11-20T08:00:00.000+00:00", "status_code": "OK"}
    return [
        {**common, "context.span_id": "b", "parent_id": "a", "span_kind": "RETRIEVER", **documents(prefix, 12)},
        {**common, "context.span_id": "a", "parent_id": None, "span_kind": "CHAIN",
         "end_time": "2026-11-20T08:00:01.500+00:00", f"{prefix}input.value": "How?", f"{prefix}output.value": "So.",
         f"{prefix}session.id": "s", f"{prefix}user.id": "u"},
        {**common, "context.span_id": "c", "parent_id": "a", "span_kind": "LLM", f"{prefix}llm.model_name": "m",
         f"{prefix}input.value": "a long prompt"},
    ]  # fmt: skip


def check_spans(request):
    assert (request.query, request.response, request.latency_ms) == ("How?", "So.", 1500)
    assert [n.node_id for n in request.nodes] == [f"d{i}" for i in range(12)]
    assert (request.conversation_id, request.user_id, request.model) == ("s", "u", "m")


def test_openinference_documents_come_in_numeric_order(workspace):
    _, (request,) = joined(workspace({"spans.jsonl": spans()}, PHOENIX))
    check_spans(request)


def test_openinference_nested_json_of_the_command_line(workspace):
    nested = []
    for row in spans(""):
        inner = {k: v for k, v in row.items() if k not in ("parent_id", "span_kind", "start_time", "end_time")}
        nested.append(
            {
                "context": {"trace_id": inner.pop("context.trace_id"), "span_id": inner.pop("context.span_id")},
                "parent_id": row["parent_id"],
                "span_kind": row["span_kind"],
                "start_time": row["start_time"],
                "end_time": row.get("end_time"),
                "attributes": inner,
            }
        )
    for content in (json.dumps([{"traceId": "t", "spans": nested}]).encode(), json.dumps(nested).encode()):
        _, (request,) = joined(workspace({"t.json": content}, PHOENIX))
        check_spans(request)


def test_openinference_otlp_lines_hold_many_spans(workspace):
    def span(row: dict) -> dict:
        inner = {k: v for k, v in row.items() if "." in k and not k.startswith("context.")}
        return {
            "traceId": row["context.trace_id"],
            "spanId": row["context.span_id"],
            "parentSpanId": row["parent_id"] or "",
            "startTimeUnixNano": "1795161600000000000",
            "endTimeUnixNano": "1795161601500000000",
            "attributes": [
                {"key": "openinference.span.kind", "value": {"stringValue": row["span_kind"]}},
                *({"key": k, "value": {"stringValue": v}} for k, v in inner.items()),
            ],
        }

    other = [{**r, "context.trace_id": "t2"} for r in spans("")]
    record = {"resourceSpans": [{"scopeSpans": [{"spans": [span(r) for r in spans("") + other]}]}]}
    _, found = joined(workspace({"otlp.jsonl": [record]}, PHOENIX))
    assert [r.request_id for r in found] == ["t", "t2"]
    for request in found:
        check_spans(request)


def test_openinference_parquet_of_a_data_frame(workspace, tmp_path):
    rows = spans()
    for row in rows:
        docs = [(k, v) for k, v in row.items() if "retrieval.documents" in k]
        for key, _ in docs:
            del row[key]
        ordered = sorted((int(k.split(".")[3]), v) for k, v in docs)
        row["attributes.retrieval.documents"] = [{"document.id": v, "document.content": f"T{i}"} for i, v in ordered]
    names = sorted({k for row in rows for k in row})
    table = pa.Table.from_pylist([{n: row.get(n) for n in names} for row in rows])
    pq.write_table(table, tmp_path / "x.parquet")
    _, (request,) = joined(workspace({"x.parquet": (tmp_path / "x.parquet").read_bytes()}, PHOENIX))
    check_spans(request)
    assert request.nodes[10] == Node("d10", None, "T10")


def test_reranker_has_the_last_word_and_an_orphan_may_be_the_root(workspace):
    rows = spans()
    rows[1]["parent_id"] = "http-request-that-was-not-exported"
    rows.append(
        {"context.trace_id": "t", "context.span_id": "r", "parent_id": "a", "span_kind": "RERANKER",
         "start_time": "2026-11-20T08:00:00.9Z",
         "attributes.reranker.input_documents.0.document.id": "d0",
         "attributes.reranker.output_documents.1.document.id": "d3",
         "attributes.reranker.output_documents.0.document.id": "d7"}
    )  # fmt: skip
    _, (request,) = joined(workspace({"spans.jsonl": rows}, PHOENIX))
    assert request.query == "How?"
    assert [n.node_id for n in request.nodes] == ["d7", "d3"]
