"""Turns what engines, callables and services return into an `Answer`. How they are called belongs elsewhere.

Understood: text; `{response, source_nodes | contexts | retrieved_ids}`; a LlamaIndex Response or a list of
NodeWithScore; `(response, passages)` or `(response, contexts, ids)`. A passage is a NodeWithScore, an object
`{node_id, score, text}` (with the usual other names), or text: an id where only ids can stand, else a context.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ragbench_dagster.evaluation.systems.base import Answer, ItemError

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
