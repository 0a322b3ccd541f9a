"""Spans with OpenInference attributes, as Phoenix and OpenTelemetry export them.

Read: Phoenix data frames (JSON Lines, CSV or Parquet with columns `context.trace_id`, `attributes.input.value`),
its JSON (`{context, span_kind, parent_id, attributes}`, lists of traces with `spans`), and OTLP JSON Lines
(`resourceSpans`). All are brought to one flat dict of dotted attribute names; documents are
`retrieval.documents.0.document.id`, in the order of their number (10 comes after 9, not after 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from ragbench_dagster.traffic.convert import first_of, to_id
from ragbench_dagster.traffic.log_format import SUFFIXES, LogFormat
from ragbench_dagster.traffic.requests import Node, RowError
from ragbench_dagster.traffic.timestamps import parse_time
from ragbench_dagster.traffic.traces.join import UNKNOWN
from ragbench_dagster.traffic.traces.payloads import answer_of, decoded, document_node, documents_of, question_of

_TRACE = ("context.trace_id", "trace_id", "traceId")
_SPAN = ("context.span_id", "span_id", "spanId")
_PARENT = ("parent_id", "parentId", "parent_span_id", "parentSpanId")
_START = ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano")
_END = ("end_time", "endTime", "endTimeUnixNano", "end_time_unix_nano")
_KIND = ("openinference.span.kind", "span_kind", "spanKind")
_COLUMNS = frozenset((*_TRACE, *_SPAN, *_PARENT, *_START, *_END, *_KIND, "attributes", "context"))
_ATTRIBUTES = ("attributes.", "input.", "output.", "llm.", "retrieval.", "reranker.", "session.", "user.")
_LISTS = ("retrieval.documents", "reranker.output_documents")
_LIST_ITEM = re.compile(r"(retrieval\.documents|reranker\.output_documents)\.(\d+)\.(.+)$")
_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(role|content)$")


def is_column(name: str) -> bool:
    """Whether a table's column of this name is read."""
    return name in _COLUMNS or name.startswith(_ATTRIBUTES)


def rows_of(record: Any) -> Iterator[dict[str, Any]]:
    """The spans in one record of a file, each as it stands there."""
    if isinstance(record, list):
        for item in record:
            yield from rows_of(item)
    elif not isinstance(record, dict):
        raise RowError("not a JSON object")
    elif isinstance(record.get("resourceSpans"), list):
        for resource in record["resourceSpans"]:
            for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ():
                yield from scope.get("spans", ())
    elif isinstance(record.get("spans"), list):
        yield from rows_of(record["spans"])
    elif isinstance(record.get("data"), list):
        yield from rows_of(record["data"])
    else:
        yield record


def span_fields(row: dict[str, Any], zone: tzinfo) -> dict[str, Any]:
    """The fields of a `Span` that this row gives.

    Raises:
        RowError: no id or no time.
    """
    flat = flatten(row)
    trace, own = to_id(first_of(flat, _TRACE), "trace_id"), to_id(first_of(flat, _SPAN), "span_id")
    if trace is None or own is None:
        raise RowError("trace_id and span_id: missing")
    start = first_of(flat, _START)
    if start is None:
        raise RowError("start_time: missing")
    start_us, naive = parse_time(start, zone)
    end = first_of(flat, _END)
    kind = str(first_of(flat, _KIND) or UNKNOWN).upper()
    retriever = kind in ("RETRIEVER", "RERANKER")
    question, history = _question(flat)
    return {
        "trace_id": trace,
        "span_id": own,
        "parent_id": to_id(first_of(flat, _PARENT), "parent_id"),
        "kind": kind,
        "start_us": start_us,
        "end_us": parse_time(end, zone)[0] if end else None,
        "naive": naive,
        "question": question,
        "history": history,
        "answer": None if retriever else _answer(flat),
        "documents": _documents(flat) if retriever else None,
        "latency_ms": None,
        "session": to_id(flat.get("session.id"), "session.id"),
        "user": to_id(flat.get("user.id"), "user.id"),
        "model": to_id(flat.get("llm.model_name"), "llm.model_name"),
    }


def flatten(row: dict[str, Any]) -> dict[str, Any]:
    """A span as one dict of dotted names, without the `attributes.` in front."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if key == "attributes" and isinstance(value, list):  # OTLP: [{key, value: {stringValue}}]
            for pair in value:
                if isinstance(pair, dict):
                    _put(found, str(pair.get("key")), _otlp(pair.get("value")))
        elif key == "attributes":
            value = decoded(value)
            if isinstance(value, dict):
                for name, inner in value.items():
                    _put(found, name, inner)
        else:
            _put(found, key.removeprefix("attributes."), value)
    return found


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _put(found, f"{name}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
        for at, inner in enumerate(value):
            _put(found, f"{name}.{at}", inner)
    elif value is not None:
        found[name] = value


def _otlp(value: Any) -> Any:
    """An OTLP AnyValue as a plain value; integers come as text there and stay it."""
    if not isinstance(value, dict):
        return value
    if "arrayValue" in value:
        inner = value["arrayValue"]
        return [_otlp(v) for v in (inner.get("values", []) if isinstance(inner, dict) else inner)]
    if "kvlistValue" in value:
        return {str(p.get("key")): _otlp(p.get("value")) for p in value["kvlistValue"].get("values", [])}
    return next(iter(value.values()), None)


def _question(flat: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    question, history = question_of(first_of(flat, ("reranker.query", "input.value")))
    if question is not None:
        return question, history
    return question_of(_chat(flat, "input"))


def _answer(flat: dict[str, Any]) -> str | None:
    return answer_of(flat.get("output.value")) or answer_of(_chat(flat, "output"))


def _chat(flat: dict[str, Any], side: str) -> list[dict[str, Any]]:
    messages: dict[int, dict[str, Any]] = {}
    for name, value in flat.items():
        match = _MESSAGE.match(name)
        if match and match[1] == side:
            messages.setdefault(int(match[2]), {})[match[3]] = value
    return [messages[at] for at in sorted(messages)]


def _documents(flat: dict[str, Any]) -> tuple[Node, ...] | None:
    """Documents in the order of their number; a reranker's output comes before what it was given."""
    found: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in _LISTS}
    for name, value in flat.items():
        match = _LIST_ITEM.match(name)
        if match:
            found[match[1]].setdefault(int(match[2]), {})[match[3].removeprefix("document.")] = value
    for name in reversed(_LISTS):
        if found[name]:
            return _nodes([found[name][at] for at in sorted(found[name])])
        if isinstance(decoded(flat.get(name)), list):  # a CSV cell, or plain texts
            return documents_of(flat[name])
    ids = flat.get("retrieval.documents.ids")
    if isinstance(ids, list):  # Arize's columns
        texts = flat.get("retrieval.documents.contents") or []
        return tuple(Node(to_id(i, "id"), None, texts[at] if at < len(texts) else None) for at, i in enumerate(ids))
    return documents_of(flat.get("output.value"))


def _nodes(items: list[dict[str, Any]]) -> tuple[Node, ...]:
    return tuple(node for item in items if (node := document_node(item)) is not None)


FORMAT = LogFormat(
    "Spans with OpenInference attributes, as Phoenix and OpenTelemetry export them.",
    rows_of,
    span_fields,
    knows=is_column,
    suffixes=(*SUFFIXES, ".json"),
)
