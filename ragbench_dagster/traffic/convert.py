"""Values with our names become a `LogRequest`: every field is checked here, whatever file it came from.

This is the slow, patient way: for mapped fields, CSV, Parquet and the spellings of other tools. Lines that
follow design 4 to the letter take the fast way in `decode`, with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any
from uuid import UUID

import msgspec

from ragbench_dagster.io.inputs import Undecodable, decoded
from ragbench_dagster.traffic.requests import LogRequest, Node, Opaque, RowError, WrongType
from ragbench_dagster.traffic.timestamps import parse_time

ID_KEYS = ("node_id", "id", "doc_id", "document_id", "chunk_id", "id_", "document.id")
TEXT_KEYS = ("text", "content", "page_content", "pageContent", "document.content", "document")
SCORE_KEYS = ("score", "similarity", "relevance_score", "document.score")


class NumberText(float):
    """A JSON number with a fraction or exponent that remembers how it was written (for ids)."""

    text: str

    def __new__(cls, text: str) -> NumberText:
        number = super().__new__(cls, text)
        if not math.isfinite(number):
            raise ValueError("Number out of range")
        number.text = text
        return number


# The first that fits; `datetime` is a `date` too, and true is an `int`.
_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "true or false"), ((int, float), "a number"), (str, "text"), ((list, tuple), "an array"),
    (dict, "an object"), (datetime, "a point in time"), (date, "a date"), (time, "a time of day"),
    (timedelta, "a duration"), (bytes, "binary"),
)  # fmt: skip


def to_request(
    values: dict[str, Any], line: int, digest: bytes, zone: tzinfo, *, part: int = 0, repaired: bool = False
) -> LogRequest:
    """The request that `values` (our field names) describe.

    Raises:
        RowError: a required field is missing, or one has the wrong type; names the field, never its text.
    """
    for name in ("timestamp", "query"):
        if values.get(name) is None:
            raise RowError(f"{name}: missing")
    time_us, naive = parse_time(values["timestamp"], zone)
    query = values["query"]
    if not isinstance(query, str):
        raise WrongType(f"query: text is wanted, not {kind_of(query)}")
    if not query.strip():
        raise RowError("query: empty")
    return LogRequest(
        line=line,
        part=part,
        digest=digest,
        time_us=time_us,
        naive=naive,
        request_id=to_id(values.get("request_id"), "request_id") or derived_id(line, part, digest),
        query=query,
        response=to_text(values.get("response"), "response"),
        nodes=to_nodes(values.get("source_nodes")),
        latency_ms=to_latency(values.get("latency_ms")),
        category=to_id(values.get("category"), "category"),
        user_id=to_id(values.get("user_id"), "user_id"),
        model=to_id(values.get("model"), "model"),
        conversation_id=to_id(values.get("conversation_id"), "conversation_id"),
        history=to_history(values.get("history"), query),
        repaired=repaired,
    )


def derived_id(line: int, part: int, digest: bytes) -> str:
    """The id of a request that was logged without one: what the line says and where it stands.

    The file's name is not part of it: a copy of a file, or one renamed by log rotation, holds the same requests.
    """
    return f"line:{line}:{part}:{digest.hex()}"


def kind_of(value: Any) -> str:
    """The type of a value in the words of JSON, or of a table where JSON has none."""
    if value is None or isinstance(value, Opaque):
        return "null" if value is None else value.kind
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "another type")


def to_id(value: Any, name: str) -> str | None:
    """An id as text, digit for digit; None where there is none.

    A float without a fraction is an integer column with gaps, as pandas writes it: 1000.0 is the id "1000".
    """
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, NumberText):
        return value.text
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, bool) or not isinstance(value, int | UUID):
        raise WrongType(f"{name}: text or a number is wanted, not {kind_of(value)}")
    return str(value)


def to_text(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise WrongType(f"{name}: text is wanted, not {kind_of(value)}")


def to_latency(value: Any) -> float | None:
    """Milliseconds, from a number of them or from a duration."""
    if isinstance(value, timedelta):
        value = value / timedelta(milliseconds=1)
    number = to_number(value, "latency_ms")
    if number is not None and number < 0:
        raise RowError("latency_ms: negative")
    return number


def to_number(value: Any, name: str) -> float | None:
    """A finite number; NaN is a gap, as pandas writes it (JSON has none)."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or (not hasattr(value, "__float__") and not isinstance(value, str)):
        raise WrongType(f"{name}: a number is wanted, not {kind_of(value)}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise RowError(f"{name}: a number is wanted") from None
    if math.isnan(number) and not isinstance(value, str):
        return None
    if not math.isfinite(number):
        raise RowError(f"{name}: not a finite number")
    return number


def to_nodes(value: Any) -> tuple[Node, ...] | None:
    """Retrieved passages from a list of ids, or of objects in any of the usual spellings."""
    value = _unpacked(value, "source_nodes")
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise WrongType(f"source_nodes: an array is wanted, not {kind_of(value)}")
    return tuple(to_node(item, at) for at, item in enumerate(value))


def to_node(item: Any, at: int) -> Node:
    """One retrieved passage; one without an id keeps its rank."""
    where = f"source_nodes[{at}]"
    if not isinstance(item, dict):
        return Node(to_id(item, where))
    # LlamaIndex's NodeWithScore keeps id and text one level down.
    inner = item["node"] if isinstance(item.get("node"), dict) else item
    return Node(
        to_id(first_of(inner, ID_KEYS), f"{where}.node_id"),
        to_number(first_of(item, SCORE_KEYS), f"{where}.score"),
        to_text(first_of(inner, TEXT_KEYS), f"{where}.text"),
    )


def first_of(values: dict[str, Any], names: Iterable[str]) -> Any:
    """The first value that is there under one of `names`."""
    for name in names:  # a loop, as each passage of each line asks three times
        value = values.get(name)
        if value is not None:
            return value
    return None


def to_history(value: Any, query: str) -> tuple[str, ...]:
    """Earlier turns as text: plain texts, or messages as `role: content`.

    Instructions to the model (system messages) are no turns, and a last turn that is the question itself is
    left out: tools log the messages up to and including it.
    """
    value = _unpacked(value, "history")
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value] if value.strip() else []
    if not isinstance(value, list | tuple):
        raise WrongType(f"history: an array is wanted, not {kind_of(value)}")
    turns: list[tuple[str, str]] = []
    for at, item in enumerate(value):
        turns += _turn(item, f"history[{at}]")
    if turns and turns[-1][1] == query and turns[-1][0] in ("", "user", "human"):
        turns.pop()
    return tuple(f"{role}: {text}" if role else text for role, text in turns)


