"""A retriever that is the root of its trace is a request; below a span of the application it is somebody's rewriting."""

import json
import random
from typing import Any

import pytest

from ragbench_dagster.traffic.requests import Node
from ragbench_dagster.traffic.sampling import gather
from ragbench_dagster.traffic.scan import scan_logs

FORMS = ("langfuse", "openinference")
NO_QUESTION = "query: the root of the trace holds no question"
Spec = tuple[str, str, str | None, str | None]  # id, kind, parent, question

# what stands in the trace -> the question that is the request's (None: none, one bad line)
TRACES: dict[str, tuple[list[Spec], str | None]] = {
    "a retriever alone": ([("r", "RETRIEVER", None, "Q?")], "Q?"),
    "a retriever whose parent was not exported": ([("r", "RETRIEVER", "gone", "Q?")], "Q?"),
    "a retriever with an embedding below": ([("r", "RETRIEVER", None, "Q?"), ("e", "EMBEDDING", "r", "Q? as tokens")], "Q?"),
    "a retriever with retrievers below": (
        [("r", "RETRIEVER", None, "Q?"), ("a", "RETRIEVER", "r", "q one"), ("b", "RETRIEVER", "r", "q two")], "Q?"),
    "a reranker alone": ([("k", "RERANKER", None, "Q?")], "Q?"),
    "retriever and reranker side by side": ([("k", "RERANKER", None, "Q again?"), ("r", "RETRIEVER", None, "Q?")], "Q?"),
    "a reranker above its retriever": ([("k", "RERANKER", None, "Q?"), ("r", "RETRIEVER", "k", "q rewritten")], "Q?"),
    "below a chain that was asked": ([("c", "CHAIN", None, "Q?"), ("r", "RETRIEVER", "c", "q rewritten")], "Q?"),
    "below a chain that was not recorded": ([("c", "CHAIN", None, None), ("r", "RETRIEVER", "c", "q rewritten")], None),
    "below an agent, two levels": (
        [("a", "AGENT", None, "Q?"), ("t", "TOOL", "a", "call"), ("r", "RETRIEVER", "t", "q rewritten")], "Q?"),
    "beside a chain that was asked": ([("r", "RETRIEVER", None, "q rewritten"), ("c", "CHAIN", None, "Q?")], "Q?"),
    "beside a chain that was not recorded": ([("c", "CHAIN", None, None), ("r", "RETRIEVER", None, "Q?")], "Q?"),
    "without a question": ([("r", "RETRIEVER", None, None)], None),
    "with blanks for a question": ([("r", "RETRIEVER", None, "  \n")], None),
    "below a top, while an orphan was asked": (
        [("c", "CHAIN", None, "Q?"), ("r", "RETRIEVER", "gone", "q rewritten")], "Q?"),
}  # fmt: skip


def row(form: str, spec: Spec, trace: str, at: int, text: bool = True) -> dict[str, Any]:
    own, kind, parent, question = spec
    start, end = f"2026-11-20T08:00:0{at}.000Z", f"2026-11-20T08:00:0{at}.250Z"
    search = kind in ("RETRIEVER", "RERANKER")
    documents = [{"id": f"d-{own}", "content": "A passage."}]
    if form == "langfuse":
        return {
            "id": f"{trace}-{own}", "trace_id": trace, "type": kind, "start_time": start, "end_time": end,
            "parent_observation_id": parent and f"{trace}-{parent}", "input": question,
            "output": documents if search else None,
        }  # fmt: skip
    prefix = "reranker.output_documents" if kind == "RERANKER" else "retrieval.documents"
    attributes: dict[str, Any] = {"openinference.span.kind": kind} if kind != "HTTP" else {"http.route": "/search"}
    if question is not None:
        attributes["input.value"] = question
    if search:
        attributes |= {f"{prefix}.0.document.id": f"d-{own}", f"{prefix}.0.document.content": "A passage."}
    return {
        "context": {"trace_id": trace, "span_id": f"{trace}-{own}"}, "parent_id": parent and f"{trace}-{parent}",
        "start_time": start, "end_time": end, "attributes": attributes,
    }  # fmt: skip


def joined(ws):
    index = scan_logs(ws)
    rows = index.resolved.requests
    found = [request for _, request in gather(index, rows[~rows["again"]])]
    return found, [index.resolved.reasons[r] for r in index.resolved.bad["reason"]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TRACES)
