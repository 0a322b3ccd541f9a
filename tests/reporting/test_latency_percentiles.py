"""Percentiles of times with distribution-free intervals."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragbench_dagster.reporting.latency import histogram, late_share_p, percentile, provable_excess


def test_percentile_is_numpys():
    values = np.sort(np.random.default_rng(1).lognormal(5, 1, 333))
    for q in (50, 95, 99):
        assert percentile(values, q)[0] == pytest.approx(np.percentile(values, q))


@pytest.mark.parametrize(("q", "n"), [(50, 50), (95, 200), (99, 600)])
def test_the_interval_covers_the_true_percentile(q, n):
    rng = np.random.default_rng(2)
    truth = -np.log(1 - q / 100)  # of the exponential distribution
    hits = 0
    for _ in range(1500):
        _, low, high = percentile(np.sort(rng.exponential(1, n)), q)
        hits += (low is None or low <= truth) and (high is None or truth <= high)
    assert hits / 1500 >= 0.945


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=40), st.sampled_from([50, 95, 99]) | st.floats(0.1, 99.9))
@example([100.0, 900.0], 99)
@example([100.0], 99)
def test_a_percentile_lies_in_its_own_interval(values, q):
    """At two answers the p99's lower end was the larger of them, above the figure beside it."""
    value, low, high = percentile(np.sort(np.array(values)), q)
    assert low is None or low <= value
    assert high is None or value <= high


def test_too_few_values_have_no_upper_end():
    assert percentile(np.arange(71.0), 95)[2] is None
    assert percentile(np.arange(72.0), 95)[2] == 71.0
    assert percentile(np.array([]), 95) == (None, None, None)


def test_late_answers_are_a_binomial_count():
    stats = pytest.importorskip("scipy.stats")
    values = np.sort(np.r_[np.full(180, 10.0), np.full(20, 9000.0)])
    expected = stats.binomtest(20, 200, 0.05, alternative="greater").pvalue
    assert late_share_p(values, 95, 4000) == pytest.approx(expected, rel=1e-9)
    assert late_share_p(values, 95, 9000) == 1.0


def test_histogram_counts_every_value():
    values = np.sort(np.random.default_rng(3).lognormal(5, 1, 400))
    assert sum(histogram(values)["counts"]) == 400
    assert sum(histogram(np.zeros(5))["counts"]) == 5
    assert histogram(np.array([])) is None


@pytest.mark.parametrize(("q", "level"), [(95, 0.05), (95, 0.00025), (50, 0.05)])
def test_the_smallest_provable_excess_is_the_edge_of_the_test(q, level):
    values = np.sort(np.random.default_rng(5).lognormal(6, 0.5, 400))
    excess = provable_excess(values, q, level)
    edge = np.quantile(values, q / 100) - excess
    assert late_share_p(values, q, edge - 1e-6) <= level
    assert late_share_p(values, q, edge + 1e-6) > level


def test_nothing_can_be_proven_with_three_answers():
    assert provable_excess(np.array([1.0, 2.0, 3.0]), 50, 0.01) is None
