"""Any weight and any scale: an interval holds its value, and no weight overflows."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.evaluation import EvaluationResult

from ragbench_dagster.calibration.labelled_answers import read_calibration
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge import imported
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.stats.clustering import clustered_change, clustered_estimate
from ragbench_dagster.stats.correction import LabelledSample, humans_only
from ragbench_dagster.stats.intervals import estimate, kish, linearised_variance, mean_interval, scale
from ragbench_dagster.stats.paired import compare
from ragbench_dagster.store import Workspace

WEIGHTS = st.floats(1e-3, 1e6) | st.sampled_from([1e-300, 1e150, 1e200, 1e300])
SCORES = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 7.0, -3.0])


@given(st.lists(st.tuples(SCORES, WEIGHTS), min_size=1, max_size=30), st.booleans())
@example([(0.2, 1e200), (0.9, 1.0), (0.4, 1.0)], False)
@example([(1.0, 1e200), (0.0, 1.0)], True)
@example([(7.0, 1.0), (9.0, 1.0), (8.0, 1.0)], False)
def test_an_estimate_lies_in_its_interval_on_any_scale_with_any_weights(rows, binary) -> None:
    values, weights = (np.array(column) for column in zip(*rows, strict=True))
    if binary:
        values = (values > 0).astype(float)
    clusters = np.arange(len(values)) // 2
    for found in (
        estimate(values, weights, binary),
        clustered_estimate(values, None, weights, binary),
        clustered_estimate(values, clusters, weights, binary),
    ):
        slack = 1e-9 * (1 + abs(found.value))
        assert np.isfinite(found.value)
        assert np.isfinite(found.n_effective)
        if found.interval is not None:
            low, high = found.interval
            assert low - slack <= found.value <= high + slack


@given(st.lists(st.tuples(SCORES, SCORES, WEIGHTS), min_size=2, max_size=30))
@example([(1.0, 7.0, 1.0), (1.0, 9.0, 1.0), (1.0, 8.0, 1.0)])
def test_a_change_lies_in_its_interval_on_any_scale(rows) -> None:
    old, new, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = [compare(old, new, False), clustered_change(old, new, np.arange(len(old)) // 2, False, weights)]
    for change in found:
        if change.interval is not None:
            slack = 1e-9 * (1 + abs(change.value))
            assert change.interval[0] - slack <= change.value <= change.interval[1] + slack


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=20), st.sampled_from([1e-200, 1e-9, 1e9, 1e200, 1e290]))
def test_only_the_ratios_of_weights_count(weights, factor) -> None:
    w, values = np.array(weights), np.linspace(0, 1, len(weights))
    assert kish(w * factor) == pytest.approx(kish(w), rel=1e-9)
    assert linearised_variance(values, w * factor) == pytest.approx(linearised_variance(values, w), rel=1e-9)
    plain, scaled = estimate(values, w), estimate(values, w * factor)
    assert scaled.value == pytest.approx(plain.value, rel=1e-9)
    assert (scaled.interval or (0, 0)) == pytest.approx(plain.interval or (0, 0), rel=1e-9)


def test_a_heavy_row_is_one_row() -> None:
    found = estimate(np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 1e200]))
    assert (found.value, found.interval) == (1.0, (0.0, 1.0))
    assert found.n_effective == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("values", "bounds", "expected"),
    [
        ([0.0, 1.0], (0.0, 1.0), (0.0, 1.0)),
        ([0.5], (0.0, 1.0), (0.0, 1.0)),
        ([], (0.0, 1.0), (0.0, 1.0)),
        ([0.5, 1.01], (0.0, 1.0), None),
        ([-0.01, 0.5], (0.0, 1.0), None),
        ([7.0], (0.0, 1.0), None),
        ([0.5], None, None),
        ([-1.0, 1.0], (-1.0, 1.0), (-1.0, 1.0)),
        ([-6.0, 6.0], (-1.0, 1.0), None),
    ],
)
def test_the_ends_of_a_scale_hold_for_values_on_it(values, bounds, expected) -> None:
    assert scale(np.array(values), bounds) == expected


def test_a_mean_beyond_the_scale_is_not_cut_to_it() -> None:
    low, high = mean_interval(8.0, 0.1, 0.0, 20)
    assert low < 8.0 < high


@pytest.mark.parametrize("weight", [0, -1, 1e200, 1e10, "nan", "inf", "heavy", None, [1], True and 2e9])
def test_a_drawn_row_of_an_impossible_weight_is_refused_by_its_line(tmp_path, weight) -> None:
    (tmp_path / "calibration").mkdir()
    sample = {"release": "r", "system": "s", "example_id": "e", "answer_hash": "h", "weight": weight}
    row = {"query": "q", "response": "a", "human": {"correctness": 1}, "sample": sample}
    path = tmp_path / "calibration" / "drawn.jsonl"
    path.write_text(json.dumps({**row, "sample": {**sample, "weight": 2.5}}) + "\n" + json.dumps(row), encoding="utf-8")
    with pytest.raises(UserError, match=r"^drawn\.jsonl: line 2: sample"):
        read_calibration(Workspace(tmp_path, parse_settings("")))


@pytest.mark.parametrize("weight", [1, 1.0, 0.5, 1e9, "3"])
def test_a_possible_weight_is_kept(tmp_path, weight) -> None:
    (tmp_path / "calibration").mkdir()
    sample = {"release": "r", "system": "s", "example_id": "e", "answer_hash": "h", "weight": weight}
    row = {"query": "q", "response": "a", "human": {"correctness": 1}, "sample": sample}
    (tmp_path / "calibration" / "drawn.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (found,) = read_calibration(Workspace(tmp_path, parse_settings("")))
    assert found.sample.weight == float(weight)


def test_labels_of_one_heavy_row_are_one_label() -> None:
    sample = LabelledSample(np.array([1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]), np.array([1e9, 1.0, 1.0]))
    found = humans_only(sample, "a reason")
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert found.interval[0] < 0.3


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf"), 1e13, -1e200, 1e308])
def test_a_score_beyond_any_scale_is_no_verdict(score) -> None:
    assert imported._verdict(EvaluationResult(score=score)).status == "unparsable"


@pytest.mark.parametrize("score", [7.0, -3.0, 0.0, 1e12])
def test_a_score_on_a_scale_of_its_own_is_kept(score) -> None:
    assert imported._verdict(EvaluationResult(score=score)).score == score
