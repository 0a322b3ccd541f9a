"""Maps our field names to those of a JSON service, both ways, as `traffic.fields` does for log lines. No network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ragbench_dagster.credentials import expand_all
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.base import Answer, ItemError
from ragbench_dagster.evaluation.systems.shapes import answer_of, number, passages_of
from ragbench_dagster.settings import FieldMap, Traffic
from ragbench_dagster.traffic.fields import compile_fields
from ragbench_dagster.traffic.model import RowError

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
