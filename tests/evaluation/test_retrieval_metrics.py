"""Retrieval metrics against trec_eval (pytrec-eval-terrier), and the field cases of kind `retrieval`."""

import json
import math

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.retrieval import metrics_at_k, stage_retrieval

IDS = st.sampled_from([f"d{i}" for i in range(12)])
GRADES = st.dictionaries(IDS, st.integers(1, 4), min_size=1, max_size=8)
RANKINGS = st.lists(IDS, unique=True, max_size=12)
TREC = {
    "hit_rate": "success",
    "mrr": "recip_rank",
    "precision": "P",
    "recall": "recall",
    "ap": "map_cut",
    "ndcg": "ndcg_cut",
}


def trec_eval(grades: dict[str, int], ranking: list[str], k: int) -> dict[str, float]:
    """What trec_eval says; its reciprocal rank knows no cut, so the ranking is cut for it."""
    scores = {doc: 1.0 / (i + 1) for i, doc in enumerate(ranking)}
    cut = {doc: score for doc, score in scores.items() if ranking.index(doc) < k}
    names = {f"{TREC[m]}.{k}" for m in TREC if m != "mrr"}
    whole = pytrec_eval.RelevanceEvaluator({"q": grades}, names).evaluate({"q": scores or {"none": 0.0}})["q"]
    first = pytrec_eval.RelevanceEvaluator({"q": grades}, {"recip_rank"}).evaluate({"q": cut or {"none": 0.0}})["q"]
    return {m: first["recip_rank"] if m == "mrr" else whole[f"{TREC[m]}_{k}"] for m in TREC}


@settings(max_examples=200, deadline=None)
@given(GRADES, RANKINGS, st.sampled_from([1, 3, 5, 10]))
def test_all_metrics_equal_trec_eval(grades: dict[str, int], ranking: list[str], k: int) -> None:
    ours = metrics_at_k(list(grades), ranking, k, list(grades.values()))
    for name, value in trec_eval(grades, ranking, k).items():
        assert ours[f"{name}@{k}"] == pytest.approx(value, abs=1e-9), name


def test_graded_labels_use_linear_gain_as_trec_eval_does() -> None:
    expected = [{"id": "high", "grade": 3}, {"id": "low", "grade": 1}]
    assert metrics_at_k(expected, ["low", "high"], 5)["ndcg@5"] == pytest.approx(0.7967075809905066, abs=1e-12)
    assert metrics_at_k({"high": 3, "low": 1}, ["low", "high"], 5) == metrics_at_k(expected, ["low", "high"], 5)


def test_a_grade_below_one_is_no_relevance_but_still_some_gain() -> None:
    found = metrics_at_k(["a", "b"], ["b"], 2, [1.0, 0.5])
    assert found["hit_rate@2"] == 0.0
    assert found["ndcg@2"] == pytest.approx(0.5 / (1 + 0.5 / math.log2(3)))
    assert set(metrics_at_k(["b"], ["b"], 2, [0.5]).values()) == {None}


def test_repeated_ids_count_once_and_a_null_keeps_its_rank() -> None:
    assert metrics_at_k(["b"], ["a", "a", "a", "b"], 2)["mrr@2"] == 0.5
    assert metrics_at_k(["b"], [None, None, "b"], 3)["mrr@3"] == pytest.approx(1 / 3)
    assert metrics_at_k(["x"], ["", "x"], 2)["mrr@2"] == 0.5


def test_a_null_in_expected_is_an_error_that_names_the_row() -> None:
    rows = [
        {"query_id": "a", "expected": ["x"], "retrieved": []},
        {"query_id": "c", "expected": [None], "retrieved": [None]},
    ]
    with pytest.raises(UserError, match=r"row 2: .*null"):
        list(stage_retrieval(rows, [5], summary=False))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"expected": ["a"]}, "row 1: retrieved must be a list"),
        ({"expected": ["a"], "retrieved": None}, "row 1: retrieved must be a list"),
        ({"expected": "a", "retrieved": []}, "row 1: expected must be a list"),
        ({"expected": [["a"]], "retrieved": []}, "row 1: an id is text or a number"),
        ({"expected": [{"id": "a", "grade": "high"}], "retrieved": []}, "row 1: a grade is a finite number"),
        ({"expected": [{"id": "a", "grade": float("nan")}], "retrieved": []}, "row 1: a grade is a finite number"),
        ({"expected": ["a"], "grades": [1, 2], "retrieved": []}, "row 1: 1 expected ids and 2 grades"),
        ([1], "row 1: must be an object"),
    ],
)  # fmt: skip
def test_wrong_rows_are_named(row: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        list(stage_retrieval([row], [5], summary=False))  # type: ignore[list-item]


def test_the_summary_says_how_many_were_not_applicable() -> None:
    rows = [
        {"query_id": "a", "expected": ["d1"], "retrieved": ["d1"]},
        {"query_id": "b", "expected": ["d2"], "retrieved": []},
        {"query_id": "c", "expected": [], "retrieved": ["d9"]},
    ]
    (summary,) = stage_retrieval(rows, [5], summary=True)
    assert summary["queries"] == 3
    assert summary["hit_rate@5"] == {"mean": 0.5, "n": 2, "not_applicable": 1}
    (nothing,) = stage_retrieval([], [5], summary=True)
    assert nothing["mrr@5"] == {"mean": None, "n": 0, "not_applicable": 0}


@pytest.mark.parametrize("case", ["retrieval-short-list", "retrieval-missing-in-the-mean", "retrieval-id-types"])
def test_field_case(case: str, shared) -> None:  # type: ignore[no-untyped-def]
    folder = shared / "cases" / "cases" / case
    wanted = json.loads((folder / "expect.json").read_text("utf-8"))
    rows = [json.loads(line) for line in (folder / "in.jsonl").read_text("utf-8").split("\n") if line.strip()]
    found = {row["query_id"]: row for row in stage_retrieval(rows, [5], summary=False)}
    for query, metrics in wanted["rows"].items():
        for name, value in metrics.items():
            assert found[query][name] == (None if value is None else pytest.approx(value, abs=1e-9)), (query, name)
    (summary,) = stage_retrieval(rows, [5], summary=True)
    for name, value in wanted.get("summary", {}).items():
        assert summary[name]["mean"] == pytest.approx(value)
