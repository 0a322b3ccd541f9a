"""Per request: reference values, the independent implementation, and the borders."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.stats.request_share import (
    broken_head,
    heavy_questions,
    judge_noise_n,
    request_change,
    request_floor_p,
    request_share,
)
from tests.support.decision_tables import column, reference, requests

W = column(120, 60, 30, 10, 10, 10, 4, 2)
C = column(12, 6, 3, 1, 1, 1, 4, 2)
Y = column(1, 1, 0, 1, 0, 1, 1, 0)
B = column(1, 0, 0, 1, 1, 1, 1, 0)
REFERENCE = reference()
needs_reference = pytest.mark.skipif(REFERENCE is None, reason="no tools/decision_reference.py")
# the reference divides by zero at the borders that are tested by hand here
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:decision_reference")


def test_share_of_requests():
    found = request_share(Y, W, C)
    assert found.value == pytest.approx(0.829268, abs=1e-6)
    assert found.variance == pytest.approx(0.005533, abs=1e-6)
    assert found.n == pytest.approx(25.586433, abs=1e-6)
    assert found.interval == pytest.approx((0.643705, 0.928867), abs=1e-6)
    assert (found.requests, found.questions) == (30, 8)


def test_share_of_the_window_alone():
    found = request_share(Y, W, C, finite=True)
    assert (found.variance, found.n) == pytest.approx((0.004958, 28.556602), abs=1e-6)
    assert found.interval == pytest.approx((0.654906, 0.925548), abs=1e-6)


def test_judge_noise():
    found = judge_noise_n(C, 0.8, 0.9, 0.8)
    assert (found.together, found.passing, found.variance, found.n) == pytest.approx(
        (0.209195, 0.857143, 0.020920, 6.094571), abs=1e-6
    )


def test_weights_in_proportion_to_requests_change_nothing_in_the_judges_noise():
    assert judge_noise_n(C, 0.8, 0.9, 0.8, w=10 * C).together == pytest.approx(0.209195, abs=1e-6)
    some = np.arange(8) < 1
    assert judge_noise_n(C, 0.8, 0.9, 0.8, labelled=some).variance < judge_noise_n(C, 0.8, 0.9, 0.8).variance
    assert judge_noise_n(C, 0.8, 0.9, 0.8, labelled=np.ones(8, dtype=bool)).variance == 0
    assert judge_noise_n(column(1, 1, 1), 0.8, 0.9, 0.8).variance == 0  # each question asked once: in q(1-q)/m


def test_the_judges_noise_widens_the_share():
    plain = request_share(Y, W, C)
    noisy = request_share(Y, W, C, judge_noise=judge_noise_n(C, plain.value, 0.9, 0.8))
    assert noisy.n < plain.n
    assert noisy.interval[0] < plain.interval[0]
    everything = request_share(np.ones(8), W, C, judge_noise=judge_noise_n(C, 1.0, 0.9, 0.8))
    assert everything.interval[1] == 1


@pytest.mark.parametrize(
    ("options", "variance", "n", "low", "high", "p"),
    [
        ({"noise": False}, None, 24.692055, -0.412730, 0.008815, None),
        ({}, 0.070992, 3.426329, -0.705259, 0.456742, 0.222781),
        ({"heavy": np.arange(8) < 2}, 0.011503, 21.145076, -0.429992, 0.030236, 0.029043),
    ],
)
def test_change_of_requests(options, variance, n, low, high, p):
    found = request_change(Y, B, W, C, **options)
    assert found.value == pytest.approx(-0.203252, abs=1e-6)
    assert (found.n, *found.interval) == pytest.approx((n, low, high), abs=1e-6)
    if variance is not None:
        assert found.variance == pytest.approx(variance, abs=1e-6)
        assert found.p_loss == pytest.approx(p, abs=1e-6)


@needs_reference
@given(table=requests(), graded=st.booleans(), finite=st.booleans())
@settings(max_examples=150, deadline=None)
def test_share_equals_the_independent_implementation(table, graded, finite):
    w, c, rng = table
    y = rng.choice([0, 0.2, 0.7, 1.0], len(w)) if graded else (rng.random(len(w)) < 0.7).astype(float)
    if finite and (w == c).all():
        return
    value, variance, n, interval = REFERENCE.per_request(y, w, c, finite)
    found = request_share(y, w, c, finite)
    assert (found.value, found.variance, found.n) == pytest.approx((value, variance, n), abs=1e-9, rel=1e-9)
    assert found.interval == pytest.approx(interval, abs=1e-9)


@needs_reference
@given(table=requests(), several=st.booleans())
@settings(max_examples=150, deadline=None)
def test_change_equals_the_independent_implementation(table, several):
    w, c, rng = table
    heavy = heavy_questions(w) & (rng.random(len(w)) < 0.5)
    a, b = ((rng.random(len(w)) < 0.7).astype(float) for _ in "ab")
    if several:
        a[heavy], b[heavy] = (rng.integers(0, 6, int(heavy.sum())) / 5 for _ in "ab")
    value, variance, n, interval, p = REFERENCE.per_request_change(a, b, w, c, heavy if several else None, 5)
    found = request_change(a, b, w, c, heavy if several else None, 5)
    assert (found.value, found.variance, found.n) == pytest.approx((value, variance, n), abs=1e-9, rel=1e-9)
    assert found.interval == pytest.approx(interval, abs=1e-8)
    if variance > 1e-12:  # else the last bit of a float decides between no change and a sure one
        assert found.p_loss == pytest.approx(p, abs=1e-9)


@needs_reference
@given(table=requests(), q=st.floats(0.05, 0.95), se=st.floats(0.6, 1), sp=st.floats(0.6, 1))
@settings(max_examples=100, deadline=None)
def test_judge_noise_equals_the_independent_implementation(table, q, se, sp):
    _, c, _ = table
    found = judge_noise_n(c, q, se, sp)
    assert (found.together, found.passing, found.variance, found.n) == pytest.approx(
        REFERENCE.judge_noise(c, q, se, sp), rel=1e-9
    )


def test_among_many_tests_one_question_proves_only_what_five_asks_can():
    """5 of 5 right and then 0 of 5: a coin does that in 1 of 512 nights, so not even a heavy question proves more."""
    w = np.full(400, 10.0)
    w[:8] = 400.0
    c, before = w / 10, np.ones(400)
    heavy = heavy_questions(w)
    one, three = before.copy(), before.copy()
    one[0], three[:3] = 0.0, 0.0
    alone, several = (request_change(before, after, w, c, heavy) for after in (one, three))
    assert alone.p_loss < 1e-6
    assert 0.05 / 220 < alone.p_joint < 0.05 / 25
    assert several.p_joint < 0.05 / 220
    assert request_change(before, before, w, c, heavy).p_joint == 1.0


def test_a_floor_is_tested_on_the_effective_requests():
    found = request_share(Y, W, C)
    by_hand = NormalDist().cdf((0.829268 - 0.95) / (0.95 * 0.05 / 25.586433) ** 0.5)
    assert request_floor_p(found.value, found.n, 0.95) == pytest.approx(by_hand, abs=1e-7)
    assert request_floor_p(found.value, found.n, found.value) == pytest.approx(0.5)
    assert request_floor_p(0.1, 40, 0.05, ceiling=True) == pytest.approx(request_floor_p(0.9, 40, 0.95))


def test_floors_at_the_ends_of_the_scale():
    assert request_floor_p(1.0, 30, 1.0) == 1.0
    assert request_floor_p(0.99, 30, 1.0) == 0.0
    assert request_floor_p(0.0, 30, 0.0) == 1.0


def test_every_request_lost_is_a_loss_with_and_without_noise():
    """Without spread there is no variance to divide by; the loss is plain all the same."""
    for noise in (True, False):
        found = request_change(np.ones(8), np.zeros(8), W, C, noise=noise)
        assert found.value == -1
        assert found.p_loss < 0.05
        assert found.interval[1] < 0
    assert request_change(np.ones(8), np.ones(8), W, C).p_loss == 1.0
    assert request_change(np.zeros(8), np.ones(8), W, C, noise=False).p_loss == 1.0


def test_a_window_taken_whole_is_known_exactly():
    found = request_share(Y, C, C, finite=True)
    assert found.variance == 0


def test_nothing_asked_has_no_share():
    none = column()
    assert request_share(none, none, none) is None
    assert request_change(none, none, none, none) is None


def test_the_most_asked_that_broke_are_listed_by_their_share():
    before = column(1, 1, 0.8, 1, 0, 1, 1, 1)
    after = column(0.2, 1, 0.0, 0.4, 0, 0, 0, 0)
    found = broken_head(before, after, W, head=6)
    assert found.rows.tolist() == [0, 2, 5]
    assert found.share == pytest.approx(160 / 246)
    assert found.head == 6
    assert broken_head(after, before, W).rows.tolist() == []


def test_heavy_questions_are_those_of_half_a_percent():
    w = np.full(1000, 1.0)
    w[0] = 6
    assert heavy_questions(w).sum() == 1
    assert heavy_questions(W).all()
