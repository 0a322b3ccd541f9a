"""How labels are spelt: the field case agreement-label-spellings and its kind."""

import json

import pytest

from ragbench_dagster.calibration.agreement import stage_agreement
from ragbench_dagster.calibration.labelled_answers import MISSING, lookup
from ragbench_dagster.errors import UserError


def row(human, judge):
    return {"human": {"f": human}, "judge": {"m": judge}}


def agree(rows, threshold=None):
    return stage_agreement(rows, "human.f", "judge.m", threshold)


@pytest.mark.parametrize("one", [True, 1, 1.0])
@pytest.mark.parametrize("zero", [False, 0, 0.0])
def test_spellings_of_one_and_zero_are_one_value(one, zero):
    found = agree([row(one, zero), row(zero, one), row(one, one)])
    assert found["table"] == {"tp": 1, "fp": 1, "fn": 1, "tn": 0}


def test_null_and_missing_are_left_out_and_counted():
    rows = [row(1, 1), row(None, 1), {"human": {}, "judge": {"m": 0}}, {}, row(0, None), row(0, 0)]
    found = agree(rows)
    assert (found["n"], found["left_out"]) == (2, 4)
    assert found["left_out_by"] == {"no_human_label": 3, "no_verdict": 1}


@pytest.mark.parametrize("label", ["unsure", "yes", "1", "", [1], {"a": 1}, 2, 0.5, float("nan"), float("inf")])
def test_any_other_label_is_one_line_that_names_the_row_and_never_repeats_it(label):
    with pytest.raises(UserError, match=r"^row 2: human\.f is ") as fault:
        agree([row(1, 1), row(label, 0)])
    assert "unsure" not in str(fault.value).replace("null for unsure", "")


@pytest.mark.parametrize("score", [0.7, 4, -1])
def test_a_score_needs_a_threshold(score):
    with pytest.raises(UserError, match=r"^row 1: judge\.m is not 0 or 1.*--threshold"):
        agree([row(1, score)])
    assert agree([row(1, score)], threshold=score)["table"]["tp"] == 1


@pytest.mark.parametrize("score", ["0.7", [0.7], float("nan")])
def test_a_score_that_is_no_number_is_an_error_with_or_without_threshold(score):
    with pytest.raises(UserError, match=r"^row 1: judge\.m"):
        agree([row(1, score)], threshold=0.5)


def test_the_longest_key_of_a_path_wins():
    tree = {"judge": {"gpt-4": {"1": "short"}, "gpt-4.1": "long"}, "a.b": {"c": 1}, "a": {"b.c": 2}}
    assert lookup(tree, "judge.gpt-4.1") == "long"
    assert lookup(tree, "a.b.c") == 1
    assert lookup(tree, "judge.gpt-5") is MISSING
    assert lookup({"x": 3}, "x.y") is MISSING


def test_one_class_gives_null_with_a_reason_in_strict_json():
    """Field case agreement-one-class: kappa is 0/0 there."""
    found = agree([row(1, 1)] * 20)
    assert (found["n"], found["accuracy"], found["kappa"], found["specificity"]) == (20, 1.0, None, None)
    assert "label some" in found["reason"]
    assert found["ci"]["kappa"] is None
    assert found["ci"]["accuracy"][0] == pytest.approx(0.8389, abs=1e-4)  # Wilson 20/20
    json.dumps(found, allow_nan=False)


def test_no_rows_give_nulls():
    found = agree([])
    assert (found["n"], found["accuracy"], found["kappa"]) == (0, None, None)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("case", ["agreement-label-spellings", "agreement-one-class"])
def test_field_cases(shared, case):
    folder = shared / "cases" / "cases" / case
    lines = (folder / "in.jsonl").read_text(encoding="utf-8").split("\n")
    found = stage_agreement([json.loads(x) for x in lines if x.strip()], "human.faithfulness", "judge.m")
    expected = json.loads((folder / "expect.json").read_text(encoding="utf-8"))["values"]
    assert {k: found[k] for k in expected} == expected
