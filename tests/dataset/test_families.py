"""Questions about one thing are one family: a conversation, a shared passage, or each by itself."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.dataset.examples import families
from ragbench_dagster.records import EXAMPLES
from ragbench_dagster.store import rows_table


def of(*rows: dict[str, Any]) -> list[int]:
    base = {"query": "", "history": [], "expected_doc_ids": None, "expected_grades": None}
    made = [{**base, "query": f"question number {i}", **row} for i, row in enumerate(rows)]
    return families(rows_table(made, EXAMPLES)).tolist()


def test_questions_that_share_a_passage_also_by_way_of_others_are_one_family() -> None:
    assert of(
        {"expected_doc_ids": ["a"]}, {"expected_doc_ids": ["b", "c"]}, {}, {"expected_doc_ids": ["a", "b"]},
        {"expected_doc_ids": ["d"]}, {},
    ) == [0, 0, 1, 0, 2, 3]  # fmt: skip


def test_a_passage_that_is_not_relevant_joins_nothing() -> None:
    assert of(
        {"expected_doc_ids": ["a", "b"], "expected_grades": [2.0, 0.0]},
        {"expected_doc_ids": ["b"], "expected_grades": [3.0]},
        {"expected_doc_ids": ["b"]},
    ) == [0, 1, 1]


def test_a_conversation_comes_before_its_passages() -> None:
    opening = "How do I reset my password?"
    assert of(
        {"query": opening, "expected_doc_ids": ["a"]},
        {"query": "and on the phone?", "history": [f"user: {opening}", "assistant: In the settings."]},
        {"query": "other", "expected_doc_ids": ["a"]},
        {"query": "thanks, why?", "history": [opening], "expected_doc_ids": ["b"]},
        {"query": "a fifth one", "expected_doc_ids": ["b"]},
    ) == [0, 0, 1, 0, 2]


def test_a_greeting_opens_no_conversation_that_others_share() -> None:
    assert of(
        {"query": "where is my parcel", "history": ["hi"]},
        {"query": "how much is it", "history": ["user: hi", "assistant: Hello there, how can I help?"]},
        {"query": "hi"},
    ) == [0, 1, 2]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=25))
def test_families_are_the_connected_parts(labels: list[list[str]]) -> None:
    found = of(*({"expected_doc_ids": ids or None} for ids in labels))
    assert sorted(set(found)) == list(range(len(set(found))))
    parts: list[set[str]] = []
    for ids in labels:
        own = set(ids)
        touching = [part for part in parts if part & own]
        parts = [part for part in parts if not part & own] + ([own.union(*touching)] if own else [])
    for i, a in enumerate(labels):
        for j, b in enumerate(labels):
            together = i == j or any(set(a) <= part and set(b) <= part for part in parts if a and b)
            assert (found[i] == found[j]) == together
