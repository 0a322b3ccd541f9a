"""What the readers hand on: one request, one span of a trace, or one bad line. No logic belongs here.

All of these hold raw text or point at it. They live in memory only: nothing in this module is ever written.
"""

from __future__ import annotations

from typing import Any

import msgspec


class RowError(ValueError):
    """Why one line is no request. The message names the field and the fault, never the text."""


class WrongType(RowError):
    """A value of a type that its field cannot take; a Parquet file's reader adds the column's type to the reason."""


class Opaque(msgspec.Struct, frozen=True):
    """A value that has no plain meaning; only a field that needs it is wrong then."""

    kind: str  # what it is, in the words of a reason


class Node(msgspec.Struct, frozen=True):
    """One retrieved passage of a log line."""

    node_id: str | None
    score: float | None = None
    text: str | None = None


class LogRequest(msgspec.Struct):
    """One request as it stands in the logs."""

    line: int  # 1-based; rows of a table and elements of a JSON array count likewise
    part: int  # 0, or the number of the span within a line that holds several
    digest: bytes  # of the raw line
    time_us: int  # microseconds since 1970-01-01 UTC
    naive: bool  # the time had no zone
    request_id: str  # as logged, else derived from the line and its position
    query: str
    response: str | None = None
    nodes: tuple[Node, ...] | None = None  # None: the log holds none; empty: nothing was retrieved
    latency_ms: float | None = None
    category: str | None = None
    user_id: str | None = None
    model: str | None = None
    conversation_id: str | None = None
    history: tuple[str, ...] = ()  # earlier turns, oldest first
    repaired: bool = False  # half an emoji was replaced by U+FFFD


class Span(msgspec.Struct):
    """One span of an exported trace; `formats` joins the spans of a trace into one `LogRequest`."""

    line: int
    part: int
    digest: bytes
    trace_id: str
    span_id: str
    parent_id: str | None
    kind: str  # TRACE, CHAIN, RETRIEVER, ...; upper case
    start_us: int
    end_us: int | None
    naive: bool
    wanted: bool  # traffic.where lets the trace through if this is its root
    question: str | None
    history: tuple[str, ...]
    answer: str | None
    documents: tuple[Node, ...] | None
    latency_ms: float | None
    session: str | None
    user: str | None
    model: str | None
    extra: dict[str, Any]  # what traffic.fields sets: category and others, by our names
    repaired: bool = False


class BadLine(msgspec.Struct):
    """One line for quarantine."""

    line: int
    reason: str  # never holds text of the line
    digest: bytes