def _turn(item: Any, where: str) -> list[tuple[str, str]]:
    if isinstance(item, str):
        return [("", item)] if item.strip() else []
    if isinstance(item, list | tuple):  # a pair of question and answer
        return [turn for piece in item for turn in _turn(piece, where)]
    if not isinstance(item, dict):
        raise WrongType(f"{where}: text or a message is wanted, not {kind_of(item)}")
    role = str(first_of(item, ("role", "type")) or "").lower()
    content = first_of(item, ("content", "text"))
    if isinstance(content, Opaque):
        raise WrongType(f"{where}: text is wanted, not {content.kind}")
    text = message_text(content)
    if role in ("system", "developer") or not text:
        return []
    return [(role, text)]


def message_text(content: Any) -> str:
    """The text of a message's content: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        parts = [p if isinstance(p, str) else p.get("text") for p in content if isinstance(p, str | dict)]
        return "\n".join(p for p in parts if isinstance(p, str) and p)
    return ""


def _unpacked(value: Any, name: str) -> Any:
    """A cell of a CSV that holds a JSON array, decoded."""
    if not isinstance(value, str) or (name == "history" and not value.lstrip().startswith("[")):
        return value
    if not value.strip():
        return None
    try:
        return decoded(msgspec.json.decode, value)
    except Undecodable:
        raise RowError(f"{name}: not a JSON array") from None
