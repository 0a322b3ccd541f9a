"""Several questions about one thing: reference values, the independent implementation, and the borders."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from ragbench_dagster.stats.clustering import (
    clustered_change,
    clustered_estimate,
    floor_p,
    icc,
    independent_n,
    join_clusters,
    sign_flip_p,
)
from ragbench_dagster.stats.intervals import estimate
from ragbench_dagster.stats.paired import compare, mcnemar_loss, mean_below
from tests.support.decision_tables import clustered, column, reference

PASSAGES = np.array([0, 0, 0, 1, 1, 2, 3, 3, 4, 5])
GIANT = np.array([0, 0, 0, 0, 1, 2, 3, 3, 4, 5])
REFERENCE = reference()
needs_reference = pytest.mark.skipif(REFERENCE is None, reason="no tools/decision_reference.py")
# the reference divides by zero at the borders that are tested by hand here
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:decision_reference")


def test_a_share_by_passage():
    found = clustered_estimate(column(1, 1, 0, 1, 1, 1, 0, 0, 1, 1), PASSAGES)
    assert (found.variance, found.clusters_effective, found.correlation, found.n_effective) == pytest.approx(
        (0.031200, 5, 0.310345, 6.730769), abs=1e-6
    )
    assert found.interval == pytest.approx((0.241786, 0.944669), abs=1e-6)
    assert (found.n, found.clusters, found.note) == (10, 6, "only 6 clusters: too few")


def test_the_correlation_bounds_what_a_giant_passage_without_a_failure_claims():
    found = clustered_estimate(column(1, 1, 1, 1, 0, 1, 0, 0, 1, 1), GIANT)
    assert (found.variance, found.clusters_effective, found.correlation, found.n_effective) == pytest.approx(
        (0.049920, 4.166667, 1, 4.166667), abs=1e-6
    )
    assert found.interval == pytest.approx((0.153855, 0.967682), abs=1e-6)


def test_a_change_by_passage():
    d = column(0, -1, -1, 0, 0, 1, 0, -1, 0, 0)
    found = clustered_change((d < 0).astype(float), (d > 0).astype(float), PASSAGES)
    assert (found.value, found.design_effect, found.n_effective) == pytest.approx((-0.2, 1.2, 8.333333), abs=1e-6)
    assert found.interval == pytest.approx((-0.691490, 0.438541), abs=1e-6)
    assert sign_flip_p(d, PASSAGES) == pytest.approx(0.207108, abs=1e-6)
    assert mcnemar_loss(1, 3) == pytest.approx(0.312500, abs=1e-6)
    assert found.p_loss == pytest.approx(0.312500, abs=1e-6)


@needs_reference
@given(table=clustered(), weighted=st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_share_equals_the_independent_implementation(table, weighted):
    clusters, rng = table
    values = (rng.random(clusters.max() + 1) < 0.7)[clusters] ^ (rng.random(len(clusters)) < 0.2)
    values = values.astype(float)
    w = rng.lognormal(0, 1, len(clusters)) if weighted else None
    p, variance, effective, rho, n, interval = REFERENCE.clustered_share(values, clusters, w)
    found = clustered_estimate(values, clusters, w, binary=True)
    assert (found.value, found.variance, found.clusters_effective, found.correlation) == pytest.approx(
        (p, variance, effective, rho), abs=1e-9
    )
    assert found.n_effective == pytest.approx(n, rel=1e-9)
    if effective >= 2:
        assert found.interval == pytest.approx(interval, abs=1e-9)
    assert icc(values, clusters) == pytest.approx(REFERENCE.icc(values, clusters), abs=1e-9)


@needs_reference
@given(table=clustered(), weighted=st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_change_equals_the_independent_implementation(table, weighted):
    clusters, rng = table
    old, new = ((rng.random(len(clusters)) < 0.6).astype(float) for _ in "ab")
    w = rng.lognormal(0, 1, len(clusters)) if weighted else None
    value, deff, effective, n, interval, p = REFERENCE.clustered_change(new - old, clusters, w)
    found = clustered_change(old, new, clusters, True, w)
    assert (found.value, found.design_effect, found.clusters_effective) == pytest.approx((value, deff, effective))
    assert found.n_effective == pytest.approx(n)
    if effective >= 2:
        assert found.interval == pytest.approx(interval, abs=1e-8)
    p = 1.0 if np.isnan(p) else p  # every cluster cancels: no flip gives more
    assert sign_flip_p(new - old, clusters, w) == pytest.approx(p)
    assert found.p_loss >= p - 1e-12


@given(seed=st.integers(0, 2**32 - 1), binary=st.booleans(), weighted=st.booleans())
@settings(max_examples=60, deadline=None)
def test_single_clusters_keep_the_rules_of_independent_rows_exactly(seed, binary, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    draw = (lambda: (rng.random(n) < 0.7).astype(float)) if binary else (lambda: rng.choice([0, 0.3, 0.5, 1.0], n))
    old, new = draw(), draw()
    w = rng.lognormal(0, 1, n) if weighted else None
    for clusters in (None, rng.permutation(n)):
        plain, found = estimate(new, w, binary), clustered_estimate(new, clusters, w, binary)
        assert (found.value, found.interval, found.n, found.n_effective, found.note) == (
            plain.value, plain.interval, plain.n, plain.n_effective, plain.note,
        )  # fmt: skip
        change, own = compare(old, new, binary), clustered_change(old, new, clusters, binary)
        assert (own.value, own.interval, own.p_loss, own.gains, own.losses, own.spread) == (
            change.value, change.interval, change.p_loss, change.gains, change.losses, change.spread,
        )  # fmt: skip
        p = float(special.bdtr(new.sum(), n, 0.8)) if binary else mean_below(new, 0.8)
        assert floor_p(new, 0.8, clusters, binary) == pytest.approx(p, rel=1e-9, abs=1e-300)


def test_a_ceiling_of_single_rows_is_the_binomial_upper_tail():
    values = column(1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
    assert floor_p(values, 0.1, ceiling=True) == pytest.approx(float(special.bdtrc(2, 10, 0.1)))
    assert floor_p(np.zeros(10), 0.1, ceiling=True) == 1.0
    assert floor_p(column(), 0.1) == 1.0


def test_ten_copies_of_a_row_prove_no_more_than_one():
    values, clusters = np.repeat(column(1, 0, 1, 1, 0, 1, 1, 1), 10), np.repeat(np.arange(8), 10)
    found = clustered_estimate(values, clusters)
    assert found.n_effective == pytest.approx(8, rel=0.2)
    assert found.correlation == pytest.approx(1)
    old, new = np.ones(80), values
    assert clustered_change(old, new, clusters).p_loss > 0.05
    assert clustered_change(old, new).p_loss < 1e-5
    assert floor_p(values, 0.95, clusters) > 0.002
    assert floor_p(values, 0.95) < 1e-8


def test_one_cluster_of_everything_says_nothing():
    values, clusters = column(1, 1, 0, 1), np.zeros(4, dtype=int)
    assert clustered_estimate(values, clusters).interval == (0.0, 1.0)
    assert clustered_change(values, np.zeros(4), clusters).interval == (-1.0, 1.0)
    assert clustered_change(values, np.zeros(4), clusters, binary=False).p_loss == 1.0
    assert floor_p(np.zeros(4), 0.9, clusters) == 1.0


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_rows_that_all_agree_count_like_their_clusters(constant):
    values = np.full(10, constant)
    found = clustered_estimate(values, PASSAGES)
    assert found.n_effective == pytest.approx(5)
    assert found.interval[1] - found.interval[0] > 0.5
    same = clustered_change(values, values, PASSAGES)
    assert (same.n_effective, same.p_loss) == (pytest.approx(5), 1.0)
    assert same.interval[0] < -0.3
    assert clustered_change(values, values, PASSAGES, binary=False).interval == pytest.approx((-0.6, 0.6))


def test_graded_means_widen_by_cluster():
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(40), 5)
    values = np.clip(rng.normal(0.6, 0.2, 40)[clusters] + rng.normal(0, 0.02, 200), 0, 1)
    alone, found = estimate(values, None, False), clustered_estimate(values, clusters, binary=False)
    assert found.high - found.low > 2 * (alone.high - alone.low)
    assert found.n_effective < 50
    shift = clustered_change(values, np.clip(values - rng.normal(0.02, 0.1, 40)[clusters], 0, 1), clusters, False)
    assert shift.interval[0] < shift.value < shift.interval[1]
    assert shift.p_loss > clustered_change(values, values - 0.02, None, False).p_loss


def test_cluster_numbers_with_gaps_are_those_without():
    values = column(1, 1, 0, 1, 1, 1, 0, 0, 1, 1)
    assert clustered_estimate(values, PASSAGES * 7) == clustered_estimate(values, PASSAGES)
    assert icc(values, PASSAGES * 7) == icc(values, PASSAGES)


def test_questions_that_share_a_passage_join_directly_or_through_others():
    keys = [["a", "b"], ["c"], ["b", "d"], [], ["d"], ["c"], [], ["e"]]
    assert join_clusters(keys).tolist() == [0, 1, 0, 2, 0, 1, 3, 4]
    assert join_clusters([["a"], ["b"], ["b", "a"]]).tolist() == [0, 0, 0]
    assert len(join_clusters([])) == 0


def test_ten_thousand_joined_questions_take_no_recursion():
    keys = [[i, i + 1] for i in range(10_000)]
    assert set(join_clusters(keys[::-1]).tolist()) == {0}


def test_the_number_of_independent_questions():
    clusters = np.repeat(np.arange(50), 4)
    values = (np.random.default_rng(0).random(50) < 0.8).astype(float)[clusters]
    assert independent_n(values, clusters) == pytest.approx(50, rel=0.05)
    assert independent_n(values) == 200
    assert independent_n(column(), np.array([], dtype=int)) == 0


def test_a_giant_passage_without_a_failure_widens_a_graded_mean_too():
    """By hand: rows vary by .0233 as if independent, correlation 1 and 4.17 clusters of 10 rows make that .056."""
    found = clustered_estimate(column(1, 1, 1, 1, 0, 1, 0, 0, 1, 1), GIANT, binary=False)
    assert found.variance == pytest.approx(10 / 9 * 2.1 / 100 * 10 / (100 / 24), abs=1e-6)
    assert found.n_effective == pytest.approx(100 / 24)
