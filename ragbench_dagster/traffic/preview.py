"""The first lines of each log file as the night would read them: which name is read as which field, and what is not.

Files that look alike are one `Shape`. Nothing is stored, and nothing but these lines is read: names of columns and
keys are scrubbed (a table without a heading has a question for one), the requests are shown scrubbed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from ragbench_dagster.settings import Traffic
from ragbench_dagster.settings_parts import LOG_FIELDS
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.csv_files import Row
from ragbench_dagster.traffic.files import LogFile, Source
from ragbench_dagster.traffic.log_format import log_format
from ragbench_dagster.traffic.logs import Entry, Reader
from ragbench_dagster.traffic.parse import decode_any
from ragbench_dagster.traffic.requests import BadLine, LogRequest, RowError, Span
from ragbench_dagster.traffic.traces.join import join

LINES = 20  # of each file
LONGEST_LOOK = 4 << 20  # characters of questions and answers; no more of a file is looked at
FILES = 200  # that are looked at; of more, the first, the last and some between
REQUESTS = 3  # that are shown
# Names under which others log a field, for the hint beside one that was not found.
_ALSO = {
    "timestamp": "time ts date datetime created created_at createdat @timestamp event_time start_time logged_at",
    "query": "question prompt input user_query user_input message text request search q utterance",
    "request_id": "id uuid requestid trace_id message_id event_id",
    "response": "answer output completion reply result generation assistant bot_response",
    "source_nodes": "contexts context documents docs sources passages retrieved retrieved_documents chunks nodes hits",
    "latency_ms": "latency duration duration_ms took took_ms elapsed elapsed_ms response_time",
    "category": "topic intent tag label type product team",
    "user_id": "user userid customer_id account_id member_id",
    "model": "model_name llm deployment engine",
    "conversation_id": "conversation session session_id sessionid thread_id chat_id dialog_id",
    "history": "messages chat_history previous turns",
}
_ATTRIBUTES = {"timestamp": "time_us", "source_nodes": "nodes"}


@dataclass
class Shape:
    """What files of one look hold."""

    files: list[str]  # scrubbed names
    lines: int  # that were looked at
    requests: int  # read of them; of a trace format: spans
    left_out: int  # by traffic.where
    read: dict[str, tuple[str, int]]  # our field: where it is read from, on how many of the requests it was there
    unmapped: list[str]  # keys and columns that nobody reads
    bad: dict[str, int]  # reason: lines

    @property
    def hints(self) -> list[str]:
        """What a field that was never there may be called here."""
        found = []
        for ours, (_, there) in self.read.items():
            names = [n for n in self.unmapped if n.lower().replace("-", "_") in _ALSO.get(ours, "").split()]
            if not there and names:
                found.append(f"traffic.fields: {{{ours}: {names[0]}}} would read {names[0]} as {ours}")
        return found


@dataclass
class Preview:
    """The look of all log files, and some scrubbed requests."""

    shapes: list[Shape]
    requests: list[dict[str, Any]]  # scrubbed; keys as our fields
    files: int  # in the source
    looked_at: int


@dataclass
class _Seen:
    entries: list[Entry] = field(default_factory=list)
    keys: Counter[str] = field(default_factory=Counter)
    lines: int = 0


class _Peek(Reader):
    """A reader that also keeps the names in what it reads."""

    def __init__(self, source: Source, traffic: Traffic) -> None:
        super().__init__(source, traffic)
        self._columns = None  # all of a Parquet file: those that nobody reads are to be told
        self._deep = _mapped_inside(traffic)
        self.seen = _Seen()

    def _decode(self, number: int, line: bytes) -> list[Entry]:
        values, _, fault = decode_any(line, msgspec.json.decode)
        self._note(values if fault is None else None)
        return super()._decode(number, line)

    def _from_row(self, row: Row) -> list[Entry]:
        self._note(row.values)
        return super()._from_row(row)

    def _note(self, values: Any) -> None:
        self.seen.lines += 1
        for key, value in values.items() if isinstance(values, dict) else ():
            inner = value if key in self._deep and isinstance(value, dict) else None
            self.seen.keys.update([str(key)] if inner is None else [f"{key}.{name}" for name in inner])


def _mapped_inside(traffic: Traffic) -> set[str]:
    """Keys that a path of the settings looks into: the others beside it are then told too."""
    paths = [theirs if isinstance(theirs, str) else theirs.path for theirs in traffic.fields.values()]
    return {path.split(".", 1)[0] for path in [*paths, *traffic.where] if path and "." in path}


def preview(ws: Workspace, lines: int = LINES) -> Preview:
    """Look at the first `lines` lines of each log file.

    Raises:
        UserError: the source is missing, or a file cannot be read.
    """
    from ragbench_dagster.traffic.scrubbing import build_scrubber

    scrubber = build_scrubber(ws.settings.scrub, ws.root)
    source = Source(ws)
    files = source.files(scrubber.plain)
    chosen = files if len(files) <= FILES else [files[at * (len(files) - 1) // (FILES - 1)] for at in range(FILES)]
    shapes: dict[Any, Shape] = {}
    found: list[LogRequest] = []
    for file in chosen:
        shape, requests = _look(ws.settings.traffic, source, file, lines, scrubber.plain)
        same = shapes.setdefault(_look_of(shape), shape)
        if same is not shape:
            _add(same, shape)
        found += requests[: REQUESTS - len(found)]
    return Preview(
        list(shapes.values()), [_shown(request, scrubber, ws.keyed) for request in found], len(files), len(chosen)
    )


def _look(
    traffic: Traffic, source: Source, file: LogFile, lines: int, plain: Callable[[str], str]
) -> tuple[Shape, list[LogRequest]]:
    reader, size = _Peek(source, traffic), 0
    with closing(reader.read(file)) as entries:  # type: ignore[type-var]
        for entry in entries:
            reader.seen.entries.append(entry)
            size += sum(len(getattr(entry, name, None) or "") for name in ("query", "response"))
            if reader.seen.lines >= lines or size > LONGEST_LOOK:
                break
    seen = reader.seen
    bad = Counter(e.reason for e in seen.entries if isinstance(e, BadLine))
    requests = [e for e in seen.entries if isinstance(e, LogRequest)]
    spans = [e for e in seen.entries if isinstance(e, Span)]
    names = list(seen.keys)
    if not log_format(traffic.format).traces:
        read = {ours: (_from(traffic, ours), _there(requests, ours)) for ours in _own_fields()}
    else:
        requests = list(islice(_joined(spans), REQUESTS))
        read = {ours: (f"spans ({traffic.format})", _there(requests, ours)) for ours in _own_fields()}
    unmapped = sorted(plain(name)[:60] for name in names if not reader._reads(name))
    shape = Shape([file.name], seen.lines, len(requests) or len(spans), reader.left_out, read, unmapped, dict(bad))
    return shape, requests


def _own_fields() -> Iterator[str]:
    return (name for name in LOG_FIELDS if "." not in name)


def _from(traffic: Traffic, ours: str) -> str:
    """Where a field is read from, as the settings say it."""
    theirs = traffic.fields.get(ours, ours)
    if isinstance(theirs, str):
        return theirs
    if theirs.path is None:
        return "the same value for every line"
    return theirs.path + ("" if theirs.factor is None else f" x {theirs.factor:g}")


def _there(requests: list[LogRequest], ours: str) -> int:
    values = [getattr(request, _ATTRIBUTES.get(ours, ours)) for request in requests]
    if ours == "request_id":
        return sum(not value.startswith("line:") for value in values)
    return sum(value is not None and value != () for value in values)


def _joined(spans: list[Span]) -> Iterator[LogRequest]:
    traces: dict[str, dict[str, Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, {}).setdefault(span.span_id, span)
    for own in traces.values():
        try:
            yield join(list(own.values()))
        except RowError:
            continue  # its root may come in a later line


def _look_of(shape: Shape) -> Any:
    there = tuple((ours, where, bool(count)) for ours, (where, count) in shape.read.items())
    return there, tuple(shape.unmapped), tuple(sorted(shape.bad))


def _add(one: Shape, other: Shape) -> None:
    one.files += other.files
    one.lines += other.lines
    one.requests += other.requests
    one.left_out += other.left_out
    one.read = {ours: (where, count + other.read[ours][1]) for ours, (where, count) in one.read.items()}
    one.bad = dict(Counter(one.bad) + Counter(other.bad))


def _shown(request: LogRequest, scrubber: Any, keyed: Callable[[str], str]) -> dict[str, Any]:
    from ragbench_dagster.traffic.scrubbing import Request, safe_id
    from ragbench_dagster.traffic.timestamps import day_of

    (clean,) = scrubber.requests([Request(request.query, request.response, (), request.history)])
    nodes = request.nodes
    return {
        "day": day_of(request.time_us).isoformat(),
        "query": clean.query,
        "history": len(request.history),
        "response": clean.response,
        "source_nodes": None
        if nodes is None
        else [None if n.node_id is None else safe_id(n.node_id, scrubber.plain, keyed) for n in nodes],
        "latency_ms": request.latency_ms,
        "category": None if request.category is None else scrubber.plain(request.category),
    }
