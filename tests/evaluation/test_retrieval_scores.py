"""Retrieval scores of stored answers: what is scored, what is not applicable, and the warnings."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from ragbench_dagster.evaluation.retrieval import k_warnings, score_retrieval
from ragbench_dagster.records import EXAMPLES, RESPONSES, SCORES
from ragbench_dagster.store import rows_table


@dataclass
class Release:
    examples: pa.Table


def release(*rows: dict[str, Any]) -> Release:
    base = {"category": "c", "weight": 2.0, "conflict": False, "synthetic": False}
    return Release(rows_table([{"example_id": f"e{i}", **base, **row} for i, row in enumerate(rows)], EXAMPLES))


def responses(*ids: list[str | None] | None, status: str = "scored") -> pa.Table:
    rows = [
        {"example_id": f"e{i}", "status": status if found is not None else "error", "retrieved_ids": found}
        for i, found in enumerate(ids)
    ]
    return rows_table(rows, RESPONSES)


def by_example(table: pa.Table) -> dict[str, tuple[str, float | None]]:
    return {row["example_id"]: (row["status"], row["value"]) for row in table.to_pylist()}


def test_each_example_and_metric_has_one_row_sorted_by_metric_and_example() -> None:
    table = score_retrieval(
        responses(["d1"], [], ["d1"], None),
        release({"expected_doc_ids": ["d1"]}, {"expected_doc_ids": ["d1"]}, {}, {"expected_doc_ids": ["d1"]}),
        ["mrr@10", "hit_rate@5", "faithfulness"],
        "s",
    )
    assert table.schema == SCORES
    keys = [(row["metric"], row["example_id"]) for row in table.to_pylist()]
    assert keys == sorted(keys)
    assert len(keys) == 8
    hits = table.filter(pa.compute.equal(table["metric"], "hit_rate@5"))
    assert by_example(hits) == {
        "e0": ("scored", 1.0), "e1": ("scored", 0.0), "e2": ("not_applicable", None), "e3": ("failed", 0.0),
    }  # fmt: skip


def test_conflicts_and_paraphrases_are_out_of_the_gate_and_weights_are_kept() -> None:
    table = score_retrieval(
        responses(["d"], ["d"], ["d"]),
        release(
            {"expected_doc_ids": ["d"], "conflict": True},
            {"expected_doc_ids": ["d"], "synthetic": True},
            {"expected_doc_ids": ["d"], "weight": 7.5},
        ),
        ["hit_rate@1"],
    )
    assert table["in_gate"].to_pylist() == [False, False, True]
    assert table["weight"].to_pylist() == [2.0, 2.0, 7.5]


def test_grades_of_the_release_reach_ndcg() -> None:
    table = score_retrieval(
        responses(["low", "high"]),
        release({"expected_doc_ids": ["high", "low"], "expected_grades": [3.0, 1.0]}),
        ["ndcg@5"],
    )
    assert round(table["value"][0].as_py(), 12) == round(0.7967075809905066, 12)


def test_labels_whose_ids_neither_corpus_nor_system_has_are_not_applicable_instead_of_zero() -> None:
    """Re-chunking changed every id: a gate that fails at 0.00 would send people after the wrong fault."""
    labelled = release({"expected_doc_ids": ["pages.md"]}, {"expected_doc_ids": ["billing.md"]})
    table = score_retrieval(responses(["n1"], ["n2"]), labelled, ["hit_rate@5"], "s", {"c-81f0", "c-22aa"})
    assert by_example(table) == {"e0": ("not_applicable", None), "e1": ("not_applicable", None)}


def test_one_label_outside_the_corpus_is_left_out_and_a_missed_passage_is_not() -> None:
    labelled = release({"expected_doc_ids": ["a"]}, {"expected_doc_ids": ["gone"]}, {"expected_doc_ids": ["b"]})
    table = score_retrieval(responses(["b"], ["b"], ["a"]), labelled, ["hit_rate@5"], "s", {"a", "b"})
    assert by_example(table) == {"e0": ("scored", 0.0), "e1": ("not_applicable", None), "e2": ("scored", 0.0)}


def test_without_a_corpus_a_passage_that_is_never_found_still_counts_as_missed() -> None:
    labelled = release({"expected_doc_ids": ["a"]}, {"expected_doc_ids": ["b"]})
    table = score_retrieval(responses(["a"], ["a"]), labelled, ["hit_rate@5"])
    assert by_example(table) == {"e0": ("scored", 1.0), "e1": ("scored", 0.0)}


@pytest.mark.parametrize("corpus", [frozenset[str](), frozenset({"a", "b"})])
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        # nothing for any question: it does not retrieve, or does not tell what
        ([[], []], ["not_applicable", "not_applicable"]),
        ([[None, None], []], ["not_applicable", "not_applicable"]),
        ([[" "], [""]], ["not_applicable", "not_applicable"]),
        ([[], None], ["not_applicable", "not_applicable"]),
        # nothing for some: 0 there
        ([["a"], []], ["scored", "scored"]),
        ([["a"], [None]], ["scored", "scored"]),
        # it never answered: taken to retrieve, and failed
        ([None, None], ["failed", "failed"]),
    ],
)
def test_a_system_that_never_tells_an_id_is_not_scored_and_one_that_sometimes_finds_nothing_is_0_there(
    ids: list[list[str | None] | None], expected: list[str], corpus: frozenset[str]
) -> None:
    labelled = release({"expected_doc_ids": ["a"]}, {"expected_doc_ids": ["b"]})
    table = score_retrieval(responses(*ids), labelled, ["hit_rate@5", "ndcg@3"], "s", corpus)
    for metric in ("hit_rate@5", "ndcg@3"):
        rows = by_example(table.filter(pa.compute.equal(table["metric"], metric)))
        assert [rows["e0"][0], rows["e1"][0]] == expected
        assert rows["e1"][1] == (0.0 if expected[1] in ("scored", "failed") else None)
    silent = expected[0] == "not_applicable"
    assert len([w for w in k_warnings(responses(*ids), ["hit_rate@1"]) if "do not apply" in w]) == silent
    assert k_warnings(responses(*ids), ["faithfulness"]) == []


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ({}, "not_applicable"),
        ({"expected_doc_ids": []}, "not_applicable"),
        ({"expected_doc_ids": ["a"], "expected_grades": [0.0]}, "not_applicable"),
        ({"expected_doc_ids": ["a", "b"], "expected_grades": [0.5, -1.0]}, "not_applicable"),
        ({"expected_doc_ids": ["gone"]}, "not_applicable"),
        ({"expected_doc_ids": ["a"]}, "failed"),
        ({"expected_doc_ids": ["a", "gone"], "expected_grades": [1.0, 0.0]}, "failed"),
    ],
)
def test_a_failed_answer_counts_only_where_the_metric_applies(label: dict[str, Any], expected: str) -> None:
    """21 of 23 labelled questions answered were shown as 84 %: failures at unlabelled ones were counted too."""
    labelled = release(label, {"expected_doc_ids": ["b"]})
    table = score_retrieval(responses(None, ["b"]), labelled, ["mrr@5"], "s", {"a", "b"})
    assert by_example(table) == {"e0": (expected, 0.0 if expected == "failed" else None), "e1": ("scored", 1.0)}


def test_a_k_above_what_the_system_ever_returns_is_a_named_warning() -> None:
    found = k_warnings(responses(["a", "b"], ["a"]), ["hit_rate@2", "ndcg@3", "faithfulness"])
    assert len(found) == 1
    assert found[0].startswith("ndcg@3: ")
