"""Questions, answers and passages in the shapes in which frameworks hand them to tracing tools."""

import json

import pytest

from ragbench_dagster.traffic.traces.payloads import answer_of, documents_of, question_of


@pytest.mark.parametrize(
    ("payload", "question", "history"),
    [
        ("How?", "How?", ()),
        ('"How?"', "How?", ()),
        ("{not json", "{not json", ()),
        ("[1, 2]", "[1, 2]", ()),
        ('{"a": 1}', '{"a": 1}', ()),
        ({"question": "How?"}, "How?", ()),
        ({"args": ["How?"], "kwargs": {}}, "How?", ()),
        ({"args": [], "kwargs": {"query": "How?"}}, "How?", ()),
        ({"input": {"input": "How?"}}, "How?", ()),
        ([{"role": "user", "content": "How?"}], "How?", ()),
        ([[{"type": "human", "content": "How?"}]], "How?", ()),
        ([{"role": "user", "content": [{"type": "text", "text": "How?"}, {"type": "image_url"}]}], "How?", ()),
        (
            {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"},
                          {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]},
            "c",
            ("user: a", "assistant: b"),
        ),
        ({"question": "c", "chat_history": [["a", "b"]]}, "c", ("a", "b")),
        ({"prompt_tokens": 3, "stream": True}, None, ()),
        ("", None, ()),
        (None, None, ()),
    ],
)  # fmt: skip
def test_questions_in_the_shapes_of_frameworks(payload, question, history):
    assert question_of(payload) == (question, history)
    if isinstance(payload, list | dict):
        assert question_of(json.dumps(payload))[1] == history


@pytest.mark.parametrize(
    ("payload", "answer"),
    [
        ("So.", "So."),
        ({"answer": "So."}, "So."),
        ({"role": "assistant", "content": "So."}, "So."),
        ({"choices": [{"message": {"content": "So."}}]}, "So."),
        ({"generations": [[{"text": "So."}]]}, "So."),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "So."}], "So."),
        ({"response": {"response": "So.", "source_nodes": [{"text": "no"}]}}, "So."),
        ([{"type": "output_text", "text": "So."}], "So."),
        (None, None),
        ("", None),
    ],
)
def test_answers_in_the_shapes_of_frameworks(payload, answer):
    assert answer_of(payload) == answer


@pytest.mark.parametrize(
    ("payload", "ids"),
    [
        (["a", "b"], ["a", "b"]),
        ('[{"id": "a"}, {"node_id": "b"}]', ["a", "b"]),
        ({"documents": [{"id": "a"}, {"metadata": {"doc_id": "b"}}]}, ["a", "b"]),
        ({"ids": [["a", "b"]], "documents": [["x", "y"]]}, ["a", "b"]),
        ([{"node": {"id_": "a"}, "score": 1}, {"kwargs": {"metadata": {"source": "b"}}}], ["a", "b"]),
        ([], []),
        ("no list", None),
        (None, None),
    ],
)
def test_documents_in_the_shapes_of_frameworks(payload, ids):
    found = documents_of(payload)
    assert (None if found is None else [n.node_id for n in found]) == ids
