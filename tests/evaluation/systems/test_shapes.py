"""What engines, callables and services may return, and what is refused with a typed reason."""

from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from ragbench_dagster.evaluation.systems.answer_formats import to_answer, to_passages
from ragbench_dagster.evaluation.systems.system import Answer, ItemError


def node(key: str, text: str, score: float | None = None, document: str | None = None) -> NodeWithScore:
    made = TextNode(id_=key, text=text, metadata={"slug": f"slug-{key}"})
    if document:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=document)
    return NodeWithScore(node=made, score=score)


WHOLE = Answer("scored", "yes", ("t1", "t2"), ("n1", "n2"), (0.5, None))


@pytest.mark.parametrize(
    "value",
    [
        Response("yes", [node("n1", "t1", 0.5), node("n2", "t2")]),
        {
            "response": "yes",
            "source_nodes": [{"node_id": "n1", "score": 0.5, "text": "t1"}, {"id": "n2", "content": "t2"}],
        },
        {
            "answer": "yes",
            "sources": [{"node": {"doc_id": "n1", "page_content": "t1"}, "score": 0.5}, {"id": "n2", "text": "t2"}],
        },
        ("yes", [node("n1", "t1", 0.5), {"node_id": "n2", "text": "t2"}]),
        SimpleNamespace(response="yes", source_nodes=[node("n1", "t1", 0.5), node("n2", "t2")]),
    ],
)
def test_one_answer_in_many_shapes(value: Any) -> None:
    assert to_answer(value) == WHOLE


def test_contexts_and_ids_beside_each_other() -> None:
    both = {"answer": "yes", "contexts": ["t1", "t2"], "retrieved_ids": ["n1", 2, None]}
    assert to_answer(both) == Answer("scored", "yes", ("t1", "t2"), ("n1", "2", None), (None, None, None))
    assert to_answer(("yes", ["t1"], ["n1"])) == Answer("scored", "yes", ("t1",), ("n1",), (None,))


def test_lone_text_is_a_context_beside_an_answer_and_an_id_in_a_ranking() -> None:
    assert to_answer(("yes", ["t1"])) == Answer("scored", "yes", ("t1",), (None,), (None,))
    assert to_answer({"answer": "yes", "source_nodes": ["n1", 7]}).retrieved_ids == ("n1", "7")
    assert to_passages(["n1", None, 7]) == Answer("scored", None, (), ("n1", None, "7"), (None,) * 3)
    assert to_passages([]) == Answer("scored")


def test_which_id_of_a_node_counts_is_a_setting() -> None:
    found = Response("yes", [node("chunk-1", "t", document="doc-1")])
    assert to_answer(found).retrieved_ids == ("chunk-1",)
    assert to_answer(found, "document").retrieved_ids == ("doc-1",)
    assert to_answer(found, "metadata.slug").retrieved_ids == ("slug-chunk-1",)
    assert to_answer(found, "metadata.none").retrieved_ids == (None,)


def test_an_answer_that_is_an_object_becomes_json() -> None:
    assert to_answer({"answer": {"b": 1, "a": "ü"}}).response == '{"a": "ü", "b": 1}'


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "high", True, None])
def test_a_score_that_is_no_finite_number_is_null(score: Any) -> None:
    assert to_passages([{"id": "a", "score": score}]).retrieved_scores == (None,)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "EmptyAnswer"),
        ({}, "EmptyAnswer"),
        (object(), "WrongShape: object is no answer"),
        (("a",), "WrongShape: a tuple of 1"),
        ({"answer": "a", "source_nodes": "n1"}, "WrongShape: source_nodes is a str"),
        ({"answer": "a", "contexts": {"x": 1}}, "WrongShape: contexts is a dict"),
        ({"answer": b"bytes"}, "WrongShape: the answer is a bytes"),
        ([object()], "WrongShape: object is no passage"),
    ],
)
def test_other_shapes_are_refused_without_quoting_them(value: Any, reason: str) -> None:
    with pytest.raises(ItemError, match=reason):
        to_answer(value)


@pytest.mark.parametrize("value", [None, "text", 5])
def test_a_retriever_returns_a_list(value: Any) -> None:
    with pytest.raises(ItemError, match="WrongShape: a retriever returns a list"):
        to_passages(value)