def test_whose_question_it_is(workspace, form, kind) -> None:
    specs, expected = TRACES[kind]
    rows = [row(form, spec, "t", at) for at, spec in enumerate(specs)]
    found, bad = joined(workspace({"spans.jsonl": rows}, f"traffic: {{format: {form}}}"))
    assert [r.query for r in found] == ([expected] if expected else [])
    assert bad == ([] if expected else [NO_QUESTION])


@pytest.mark.parametrize("form", FORMS)
def test_a_search_alone_has_its_passages_latency_and_no_answer(workspace, form) -> None:
    rows = [row(form, ("r", "RETRIEVER", None, "Q?"), f"t{n}", n) for n in range(3)]
    found, bad = joined(workspace({"spans.jsonl": rows}, f"traffic: {{format: {form}}}"))
    assert bad == []
    assert [(r.query, r.response, r.latency_ms, r.nodes) for r in found] == [
        ("Q?", None, 250.0, (Node("d-r", None, "A passage."),))
    ] * 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_spans_and_files_does_not_matter(workspace, form, seed) -> None:
    """All kinds of traces in one export, shuffled over three files."""
    rows = [
        row(form, spec, f"t{number}", at)
        for number, (specs, _) in enumerate(TRACES.values())
        for at, spec in enumerate(specs)
    ]
    random.Random(seed).shuffle(rows)
    files = {f"{n}.jsonl": rows[n::3] for n in range(3)}
    found, bad = joined(workspace(files, f"traffic: {{format: {form}}}"))
    expected = {f"t{n}": question for n, (_, question) in enumerate(TRACES.values()) if question}
    assert {r.request_id: r.query for r in found} == expected
    assert bad == [NO_QUESTION] * (len(TRACES) - len(expected))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_spans_of_a_web_framework_above_a_search_are_looked_through(workspace, depth) -> None:
    """Phoenix keeps every OpenTelemetry span: the request of a search service has an HTTP span above it."""
    specs: list[Spec] = [(f"h{n}", "HTTP", f"h{n - 1}" if n else None, None) for n in range(depth)]
    specs += [("r", "RETRIEVER", f"h{depth - 1}", "Q?"), ("e", "EMBEDDING", "r", "tokens")]
    rows = [row("openinference", spec, "t", at) for at, spec in enumerate(specs)]
    found, bad = joined(workspace({"spans.jsonl": rows}, "traffic: {format: openinference}"))
    assert ([r.query for r in found], bad) == (["Q?"], [])


def test_spans_that_are_each_others_parent_end(workspace) -> None:
    specs: list[Spec] = [("a", "HTTP", "b", None), ("b", "HTTP", "a", None)]
    rows = [row("openinference", spec, "t", at) for at, spec in enumerate(specs)]
    assert joined(workspace({"spans.jsonl": rows}, "traffic: {format: openinference}")) == ([], [NO_QUESTION])


def test_a_trace_row_of_langfuse_without_input_lends_its_session_to_the_search(workspace) -> None:
    trace = {"id": "t", "timestamp": "2026-11-20T08:00:00Z", "session_id": "s", "user_id": "u", "input": None}
    rows = [trace, row("langfuse", ("r", "RETRIEVER", None, "Q?"), "t", 1)]
    (found,), bad = joined(workspace({"spans.jsonl": rows}, "traffic: {format: langfuse}"))
    assert (found.query, found.conversation_id, found.user_id, bad) == ("Q?", "s", "u", [])


@pytest.mark.parametrize(
    "payload",
    ['{"query": "Q?"}', {"query": "Q?"}, {"args": ["Q?"], "kwargs": {}}, {"query_bundle": {"query_str": "Q?"}}, "Q?",
     {"messages": [{"role": "user", "content": "before"}, {"role": "user", "content": "Q?"}]}],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_what_a_retriever_was_given_is_read_as_any_input(workspace, form, payload) -> None:
    made = row(form, ("r", "RETRIEVER", None, None), "t", 1)
    if form == "langfuse":
        made["input"] = payload
    else:
        made["attributes"]["input.value"] = payload if isinstance(payload, str) else json.dumps(payload)
    (found,), _ = joined(workspace({"spans.jsonl": [made]}, f"traffic: {{format: {form}}}"))
    assert found.query == "Q?"
