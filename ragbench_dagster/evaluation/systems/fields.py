"""Maps our field names to those of a JSON service, both ways. No network here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.base import ItemError
from ragbench_dagster.evaluation.systems.shapes import Passage, to_passage
from ragbench_dagster.settings import FieldMap

_SENT = ("query", "history", "example_id", "category")
_READ = ("response", "source_nodes", "contexts", "retrieved_ids")
_NODE = ("node_id", "score", "text")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def walk(value: Any, path: str) -> Any:
    """What stands at `a.b[0].c` in decoded JSON; None where it ends early. A key that holds dots wins as it is."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for name, index in _STEP.findall(path):
        if index:
            if not isinstance(value, list) or int(index) >= len(value):
                return None
            value = value[int(index)]
        else:
            if not isinstance(value, Mapping):
                return None
            value = value.get(name)
    return value


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
            _put(body, path, theirs.const)
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


class ResponseMap:
    """Reads a service's JSON answer.

    Args:
        fields: ours (`response`, `source_nodes`, `contexts`, `retrieved_ids`, `source_nodes.node_id`,
            `source_nodes.score`, `source_nodes.text`) to theirs.
        key: the settings' key, for errors.

    Raises:
        UserError: a field of ours that does not exist.
    """

    def __init__(self, fields: Mapping[str, str | FieldMap], key: str) -> None:
        self._fields = {k: FieldMap.model_validate({"path": v}) if isinstance(v, str) else v for k, v in fields.items()}
        known = {*_READ, *(f"source_nodes.{name}" for name in _NODE)}
        for ours in self._fields:
            if ours not in known:
                raise UserError(f"{key}.{ours}: ours is one of {', '.join(sorted(known))}; ours: theirs")

    def _get(self, value: Any, ours: str) -> Any:
        field = self._fields.get(ours)
        if field is None:
            return None
        found = field.const if field.const is not None else walk(value, field.path or ours)
        if field.json_string and isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError as fault:
                raise ItemError(f"NotJson: {ours} is not the JSON text it should be") from fault
        if field.factor is not None and isinstance(found, int | float):
            found = found * field.factor
        return found

    def lacks_response(self, value: Any) -> bool:
        return self._get(value, "response") is None

    def read(self, value: Any) -> tuple[str | None, list[Passage]]:
        """(answer, passages) of one reply.

        Raises:
            ItemError: passages that are no list, or an answer that is no text.
        """
        response = self._get(value, "response")
        if response is not None and not isinstance(response, str):
            response = json.dumps(response, ensure_ascii=False, sort_keys=True)
        nodes = self._get(value, "source_nodes")
        if nodes is None:
            return response, self._flat(value)
        if not isinstance(nodes, list):
            raise ItemError("WrongShape: source_nodes is not a list where response says it is")
        return response, [self._passage(node) for node in nodes]

    def _flat(self, value: Any) -> list[Passage]:
        contexts, listed = self._get(value, "contexts"), self._get(value, "retrieved_ids")
        if not isinstance(contexts, list | None) or not isinstance(listed, list | None):
            raise ItemError("WrongShape: contexts and retrieved_ids are lists")
        contexts, listed = contexts or [], listed or []
        size = max(len(contexts), len(listed))
        texts = [str(c) if c is not None else None for c in contexts] + [None] * (size - len(contexts))
        ids = [str(i) if i is not None else None for i in listed] + [None] * (size - len(listed))
        return [(i, None, t) for i, t in zip(ids, texts, strict=True)]

    def _passage(self, node: Any) -> Passage:
        named = {n: self._fields[f"source_nodes.{n}"] for n in _NODE if f"source_nodes.{n}" in self._fields}
        if not named or not isinstance(node, Mapping):
            return to_passage(node, "node", bare="id")
        found = {name: walk(node, field.path or name) for name, field in named.items()}
        return to_passage({**node, **{k: v for k, v in found.items() if v is not None}}, "node", bare="id")
