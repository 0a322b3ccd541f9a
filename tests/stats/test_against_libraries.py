"""Equality with scikit-learn, statsmodels, SciPy, ppi-python and choix on random tables."""

import numpy as np
import pytest

from ragbench_dagster.stats import agreement_tables, correction, drift
from ragbench_dagster.stats.agreement_tables import Table, balanced_accuracy, kappa
from ragbench_dagster.stats.intervals import wilson
from ragbench_dagster.stats.paired import compare, mcnemar, mcnemar_loss, mean_below
from ragbench_dagster.stats.power import detectable_below, holm
from ragbench_dagster.stats.preference import davidson

SEEDS = range(12)


def verdicts(seed, n=160):
    rng = np.random.default_rng(seed)
    human = (rng.random(n) < rng.uniform(0.2, 0.9)).astype(float)
    judge = np.where(rng.random(n) < rng.uniform(0.6, 0.95), human, 1 - human)
    return human, judge


@pytest.mark.parametrize("seed", SEEDS)
def test_kappa_and_balanced_accuracy_equal_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    human, judge = verdicts(seed)
    table = Table.of(human, judge)
    assert kappa(table) == pytest.approx(metrics.cohen_kappa_score(human, judge), abs=1e-12)
    assert balanced_accuracy(table) == pytest.approx(metrics.balanced_accuracy_score(human, judge), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_area_under_the_curve_and_weighted_kappa_equal_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    human, _ = verdicts(seed)
    scores = np.round(human + rng.normal(0, 1, len(human)), 1)  # with ties
    value, (low, high) = agreement_tables.roc_auc(human, scores)
    assert value == pytest.approx(metrics.roc_auc_score(human, scores), abs=1e-12)
    assert low < value < high
    one = rng.integers(1, 6, 200).astype(float)
    other = np.clip(one + rng.integers(-1, 2, 200), 1, 5)
    expected = metrics.cohen_kappa_score(one, other, weights="quadratic")
    assert agreement_tables.weighted_kappa(one, other) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_spearman_equals_scipy(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    one = np.round(rng.normal(0, 1, 80), 1)
    other = np.round(one + rng.normal(0, 1, 80), 1)
    assert agreement_tables.spearman(one, other)[0] == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)


@pytest.mark.parametrize(("passing", "n"), [(0, 10), (3, 10), (10, 10), (349, 426), (1, 1), (999, 1000)])
def test_wilson_equals_statsmodels(passing, n):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    assert wilson(passing, n) == pytest.approx(proportion.proportion_confint(passing, n, method="wilson"), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_holm_equals_statsmodels(seed):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(seed).random(40) ** 3
    assert holm(list(p)) == pytest.approx(list(multitest.multipletests(p, method="holm")[1]), abs=1e-14)


@pytest.mark.parametrize(("gains", "losses"), [(0, 0), (0, 5), (5, 0), (3, 9), (44, 48), (200, 250)])
def test_mcnemar_equals_statsmodels_and_scipy(gains, losses):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    stats = pytest.importorskip("scipy.stats")
    expected = tables.mcnemar([[0, gains], [losses, 0]], exact=True).pvalue if gains + losses else 1.0
    assert mcnemar(gains, losses) == pytest.approx(min(1.0, expected), abs=1e-12)
    one_sided = stats.binomtest(losses, gains + losses, alternative="greater").pvalue if gains + losses else 1.0
    assert mcnemar_loss(gains, losses) == pytest.approx(one_sided, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_graded_loss_is_never_more_certain_than_the_paired_t_test(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    old = rng.random(60)
    new = np.clip(old + rng.normal(-0.05, 0.2, 60), 0, 1)
    plain = stats.ttest_rel(new, old, alternative="less").pvalue
    found = compare(old, new, binary=False)
    assert found.p_loss >= plain - 1e-12
    symmetric = np.concatenate([new - old, 2 * (new - old).mean() - (new - old)])  # no skew: both agree
    p = stats.ttest_1samp(symmetric, 0, alternative="less").pvalue
    assert mean_below(symmetric, 0.0) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize(("rows", "a", "b"), [(100, 1, 501), (50, 4.5, 100), (300, 31, 1471)])
def test_the_tail_of_lost_verdicts_equals_scipy(rows, a, b):
    stats = pytest.importorskip("scipy.stats")
    for flips in (0, 1, 3, 7, rows):
        expected = stats.betabinom.sf(flips - 1, rows, a, b)
        assert drift.beta_binomial_tail(flips, rows, a, b) == pytest.approx(expected, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weight", [None, 0.0, 0.5, 1.0])
def test_prediction_powered_mean_equals_ppi_python_with_equal_weights(seed, weight):
    ppi = pytest.importorskip("ppi_py")
    human, judge = verdicts(seed, 500)
    found = correction.ppi_plus(human[:120], judge[:120], judge[120:], weight)
    low, high = ppi.ppi_mean_ci(human[:120], judge[:120], judge[120:], lam=weight, alpha=0.05)
    assert found.interval == pytest.approx((low.item(), high.item()), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_bradley_terry_without_ties_equals_choix(seed):
    choix = pytest.importorskip("choix")
    rng = np.random.default_rng(seed)
    wins = rng.integers(3, 30, (5, 5)).astype(float)
    np.fill_diagonal(wins, 0)
    data = [(i, j) for i in range(5) for j in range(5) for _ in range(int(wins[i, j]))]
    expected = choix.opt_pairwise(5, data, alpha=0.0, tol=1e-12)
    found = davidson(list("abcde"), wins, np.zeros((5, 5)))
    assert found.log_worth == pytest.approx(expected - expected.mean(), abs=1e-6)


@pytest.mark.parametrize(("n", "floor", "tests"), [(50, 0.8, 1), (200, 0.95, 200), (1000, 0.5, 10), (100, 0.97, 10)])
def test_the_smallest_shortfall_below_a_floor_is_found_in_three_of_four_nights(n, floor, tests):
    stats = pytest.importorskip("scipy.stats")
    rate = floor - detectable_below(n, tests, floor)
    passing = np.arange(n + 1)
    failing = stats.binom.cdf(passing, n, floor) <= 0.05 / tests
    assert stats.binom.pmf(passing, n, rate)[failing].sum() == pytest.approx(0.75, abs=1e-9)


def test_a_floor_that_no_result_could_miss_has_no_smallest_shortfall():
    assert detectable_below(5, 200, 0.5) is None
