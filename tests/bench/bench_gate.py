"""The gate's error rates and power over many nights: minutes. Run: pytest tests/bench/bench_gate.py -s"""

import numpy as np
import pytest

from ragbench_dagster.stats.power import detectable_loss, pairs_to_pass, promised_power
from tests.support import gate_nights as nights


@pytest.mark.parametrize("n", [200, 1000, 5000])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("psi", [0.04, 0.1, 0.2])
def test_identical_systems_fail_at_most_five_percent_of_nights(psi, rho, n):
    rng = np.random.default_rng(41)
    runs = 600
    failed = sum(nights.identical_night(rng, n, psi, rho).verdict == "fail" for _ in range(runs))
    print(f"identical n={n} psi={psi} rho={rho}: false fail {failed / runs:.3f}")
    assert failed / runs <= 0.05


def test_a_loss_of_five_points_at_a_thousand_examples_fails():
    rng = np.random.default_rng(42)
    rate = np.mean([nights.loss_night(rng, 1000, 0.1, 0.05, 0.03).verdict == "fail" for _ in range(2000)])
    print(f"loss .05, n 1000, psi .1, 200 tests: fail {rate:.3f}")
    assert rate >= 0.90


def test_a_harmless_loss_of_one_point_at_five_thousand_examples_rarely_fails():
    rng = np.random.default_rng(43)
    rate = np.mean([nights.loss_night(rng, 5000, 0.1, 0.01, 0.03).verdict == "fail" for _ in range(2000)])
    print(f"loss .01, n 5000, psi .1, 200 tests: fail {rate:.3f}")
    assert rate <= 0.02


@pytest.mark.parametrize("n", [200, 1000, 5000])
@pytest.mark.parametrize("psi", [0.05, 0.1, 0.2])
def test_false_pass_at_the_margin(psi, n):
    rng = np.random.default_rng(44)
    rate = np.mean([nights.loss_night(rng, n, psi, 0.03, 0.03, others=0).verdict == "pass" for _ in range(40_000)])
    print(f"true loss at the margin, n={n} psi={psi}: false pass {rate:.4f}")
    assert rate <= 0.03


@pytest.mark.parametrize("n", [100, 200, 1000])
def test_false_pass_of_skewed_scores_at_the_margin(n):
    rng = np.random.default_rng(45)
    rate = np.mean([nights.skewed_pass(rng, n, 0.03) for _ in range(10_000)])
    print(f"few large losses, n={n}: false pass {rate:.4f}")
    if n >= 200:
        assert rate <= 0.03


@pytest.mark.parametrize("n", [50, 100, 200, 500, 1000, 5000])
@pytest.mark.parametrize("psi", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("tests", [1, 10, 200])
def test_power_at_the_printed_smallest_effect(tests, psi, n):
    effect = detectable_loss(n, tests, 0.03, psi)
    if effect is None or effect > 1:
        pytest.skip("nothing can be shown")
    power = nights.exact_power(n, max(psi, effect), effect, tests, 0.03)
    print(f"n={n} psi={psi} tests={tests}: effect {effect:.4f}, exact power {power:.3f}")
    assert power >= (0.74 if n >= 200 else 0.695), promised_power(n)


@pytest.mark.parametrize("psi", [0.02, 0.05, 0.1, 0.2])
def test_power_to_pass_with_the_printed_number_of_examples(psi):
    n = pairs_to_pass(0.03, psi)
    rng = np.random.default_rng(46)
    rate = np.mean([nights.loss_night(rng, n, psi, 0.0, 0.03, others=0).verdict == "pass" for _ in range(4000)])
    print(f"psi={psi}: {n} pairs pass {rate:.3f}")
    assert rate >= 0.74
