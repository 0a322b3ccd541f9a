"""Observations and traces as Langfuse exports them.

Read: blob storage exports (`observations_v2/`, or `observations/` with `traces/`; snake case, input and output
as strings, times in UTC without a zone), downloads and API pages (camel case; a list, `{data: [...]}`, or a
trace with its `observations`). Their documentation: "Blob Storage Export Field Reference". `scores/` and
`manifests/` hold no requests and are passed over.

`latency` is in seconds, but in milliseconds in exports set up before April 2026: so the duration is taken
from the start and end times, and `latency` is only read where there is no end.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import Any

from ragbench_dagster.traffic.convert import first_of, to_id, to_number
from ragbench_dagster.traffic.log_format import SUFFIXES, LogFormat
from ragbench_dagster.traffic.requests import RowError
from ragbench_dagster.traffic.timestamps import parse_time
from ragbench_dagster.traffic.traces.payloads import answer_of, documents_of, question_of

COLUMNS = frozenset(
    "id type name trace_id traceId start_time startTime timestamp end_time endTime input output latency "
    "parent_observation_id parentObservationId session_id sessionId user_id userId provided_model_name "
    "providedModelName model".split()
)  # of a table, that are read


def rows_of(record: Any) -> Iterator[dict[str, Any]]:
    """The observations and traces in one record of a file."""
    if isinstance(record, list):
        for item in record:
            yield from rows_of(item)
    elif isinstance(record, dict):
        if isinstance(record.get("data"), list) and "id" not in record:
            yield from rows_of(record["data"])
            return
        if isinstance(record.get("trace"), dict):  # a downloaded trace: {trace: {...}, observations: [...]}
            yield from rows_of(record["trace"] | {"observations": record.get("observations", [])})
            return
        observations = record.get("observations")
        if isinstance(observations, list):
            yield {k: v for k, v in record.items() if k != "observations"}
            for item in observations:
                if isinstance(item, dict):
                    yield {"trace_id": record.get("id"), **item}
            return
        yield record
    else:
        raise RowError("not a JSON object")


def span_fields(row: dict[str, Any], zone: tzinfo = UTC) -> dict[str, Any]:
    """The fields of a `Span` that this row gives.

    Raises:
        RowError: no id or no time.
    """
    del zone  # documented as UTC, so a missing zone is no doubt
    own = to_id(row.get("id"), "id")
    if own is None:
        raise RowError("id: missing")
    kind = str(row.get("type") or "").upper()
    trace = to_id(first_of(row, ("trace_id", "traceId")), "trace_id")
    if not kind and trace is None:
        kind, trace = "TRACE", own  # a row of traces/ is its own trace
    if kind == "SPAN" and "retriev" in str(row.get("name") or "").lower():
        kind = "RETRIEVER"  # SDKs before version 3 had no type for it
    start = first_of(row, ("start_time", "startTime", "timestamp"))
    if start is None:
        raise RowError("start_time: missing")
    start_us, _ = parse_time(start, UTC)
    end = first_of(row, ("end_time", "endTime"))
    end_us = parse_time(end, UTC)[0] if end else None
    retriever = kind == "RETRIEVER"
    question, history = question_of(row.get("input"))
    latency = to_number(row.get("latency"), "latency")
    return {
        "trace_id": trace or own,
        "span_id": own,
        "parent_id": to_id(first_of(row, ("parent_observation_id", "parentObservationId")), "parent_observation_id"),
        "kind": kind or "SPAN",
        "start_us": start_us,
        "end_us": end_us,
        "naive": False,
        "question": question,
        "history": history,
        "answer": None if retriever else answer_of(row.get("output")),
        "documents": documents_of(row.get("output")) if retriever else None,
        "latency_ms": latency * 1000 if latency is not None and end_us is None else None,
        "session": to_id(first_of(row, ("session_id", "sessionId")), "session_id"),
        "user": to_id(first_of(row, ("user_id", "userId")), "user_id"),
        "model": to_id(first_of(row, ("provided_model_name", "providedModelName", "model")), "model"),
    }


FORMAT = LogFormat(
    "Exports of Langfuse: observations and traces, as blobs or downloaded.",
    rows_of,
    span_fields,
    knows=COLUMNS.__contains__,
    suffixes=(*SUFFIXES, ".json"),
    skipped=frozenset({"scores", "manifests"}),
)
