"""Maps our field names to those of a JSON service, both ways, as `traffic.fields` does for log lines. No network."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ragbench_dagster.credentials import expand_all
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.system import Answer, ItemError
from ragbench_dagster.settings import FieldMap, Traffic
from ragbench_dagster.traffic.fields import compile_fields
from ragbench_dagster.traffic.requests import RowError

# Turns what engines, callables and services return into an `Answer`. How they are called belongs elsewhere.
#
# Understood: text; `{response, source_nodes | contexts | retrieved_ids}`; a LlamaIndex Response or a list of
# NodeWithScore; `(response, passages)` or `(response, contexts, ids)`. A passage is a NodeWithScore, an object
# `{node_id, score, text}` (with the usual other names), or text: an id where only ids can stand, else a context.

_ANSWER = ("response", "answer", "result", "output", "text")
_PASSAGES = ("source_nodes", "sources", "passages", "documents", "source_documents", "nodes", "retrieved", "results")
_IDS = ("node_id", "doc_id", "id", "id_", "document_id", "chunk_id", "passage_id")
_TEXTS = ("text", "content", "page_content", "passage", "body")
_SCORES = ("score", "similarity", "relevance")

Passage = tuple[str | None, float | None, str | None]  # id, score, text


def to_answer(value: Any, ids: str = "node") -> Answer:
    """The `Answer` in what a system returned.

    Args:
        value: see the module's docstring.
        ids: which id of a LlamaIndex node counts: `node`, `document` (ref_doc_id) or `metadata.KEY`.

    Raises:
        ItemError: nothing, or a shape that is not understood.
    """
    response, passages = _parts(value, ids)
    if response is None and not passages:
        raise ItemError("EmptyAnswer: the system returned neither an answer nor passages")
    return answer_of(response, passages)


def to_passages(value: Any, ids: str = "node") -> Answer:
    """The `Answer` of a system that only retrieves: no response.

    Raises:
        ItemError: not a list of passages.
    """
    if isinstance(value, Mapping):
        value = _first(value, (*_PASSAGES, "retrieved_ids"))
    elif hasattr(value, "source_nodes"):
        value = value.source_nodes
    if value is None or isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ItemError(f"WrongShape: a retriever returns a list of passages, not {type(value).__name__}")
    return answer_of(None, [to_passage(p, ids, bare="id") for p in value])


def answer_of(response: str | None, passages: list[Passage]) -> Answer:
    return Answer(
        "scored",
        response=response,
        contexts=tuple(text for _, _, text in passages if text is not None),
        retrieved_ids=tuple(key for key, _, _ in passages),
        retrieved_scores=tuple(score for _, score, _ in passages),
    )


def _parts(value: Any, ids: str) -> tuple[str | None, list[Passage]]:
    if value is None or isinstance(value, str):
        return value, []
    if isinstance(value, Mapping):
        return _text(_first(value, _ANSWER)), passages_of(value, ids)
    if isinstance(value, tuple):
        return _tuple_parts(value, ids)
    if isinstance(value, list):
        return None, [to_passage(p, ids, bare="id") for p in value]
    if hasattr(value, "response"):
        nodes = getattr(value, "source_nodes", None) or []
        return _text(value.response), [to_passage(p, ids, bare="text") for p in nodes]
    raise ItemError(f"WrongShape: {type(value).__name__} is no answer; return text, a dict or a Response")


def _tuple_parts(value: tuple[Any, ...], ids: str) -> tuple[str | None, list[Passage]]:
    if len(value) not in (2, 3):
        raise ItemError(f"WrongShape: a tuple of {len(value)}; return (response, passages[, ids])")
    passages = [to_passage(p, ids, bare="text") for p in value[1] or ()]
    if len(value) == 3 and value[2] is not None:
        passages = _with_ids(passages, list(value[2]))
    return _text(value[0]), passages


def passages_of(value: Mapping[str, Any], ids: str = "node") -> list[Passage]:
    """The passages of an answer that is an object.

    Raises:
        ItemError: what should be a list is none.
    """
    nodes = _first(value, _PASSAGES)
    contexts, listed = value.get("contexts"), value.get("retrieved_ids")
    for name, found in (("source_nodes", nodes), ("contexts", contexts), ("retrieved_ids", listed)):
        if found is not None and (isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable)):
            raise ItemError(f"WrongShape: {name} is a {type(found).__name__}, not a list")
    if nodes is not None:
        return [to_passage(p, ids, bare="id") for p in nodes]
    passages: list[Passage] = [(None, None, _text(text)) for text in contexts or ()]
    return passages if listed is None else _with_ids(passages, list(listed))


def _with_ids(passages: list[Passage], listed: list[Any]) -> list[Passage]:
    """Passages with ids beside them; where one list is longer, its rest stands alone."""
    size = max(len(passages), len(listed))
    return [
        (
            None if i >= len(listed) or listed[i] is None else str(listed[i]),
            passages[i][1] if i < len(passages) else None,
            passages[i][2] if i < len(passages) else None,
        )
        for i in range(size)
    ]


def to_passage(value: Any, ids: str, bare: str) -> Passage:
    """(id, score, text) of one passage; `bare` says what a lone text is: `id` or `text`.

    Raises:
        ItemError: not a passage.
    """
    if value is None:
        return None, None, None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return (str(value), None, None) if bare == "id" else (None, None, str(value))
    if isinstance(value, Mapping):
        nested = value.get("node")
        inner: Mapping[str, Any] = nested if isinstance(nested, Mapping) else value
        key, text = _first(inner, _IDS), _first(inner, _TEXTS)
        score = _first(value, _SCORES)
        return None if key is None else str(key), number(score), None if text is None else str(text)
    node = getattr(value, "node", value)
    if hasattr(node, "get_content"):
        return _node_id(node, ids), number(getattr(value, "score", None)), node.get_content()
    if hasattr(value, "page_content"):  # a LangChain document
        return _metadata_id(value), None, str(value.page_content)
    raise ItemError(f"WrongShape: {type(value).__name__} is no passage")


def _node_id(node: Any, ids: str) -> str | None:
    if ids == "document":
        found = getattr(node, "ref_doc_id", None) or node.node_id
    elif ids.startswith("metadata."):
        found = (node.metadata or {}).get(ids.removeprefix("metadata."))
    else:
        found = node.node_id
    return None if found is None else str(found)


def _metadata_id(document: Any) -> str | None:
    found = getattr(document, "id", None) or _first(getattr(document, "metadata", None) or {}, _IDS)
    return None if found is None else str(found)


def _first(value: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _text(value: Any) -> str | None:
    """An answer as text; a pydantic or JSON answer as JSON."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "model_dump_json"):
        return str(value.model_dump_json())
    if isinstance(value, int | float | bool):
        return str(value)
    if isinstance(value, Mapping | list):
        import json

        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    raise ItemError(f"WrongShape: the answer is a {type(value).__name__}, not text")


