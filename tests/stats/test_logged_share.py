"""What production answered: logged requests with their own answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.stats.power import fail_level
from ragbench_dagster.stats.request_share import logged_share
from tests.support.decision_tables import column, reference

REFERENCE = reference()
Y = column(1, 1, 0, 1, 1, 0, 1, 1, 1, 1)
W = column(10, 10, 10, 10, 10, 10, 2, 2, 2, 2)


def test_reference_value():
    found = logged_share(Y, W)
    assert (found.value, found.variance, found.n) == pytest.approx((0.705882, 0.026281, 7.899772), abs=1e-6)
    assert found.interval == pytest.approx((0.369332, 0.907713), abs=1e-6)
    assert (found.sampled, found.requests) == (10, 68)


@pytest.mark.skipif(REFERENCE is None, reason="no tools/decision_reference.py")
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_it_equals_the_independent_implementation(seed, n):
    rng = np.random.default_rng(seed)
    y, w = (rng.random(n) < 0.7).astype(float), rng.choice([1.5, 2.0, 10.0], n)
    value, variance, effective, interval = REFERENCE.logged(y, w)
    found = logged_share(y, w)
    assert (found.value, found.variance, found.n) == pytest.approx((value, variance, effective))
    assert found.interval == pytest.approx(interval, abs=1e-9)
    assert logged_share(y, w, rng.permutation(n)) == found


def test_a_day_that_was_judged_whole_is_known_exactly():
    found = logged_share(Y, np.ones(10))
    assert found.interval == (found.value, found.value)


def test_a_user_who_asks_ten_times_is_one_user():
    rng = np.random.default_rng(0)
    fate, users = rng.random(30) < 0.7, np.repeat(np.arange(30), 10)
    y, w = fate[users].astype(float), np.full(300, 10.0)
    alone, together = logged_share(y, w), logged_share(y, w, users)
    assert together.n == pytest.approx(30, rel=0.05)
    assert alone.n > 250
    assert together.clusters == 30
    assert logged_share(y, w, np.zeros(300, dtype=int)).interval == (0.0, 1.0)


def test_no_request_has_no_share():
    assert logged_share(column(), column()) is None


def test_requests_of_a_broken_topic_are_estimated_without_bias():
    """A topic of a third of the requests breaks for two of seven days; days are sampled by quota."""
    rng = np.random.default_rng(3)
    values, cover = [], 0
    for _ in range(300):
        n = rng.integers(250, 350, 7)
        ys, ws, truth = [], [], []
        for day, size in enumerate(n):
            topic = rng.random(size) < 1 / 3
            right = rng.random(size) < np.where(topic & (day > 4), 0.1, 0.85)
            kept = rng.permutation(size)[: max(30, size // 10)]
            ys.append(right[kept].astype(float))
            ws.append(np.full(len(kept), size / len(kept)))
            truth.append(right)
        true = float(np.concatenate(truth).mean())
        found = logged_share(np.concatenate(ys), np.concatenate(ws))
        values.append(found.value - true)
        cover += found.interval[0] <= true <= found.interval[1]
    assert abs(np.mean(values)) < 0.004
    assert cover / 300 >= 0.92


def test_the_level_of_a_month_is_a_thirtieth():
    assert fail_level("night") == 0.05
    assert fail_level("month") == pytest.approx(0.05 / 30)
