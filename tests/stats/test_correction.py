"""When a pass rate may be corrected for the judge, and when the correction is refused with a remedy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.correction import JudgeDraws, LabelledSample, from_labels, humans_only, rogan_gladen

GOOD = Table(tp=95, fp=10, fn=5, tn=90)


def test_correction_moves_the_rate_towards_what_people_would_say():
    """Sensitivity .95, specificity .60: a judged .84 means a true .80."""
    judge = JudgeDraws.of(Table(tp=95, fp=40, fn=5, tn=60))
    found = rogan_gladen(0.84 * 2000, 2000, judge)
    assert found.value == pytest.approx(0.80, abs=1e-9)
    assert found.interval[0] < 0.80 < found.interval[1]
    assert found.method == "calibration"


def test_too_few_rows_of_a_class_ask_for_labels_of_that_class():
    refusal = JudgeDraws.of(Table(tp=90, fp=1, fn=5, tn=8)).refusal()
    assert "only 9" in refusal
    assert "bad" in refusal
    assert (
        JudgeDraws.of(Table(tp=8, fp=1, fn=1, tn=90))
        .refusal()
        .startswith("only 9 labelled answers that people call good")
    )


def test_a_judge_that_cannot_tell_is_refused():
    judge = JudgeDraws.of(Table(tp=60, fp=45, fn=40, tn=55))
    assert "too weakly" in judge.refusal()
    found = rogan_gladen(50, 100, judge)
    assert (found.value, found.interval, found.method) == (None, None, "none")


def test_calibration_rows_that_describe_other_answers_are_refused():
    """A judge with specificity .6 must pass 40 % of bad answers; one that passes 1 of 2,000 is not that judge."""
    judge = JudgeDraws.of(Table(tp=95, fp=40, fn=5, tn=60))
    found = rogan_gladen(1, 2000, judge)
    assert found.interval is None
    assert "do not describe these answers" in found.reason


def test_refusal_is_rare_where_the_calibration_rows_fit():
    """At a true rate of .97 and (.95, .6): .002 of 1,000 valid nights are refused."""
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(300):
        table = Table(tp=(t := rng.binomial(100, 0.95)), fn=100 - t, tn=(b := rng.binomial(100, 0.6)), fp=100 - b)
        passing = rng.binomial(200, 0.97 * 0.95 + 0.03 * 0.4)
        refused += rogan_gladen(passing, 200, JudgeDraws.of(table)).interval is None
    assert refused <= 4


def test_no_answer_gives_no_figure():
    assert rogan_gladen(0, 0, JudgeDraws.of(GOOD)).value is None


def test_people_alone_where_the_judge_adds_nothing():
    sample = LabelledSample(np.ones(100), np.array([1.0] * 80 + [0.0] * 20), np.ones(100))
    found = humans_only(sample, "too weak")
    assert found.value == pytest.approx(0.8)
    assert found.interval == pytest.approx((0.7111708, 0.8666331), abs=5e-7)  # R: prop.test(80, 100, correct = FALSE)


def test_weights_of_the_labelled_sample_are_honoured():
    """Rows that stand for four answers each count four times in the point, and less in its certainty."""
    verdicts = np.ones(1000)
    human = np.array([1.0] * 50 + [0.0] * 50)
    heavy = LabelledSample(np.ones(100), human, np.array([4.0] * 50 + [1.0] * 50))
    equal = LabelledSample(np.ones(100), human, np.ones(100))
    weighted, plain = from_labels(verdicts, None, heavy), from_labels(verdicts, None, equal)
    assert weighted.value == pytest.approx(0.8)
    assert plain.value == pytest.approx(0.5)
    assert np.ptp(weighted.interval) > 0.95 * np.ptp(from_labels(verdicts, None, _share(80)).interval)


def _share(good):
    return LabelledSample(np.ones(100), np.array([1.0] * good + [0.0] * (100 - good)), np.ones(100))


counts = st.integers(0, 400)


@given(counts, counts, counts, counts, st.integers(0, 300), st.integers(0, 300))
def test_corrected_figures_are_shares_with_the_point_inside(tp, fp, fn, tn, passing, failing):
    found = rogan_gladen(passing, passing + failing, JudgeDraws.of(Table(tp, fp, fn, tn), draws=2000))
    if found.interval is None:
        assert found.value is None
        assert found.reason
        return
    low, high = found.interval
    assert 0 <= low <= high <= 1
    assert 0 <= found.value <= 1