def number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool | str) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


# Maps our field names to those of a JSON service, both ways, as `traffic.fields` does for log lines. No network.

_SENT = ("query", "history", "example_id", "category")
_READ = ("response", "source_nodes", "contexts", "retrieved_ids", "latency_ms", "first_token_ms")
_NODE = ("source_nodes.node_id", "source_nodes.score", "source_nodes.text")


def request_body(fields: Mapping[str, str | FieldMap], example: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The JSON body of a question: each of our fields under their (dotted) name; constants as they are.

    Raises:
        UserError: a field of ours that does not exist, or no query among them.
    """
    body: dict[str, Any] = {}
    sends_query = False
    for ours, theirs in fields.items():
        path = theirs if isinstance(theirs, str) else theirs.path or ours
        if isinstance(theirs, FieldMap) and theirs.const is not None:
            _put(body, path, expand_all(theirs.const, f"{key}.{ours}.const"))
            continue
        name = "query" if ours == "question" else ours
        if name not in _SENT:
            raise UserError(f"{key}.{ours}: ours is one of {', '.join(_SENT)}, or a constant; ours: theirs")
        sends_query = sends_query or name == "query"
        value = example.get(name)
        _put(body, path, list(value or ()) if name == "history" else value)
    if not sends_query:
        raise UserError(f"{key}: the question is not sent; add query: THEIR_FIELD")
    return body


def _put(body: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        body = body.setdefault(name, {})
    body[last] = value


def answer_reader(fields: Mapping[str, str | FieldMap], key: str) -> Callable[[Any], Answer]:
    """A function from a service's decoded JSON to an `Answer`; unmapped fields keep our names.

    Args:
        fields: ours (`response`, `source_nodes` and its `source_nodes.node_id`, ..., or `contexts` and
            `retrieved_ids`; `latency_ms`, `first_token_ms`) to theirs.
        key: the settings' key, for errors.

    Raises:
        UserError: a field of ours that does not exist.
    """
    for ours in fields:
        if ours not in (*_READ, *_NODE):
            raise UserError(f"{key}.{ours}: ours is one of {', '.join((*_READ, *_NODE))}; ours: theirs")
    mapped = compile_fields(Traffic.model_validate({"fields": dict(fields)}))

    def read(value: Any) -> Answer:
        if not isinstance(value, dict):
            raise ItemError(f"WrongShape: the body is a {type(value).__name__}, not an object")
        try:
            row = mapped(value)
        except RowError as fault:
            raise ItemError(f"WrongShape: {fault}") from fault
        response = row.get("response")
        if response is not None and not isinstance(response, str):
            response = json.dumps(response, ensure_ascii=False, sort_keys=True)
        passages = passages_of({name: row.get(name) for name in ("source_nodes", "contexts", "retrieved_ids")})
        if response is None and not passages:
            if value.get("error"):
                raise ItemError("ErrorInBody: status 200 with an error inside")
            raise ItemError("EmptyAnswer: neither an answer nor passages where response says they are")
        return replace(
            answer_of(response, passages),
            latency_ms=number(row.get("latency_ms")),
            first_token_ms=number(row.get("first_token_ms")),
        )

    return read
