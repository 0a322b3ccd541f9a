"""The gate's false alarms and power in a few hundred nights; the full grid is in tests/bench/bench_gate.py."""

import numpy as np
import pytest

from ragbench_dagster.stats.power import detectable_loss, pairs_to_pass
from tests.support import gate_nights as nights


def rate(verdict, runs, night):
    return sum(night().verdict == verdict for _ in range(runs)) / runs


@pytest.mark.parametrize(("n", "psi", "rho"), [(200, 0.1, 0.0), (1000, 0.04, 0.5)])
def test_identical_systems_rarely_fail(n, psi, rho):
    """20 metrics, overall and nine slices each: 200 tests a night; at most 5 % of nights, and two standard errors."""
    rng = np.random.default_rng(41)
    assert rate("fail", 100, lambda: nights.identical_night(rng, n, psi, rho)) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 100)


def test_a_loss_of_five_points_at_a_thousand_examples_fails():
    rng = np.random.default_rng(42)
    assert rate("fail", 100, lambda: nights.loss_night(rng, 1000, 0.1, 0.05, 0.03)) >= 0.90


def test_a_harmless_loss_of_one_point_at_five_thousand_examples_rarely_fails():
    rng = np.random.default_rng(43)
    assert rate("fail", 100, lambda: nights.loss_night(rng, 5000, 0.1, 0.01, 0.03)) <= 0.02


@pytest.mark.parametrize("n", [200, 1000])
def test_false_pass_at_the_margin(n):
    rng = np.random.default_rng(44)
    found = rate("pass", 3000, lambda: nights.loss_night(rng, n, 0.1, 0.03, 0.03, others=0))
    assert found <= 0.03 + 2 * np.sqrt(0.03 * 0.97 / 3000)


@pytest.mark.parametrize(("n", "psi", "tests"), [(200, 0.2, 200), (1000, 0.1, 200), (500, 0.05, 10), (200, 0.1, 1)])
def test_exact_power_at_the_printed_smallest_effect(n, psi, tests):
    effect = detectable_loss(n, tests, 0.03, psi)
    assert nights.exact_power(n, max(psi, effect), effect, tests, 0.03) >= 0.74


def test_the_printed_number_of_examples_passes_an_unchanged_system():
    rng = np.random.default_rng(46)
    n = pairs_to_pass(0.03, 0.05)
    assert rate("pass", 500, lambda: nights.loss_night(rng, n, 0.05, 0.0, 0.03, others=0)) >= 0.74


def test_a_few_large_losses_do_not_pass_falsely():
    """Plain paired t passes .061 of nights at n = 200 where .025 was promised."""
    rng = np.random.default_rng(45)
    passed = sum(nights.skewed_pass(rng, 200, 0.03) for _ in range(1500)) / 1500
    assert passed <= 0.03 + 2 * np.sqrt(0.03 * 0.97 / 1500)
