"""One line of JSON becomes a `LogRequest`, a `BadLine`, or nothing (`traffic.where`). Validation at decode.

The fast way is msgspec's typed decoder; what it refuses gets a second, patient reading in `convert`, which
knows the spellings of other tools and words the reason. Files and gzip belong to `lines`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Raw

from ragbench_dagster.io.inputs import reason_of
from ragbench_dagster.settings import Traffic
from ragbench_dagster.traffic.convert import NumberText, derived_id, to_history, to_latency, to_request
from ragbench_dagster.traffic.csv_files import Row
from ragbench_dagster.traffic.fields import column_of, compile_fields, compile_where
from ragbench_dagster.traffic.log_format import LogFormat, log_format
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Node, RowError, WrongType
from ragbench_dagster.traffic.timestamps import parse_time

COLUMNS = (
    "timestamp", "query", "request_id", "response", "source_nodes", "latency_ms", "category", "user_id",
    "model", "conversation_id", "history",
)  # fmt: skip
# An escape is taken whole, so that the backslash in "\\ud83d" (a literal backslash) is never cut off.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)

FORMAT = LogFormat("JSON Lines, CSV or Parquet with a request a row, under our names or those of `traffic.fields`.")


class _Node(msgspec.Struct):
    node_id: str | int
    score: float | None = None
    text: str | None = None


class _Turn(msgspec.Struct):
    content: str
    role: str | None = None


class _Line(msgspec.Struct):
    timestamp: str | int | float
    query: str
    request_id: Raw = Raw()  # raw, so that a number keeps its digits
    response: str | None = None
    source_nodes: list[str | int | _Node] | None = None
    latency_ms: float | None = None
    category: str | int | None = None
    user_id: str | int | None = None
    model: str | None = None
    conversation_id: str | int | None = None
    history: list[str | _Turn] | None = None


class Decoder:
    """Decodes the lines of one workspace's logs (formats of requests)."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self.zone = ZoneInfo(traffic.timezone)
        self._typed = msgspec.json.Decoder(_Line).decode
        self._text = msgspec.json.Decoder(str).decode
        self._any = msgspec.json.Decoder(float_hook=NumberText).decode
        self._values = log_format(traffic.format).values
        self._plain = not traffic.fields and not traffic.where and self._values is None
        self._rename = compile_fields(traffic)
        self._wanted = compile_where(traffic)

    def line(self, number: int, line: bytes) -> LogRequest | BadLine | None:
        """The request on line `number`; None where `traffic.where` says that it is none."""
        digest = line_digest(line)
        fault = utf8_fault(line)
        if fault is not None:
            return BadLine(number, fault, digest)
        if self._plain:
            try:
                return self._fast(number, line, digest)
            except Exception:
                pass  # the patient way finds the reason, or a spelling that is fine after all
        values, repaired, reason = decode_any(line, self._any)
        if reason is None and not isinstance(values, dict):
            reason = "not a JSON object"
        if reason is not None:
            return BadLine(number, reason, digest)
        return self.row(Row(number, digest, values), repaired)

    def row(self, row: Row, repaired: bool = False) -> LogRequest | BadLine | None:
        """The request of a CSV or Parquet row."""
        if row.values is None:
            return BadLine(row.line, row.fault or "not a row", row.digest)
        try:
            if not self._wanted(row.values):
                return None
            values = self._rename(row.values if self._values is None else self._values(row.values))
            return to_request(values, row.line, row.digest, self.zone, repaired=repaired)
        except Exception as fault:
            return BadLine(row.line, bad_reason(fault) + self._typed_as(fault, row), row.digest)

    def _typed_as(self, fault: Exception, row: Row) -> str:
        """The type of the column behind a value of the wrong type."""
        if not isinstance(fault, WrongType) or not row.types:
            return ""
        column = column_of(self._traffic, re.split(r"[:.\[]", str(fault), maxsplit=1)[0], row.types)
        return f" (the column {column} is {row.types[column]})" if column else ""

    def _fast(self, number: int, line: bytes, digest: bytes) -> LogRequest:
        found: _Line = self._typed(line)
        time_us, naive = parse_time(found.timestamp, self.zone)
        if not found.query or found.query.isspace():
            raise RowError("query: empty")
        nodes = found.source_nodes
        return LogRequest(
            number,
            0,
            digest,
            time_us,
            naive,
            self._id(bytes(found.request_id)) or derived_id(number, 0, digest),
            found.query,
            found.response,
            None if nodes is None else tuple([_node(n) for n in nodes]),
            None if found.latency_ms is None else to_latency(found.latency_ms),
            _as_text(found.category),
            _as_text(found.user_id),
            found.model or None,
            _as_text(found.conversation_id),
            to_history([_turn(t) for t in found.history], found.query) if found.history else (),
        )

    def _id(self, raw: bytes) -> str | None:
        if raw[:1] == b'"':
            return self._text(raw)
        if raw in (b"", b"null"):
            return None
        if raw[0] in b"-0123456789":
            return raw.decode("ascii")
        raise RowError("request_id: text or a number is wanted")


def utf8_fault(line: bytes) -> str | None:
    """Why a line is not UTF-8; the typed decoder does not look inside strings that it skips."""
    if line.isascii():
        return None
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as fault:
        return f"not valid UTF-8 at byte {fault.start}"
    return None


def line_digest(line: bytes) -> bytes:
    """Content hash of a raw line; it stays in memory, what is stored is a keyed hash of it."""
    return hashlib.blake2b(line, digest_size=16).digest()


def decode_any(line: bytes, decode: Any) -> tuple[Any, bool, str | None]:
    """(value, whether half an emoji was replaced, reason where it is no JSON) of a line."""
    repaired = False
    try:
        try:
            found = decode(line)
        except msgspec.DecodeError:
            # Text cut in the middle of an emoji leaves half a surrogate pair, which no UTF-8 can hold.
            mended = _ESCAPE.sub(lambda m: b"\\ufffd" if m[1] else m[0], line)
            if mended == line:
                raise
            found, repaired = decode(mended), True
    except Exception as fault:  # whatever the decoder raises, it is this line that is bad
        return None, False, f"not JSON: {_reason(fault)}"
    return found, repaired, None


def bad_reason(fault: Exception) -> str:
    """Why a row is bad: our own words, or the kind of what a conversion raised (never its text)."""
    return str(fault) if isinstance(fault, RowError) else f"cannot be read: {reason_of(fault)}"


def _reason(fault: Exception) -> str:
    if not isinstance(fault, ValueError):
        return reason_of(fault)
    text = str(fault).removeprefix("JSON is malformed: ")
    return "truncated" if text == "Input data was truncated" else text[:1].lower() + text[1:]


def _node(node: str | int | _Node) -> Node:
    if isinstance(node, _Node):
        return Node(str(node.node_id) or None, node.score, node.text)
    return Node(str(node) or None)


def _turn(turn: str | _Turn) -> Any:
    return turn if isinstance(turn, str) else {"role": turn.role, "content": turn.content}


def _as_text(value: str | int | None) -> str | None:
    return None if value is None else str(value) or None
