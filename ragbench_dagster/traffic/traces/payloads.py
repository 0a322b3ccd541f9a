"""What tracing tools put into the input and output of a span: questions, answers, conversations, passages.

The payload is text, or JSON (often as a string) in the shape of whatever framework was traced. The first shape
that fits is taken; text in no known shape is itself the question or the answer. Which span is asked belongs to
`langfuse`, `openinference` and `join`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ragbench_dagster.io import inputs
from ragbench_dagster.traffic.convert import (
    ID_KEYS,
    SCORE_KEYS,
    TEXT_KEYS,
    first_of,
    message_text,
    to_history,
    to_id,
    to_number,
)
from ragbench_dagster.traffic.requests import Node, RowError

DEPTH = 6  # how deep a payload is searched
MESSAGES = ("messages", "chat_history", "input_messages")
QUESTION_KEYS = (
    "question", "query", "input", "prompt", "user_input", "user_query", "query_str", "message", "text",
    "content", "kwargs", "args", "query_bundle", "inputs",
)  # fmt: skip
ANSWER_KEYS = (
    "answer", "response", "output", "result", "output_text", "text", "content", "message", "completion",
    "choices", "generations", "output_messages", "kwargs", "outputs", "data",
)  # fmt: skip
DOCUMENT_KEYS = (
    "documents", "docs", "nodes", "source_nodes", "source_documents", "results", "matches", "hits", "chunks",
    "passages", "contexts", "items", "output", "data",
)  # fmt: skip
_ASKED = ("user", "human")
_REPLIED = ("assistant", "ai", "model")


def decoded(payload: Any) -> Any:
    """The payload, decoded where it is a string that holds a JSON array, object or string."""
    if isinstance(payload, str) and payload.lstrip()[:1] in ("{", "[", '"'):
        try:
            return inputs.decoded(msgspec.json.decode, payload)
        except inputs.Undecodable:
            return payload
    return payload


def question_of(payload: Any) -> tuple[str | None, tuple[str, ...]]:
    """(the last thing the user said, the turns before it) of a root span's input."""
    value = decoded(payload)
    messages = _messages(value, DEPTH)
    if messages:
        asked = [at for at, m in enumerate(messages) if _role(m) in _ASKED and _content(m).strip()]
        if asked:
            question = _content(messages[asked[-1]])
            return question, to_history(messages[: asked[-1]], "")
    text = _text(value, QUESTION_KEYS, _ASKED, DEPTH)
    if not text and isinstance(payload, str):
        text = payload  # somebody's question may look like JSON
    history: tuple[str, ...] = ()
    if isinstance(value, dict) and isinstance(value.get("history") or value.get("chat_history"), list):
        history = to_history(value.get("history") or value.get("chat_history"), text or "")
    return (text if text and text.strip() else None), history


def answer_of(payload: Any) -> str | None:
    """The answer in a root span's output."""
    text = _text(decoded(payload), ANSWER_KEYS, _REPLIED, DEPTH)
    return text or (payload if isinstance(payload, str) and payload else None)


def documents_of(payload: Any) -> tuple[Node, ...] | None:
    """The passages in a retriever's output, best first as they stand; None where it has no list of them."""
    found = _documents(decoded(payload), DEPTH)
    return None if found is None else tuple(found)


def _messages(value: Any, depth: int) -> list[dict[str, Any]]:
    """The list of chat messages in a payload, or an empty list."""
    value = decoded(value)
    if depth == 0:
        return []
    if isinstance(value, list):
        if value and all(isinstance(m, dict) and _role(m) for m in value):
            return value
        # LangChain logs batches: a list that holds one list of messages.
        return _messages(value[0], depth - 1) if len(value) == 1 and isinstance(value[0], list) else []
    if isinstance(value, dict):
        for key in (*MESSAGES, "input", "kwargs", "inputs"):
            if isinstance(value.get(key), list | dict) and (found := _messages(value[key], depth - 1)):
                return found
    return []


def _role(message: dict[str, Any]) -> str:
    message = _inner(message)
    role = first_of(message, ("role", "type"))
    has_text = "content" in message or "text" in message
    return role.lower() if isinstance(role, str) and has_text else ""


def _content(message: dict[str, Any]) -> str:
    return message_text(first_of(_inner(message), ("content", "text")))


def _inner(message: dict[str, Any]) -> dict[str, Any]:
    # {"message": {...}} and LangChain's {"data": {...}}, OpenInference's {"message.role": ...}
    for key in ("message", "data"):
        if isinstance(message.get(key), dict):
            return message | message[key]
    if "message.role" in message:
        return {k.removeprefix("message."): v for k, v in message.items()}
    return message


def _text(value: Any, keys: tuple[str, ...], roles: tuple[str, ...], depth: int) -> str | None:
    value = decoded(value) if depth < DEPTH else value
    if isinstance(value, str):
        return value
    if depth == 0 or value is None:
        return None
    if isinstance(value, list):
        spoken = [m for m in value if isinstance(m, dict) and _role(m) in roles]
        if spoken:
            return _content(spoken[-1]) or None
        if all(isinstance(p, dict) and p.get("type") in ("text", "output_text") for p in value):
            return message_text(value) or None
        return _text(value[0], keys, roles, depth - 1) if value else None
    if isinstance(value, dict):
        for key in keys:
            if value.get(key) not in (None, "", [], {}) and (found := _text(value[key], keys, roles, depth - 1)):
                return found
        only = [v for v in value.values() if isinstance(v, str) and v]
        return only[0] if len(value) == 1 and only else None
    return None


def _documents(value: Any, depth: int) -> list[Node] | None:
    value = decoded(value)
    if depth == 0:
        return None
    if isinstance(value, list):
        return [node for item in value if (node := document_node(item)) is not None]
    if isinstance(value, dict):
        ids, texts = value.get("ids"), value.get("documents")
        if isinstance(ids, list) and isinstance(texts, list):  # columns, as Chroma answers
            ids = ids[0] if ids and isinstance(ids[0], list) else ids
            texts = texts[0] if texts and isinstance(texts[0], list) else texts
            return [Node(to_id(i, "id"), None, t) for i, t in zip(ids, texts, strict=False)]
        for key in DOCUMENT_KEYS:
            if isinstance(value.get(key), list | dict | str) and value[key] != "":
                found = _documents(value[key], depth - 1)
                if found is not None:
                    return found
    return None


def document_node(item: Any) -> Node | None:
    """One retrieved document: an id or text, or an object in any of the usual spellings; None where it is neither."""
    if isinstance(item, str):
        # A list of strings holds either ids or passages; a passage has a space in it.
        return None if not item else Node(None, None, item) if " " in item else Node(item)
    if not isinstance(item, dict):
        return None
    score = first_of(item, SCORE_KEYS)
    for key in ("node", "document", "kwargs"):  # LlamaIndex, OpenInference, LangChain's serialised form
        if isinstance(item.get(key), dict):
            item = item | item[key]
    metadata = decoded(first_of(item, ("metadata", "document.metadata", "extra_info")))
    node_id = first_of(item, ID_KEYS)
    if node_id is None and isinstance(metadata, dict):
        node_id = first_of(metadata, (*ID_KEYS, "source", "file_path", "file_name"))
    text = first_of(item, TEXT_KEYS)
    try:
        node = Node(to_id(node_id, "id"), to_number(score, "score"), text if isinstance(text, str) else None)
    except RowError:
        return None
    return node if node.node_id is not None or node.text else None
