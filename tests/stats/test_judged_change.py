"""A change of verdicts in people's verdicts: reference values, the independent implementation, and the borders."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.correction import JudgeDraws
from ragbench_dagster.stats.judged_change import LabelledStratum, changed_pairs, people_change
from ragbench_dagster.stats.paired import tango
from tests.support.decision_tables import reference

REFERENCE = reference()
JUDGE = (0.55, 0.414914, 0.668847)


def test_change_in_peoples_verdicts():
    low, high = tango(20, 50, 2000)
    assert (low, high) == pytest.approx((-0.023706, -0.006999), abs=1e-6)
    found = people_change(-0.015, low, high, *JUDGE, margin=0.03)
    assert (found.value, *found.interval, found.clearance) == pytest.approx(
        (-0.027273, -0.046841, -0.012478, -0.008103), abs=1e-6
    )
    assert found.usable
    assert not found.passes


def test_the_reference_judge_is_that_of_its_table():
    youden = JudgeDraws.of(Table(133, 24, 7, 36)).youden
    assert youden == pytest.approx(JUDGE[1:], abs=0.004)


@pytest.mark.skipif(REFERENCE is None, reason="no tools/decision_reference.py")
@given(
    gains=st.integers(0, 80),
    losses=st.integers(0, 80),
    n=st.integers(160, 3000),
    youden=st.floats(0.2, 0.95),
    below=st.floats(0.01, 0.9),
    above=st.floats(0.01, 0.6),
    margin=st.floats(0.01, 0.2),
)
@settings(max_examples=200, deadline=None)
def test_it_equals_the_independent_implementation(gains, losses, n, youden, below, above, margin):
    low, high = youden * (1 - below), youden + above  # J's lower end above 0, its upper end up to more than twice J
    raw = (gains - losses) / n
    value, interval, clearance = REFERENCE.corrected_change(gains, losses, n, youden, low, high, margin)
    found = people_change(raw, *tango(gains, losses, n), youden, low, high, margin)
    assert (found.value, found.clearance) == pytest.approx((max(-1, min(1, value)), clearance), abs=1e-7)
    assert found.interval == pytest.approx(tuple(np.clip(interval, -1, 1)), abs=1e-6)  # ours ends with the scale


@pytest.mark.parametrize(("gains", "losses"), [(20, 50), (50, 20), (0, 3), (30, 30), (0, 0)])
def test_swapping_the_nights_turns_the_interval(gains, losses):
    one = people_change((gains - losses) / 500, *tango(gains, losses, 500), *JUDGE)
    other = people_change((losses - gains) / 500, *tango(losses, gains, 500), *JUDGE)
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]), abs=1e-9)
    assert one.clearance is None
    assert not one.passes


def test_a_perfect_judge_leaves_the_raw_interval():
    low, high = tango(20, 50, 2000)
    found = people_change(-0.015, low, high, 1.0, 1.0, 1.0, 0.03)
    assert found.interval == pytest.approx((low, high))
    assert found.passes == (low > -0.03)


def test_a_judge_that_may_see_nothing_excludes_nothing():
    blind = people_change(-0.01, -0.02, 0.0, 0.05, -0.1, 0.2, 0.03)
    assert blind.interval == (-1.0, 1.0)
    assert not blind.usable
    reverse = people_change(-0.01, -0.02, 0.0, -0.2, -0.4, -0.1, 0.03)
    assert (reverse.value, reverse.interval, reverse.passes) == (None, None, False)
    weak = people_change(0.2, 0.18, 0.22, 0.3, 0.09, 0.5, 0.03)
    assert weak.clearance > 0
    assert not weak.passes  # the lower end of J does not exceed .1


def test_a_loss_of_the_margin_is_rarely_passed_with_a_weak_judge():
    """At a true loss of .03 and (.95, .6) verdicts alone pass it in more than half of the nights."""
    rng = np.random.default_rng(5)
    n, passes, raw_passes, cover = 2000, 0, 0, 0
    judges = []
    for _ in range(60):
        tp, tn = rng.binomial(140, 0.95), rng.binomial(60, 0.6)
        judges.append((tp / 140 + tn / 60 - 1, *JudgeDraws.of(Table(tp, 60 - tn, 140 - tp, tn), 2000).youden))
    for night in range(600):
        # 30 % of the answers change; the rest keep their verdict
        old, new = rng.random(600) < 0.75, rng.random(600) < 0.65
        first, second = (rng.random(600) < np.where(x, 0.95, 0.4) for x in (old, new))
        gains, losses = int((second & ~first).sum()), int((first & ~second).sum())
        raw, (low, high) = (gains - losses) / n, tango(gains, losses, n)
        found = people_change(raw, low, high, *judges[night % 60], margin=0.03)
        passes += found.passes
        raw_passes += low > -0.03
        cover += found.interval[0] <= -0.03 <= found.interval[1]
    assert raw_passes / 600 > 0.4
    assert passes / 600 < 0.05
    assert cover / 600 > 0.92


def test_labels_on_changed_pairs():
    strata = [LabelledStratum(60, 20, 2, 8), LabelledStratum(90, 3, 22, 5), LabelledStratum(400, 6, 9, 45)]
    found = changed_pairs(strata, 1450)
    assert found.value == pytest.approx((60 * 18 / 30 - 90 * 19 / 30 - 400 * 3 / 60) / 2000)
    assert found.interval[0] < found.value < found.interval[1]
    assert found.labelled == 120
    assert 0.05 < found.p_loss < 0.15  # the interval just holds 0
    assert changed_pairs([LabelledStratum(200, 0, 25, 5)], 800).p_loss < 0.001


def test_changed_pairs_need_a_label_of_every_kind_of_change():
    assert changed_pairs([LabelledStratum(10, 0, 0, 0), LabelledStratum(5, 0, 5, 0)], 50) is None
    assert changed_pairs([], 0) is None
    nothing = changed_pairs([LabelledStratum(0, 0, 0, 0)], 200)
    assert (nothing.value, nothing.p_loss, nothing.labelled) == (0, 1.0, 0)
    assert nothing.interval == (0, 0)


def test_changed_pairs_cover_where_the_judge_errs_otherwise_on_the_new_answers():
    """Verdicts say nothing is lost; people see it. 25 + 25 + 50 of 700."""
    rng = np.random.default_rng(8)
    cover = 0
    for _ in range(300):
        old, new = rng.random(350) < 0.75, rng.random(350) < 0.69
        first = rng.random(350) < np.where(old, 0.95, 0.15)
        second = rng.random(350) < np.where(new, 0.95, 0.4)
        strata = []
        for rows, wanted in ((second & ~first, 25), (first & ~second, 25), (first == second, 50)):
            at = np.flatnonzero(rows)
            drawn = rng.permutation(at)[:wanted]
            better, worse = (int(x[drawn].sum()) for x in (new & ~old, old & ~new))
            strata.append(LabelledStratum(len(at), better, worse, len(drawn) - better - worse))
        low, high = changed_pairs(strata, 350, draws=2000).interval
        cover += low <= -0.03 <= high
    assert cover / 300 >= 0.92
