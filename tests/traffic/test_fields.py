"""traffic.fields and traffic.where: values in somebody else's lines."""

import json

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Traffic, parse_settings
from ragbench_dagster.traffic.fields import look_up, parse_path
from ragbench_dagster.traffic.parse import Decoder
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Node, RowError

TREE = {"a": {"b": [{"c": 1}, {"c": 2}]}, "a.b": "dotted", "x": {"y.z": 3, "y": {"z": 4}}, "empty": None}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[0].c", None),  # the longest existing key is "a.b", and that is text
        ("x.y.z", 3),
        ("x.y", {"z": 4}),
        ("a.b", "dotted"),
        ("nothing.there", None),
        ("empty.more", None),
    ],
)
def test_the_longest_existing_key_wins(path, value):
    assert look_up(TREE, parse_path(path)) == value


def test_positions_count_from_both_ends():
    tree = {"m": [{"c": "first"}, {"c": "last"}]}
    assert look_up(tree, parse_path("m[0].c")) == "first"
    assert look_up(tree, parse_path("m[-1].c")) == "last"
    assert look_up(tree, parse_path("m[2].c")) is None
    assert look_up(tree, parse_path("m[*].c")) == ["first", "last"]
    assert look_up({"m": "text"}, parse_path("m[0]")) is None


def test_json_strings_are_opened_on_the_way():
    row = {"input": json.dumps({"messages": [{"content": "q1"}, {"content": "q2"}]}), "docs": '["a", "b"]'}
    assert look_up(row, parse_path("input.messages[-1].content"), unpack=True) == "q2"
    assert look_up(row, parse_path("docs"), unpack=True) == ["a", "b"]
    with pytest.raises(RowError):
        look_up({"input": "no json"}, parse_path("input.x"), unpack=True)


FOREIGN = {
    "ts": 1795168800,
    "payload": {"question": "How?", "took_s": 1.83},
    "hits": [{"doc": {"key": 9007199254740993}, "sim": 0.5, "body": "T"}],
    "env": "prod",
    "ok": True,
}
MAPPING = """
traffic:
  fields:
    timestamp: ts
    query: payload.question
    latency_ms: {path: payload.took_s, factor: 1000}
    source_nodes: hits
    source_nodes.node_id: doc.key
    source_nodes.score: sim
    source_nodes.text: body
    category: {const: imported}
    model: {path: missing, const: unnamed}
  where: {env: [prod, live], ok: true}
"""


def decoder(yaml: str = MAPPING) -> Decoder:
    return Decoder(parse_settings(yaml).traffic)


def test_foreign_line_is_mapped():
    found = decoder().line(1, json.dumps(FOREIGN).encode())
    assert isinstance(found, LogRequest)
    assert (found.query, found.latency_ms, found.category, found.model) == ("How?", 1830.0, "imported", "unnamed")
    assert found.nodes == (Node("9007199254740993", 0.5, "T"),)


@pytest.mark.parametrize("change", [{"env": "test"}, {"ok": False}, {"env": None}])
def test_line_outside_where_is_no_request_and_no_bad_line(change):
    assert decoder().line(1, json.dumps(FOREIGN | change).encode()) is None
    # Even if it would not be a request: a health check has no question.
    assert decoder().line(1, json.dumps(FOREIGN | change | {"payload": None}).encode()) is None


def test_where_compares_as_a_csv_would():
    rule = Decoder(Traffic(where={"status": 200, "flag": True}))
    row = {"timestamp": 1795168800, "query": "q"}
    assert rule.line(1, json.dumps(row | {"status": "200", "flag": "true"}).encode()) is not None
    assert rule.line(1, json.dumps(row | {"status": 200, "flag": True}).encode()) is not None
    assert rule.line(1, json.dumps(row | {"status": 500, "flag": True}).encode()) is None


def test_mapped_fault_names_our_field():
    found = decoder().line(1, json.dumps(FOREIGN | {"payload": {"question": "How?", "took_s": "long"}}).encode())
    assert isinstance(found, BadLine)
    assert found.reason == "latency_ms: a number is wanted, for its factor"
    unpack = decoder("traffic: {fields: {query: {path: raw.question, json: true}}}")
    bad = unpack.line(1, b'{"timestamp": 1795168800, "raw": "not json"}')
    assert isinstance(bad, BadLine)
    assert bad.reason.startswith("query: ")


def test_field_that_does_not_exist_is_refused_with_a_hint():
    with pytest.raises(UserError, match="did you mean 'query'"):
        parse_settings("traffic: {fields: {qurey: question}}")
