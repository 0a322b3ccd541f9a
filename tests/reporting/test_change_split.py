"""A change is split into judge, system and dataset: exactly, and each cause is found where it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.stats.change import Sentinel, split_change


@given(st.integers(0, 2**32 - 1), st.booleans(), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_parts_add_up(seed, weighted, fresh):
    rng = np.random.default_rng(seed)
    n, m, shared = rng.integers(5, 60), rng.integers(5, 60), rng.integers(3, 5)
    before, after = rng.random(n), rng.random(m)
    at_before, at_after = rng.permutation(n)[:shared], rng.permutation(m)[:shared]
    human = np.r_[np.ones(20), np.zeros(10)]
    sentinel = Sentinel(human, (rng.random(30) < 0.8).astype(float), (rng.random(30) < 0.7).astype(float))
    weights = (rng.lognormal(0, 1, n), rng.lognormal(0, 1, m)) if weighted else (None, None)
    found = split_change(before, after, at_before, at_after, sentinel, fresh, *weights)
    parts = found.judge.value + found.system.value + found.dataset.value
    assert parts == pytest.approx(found.total, abs=1e-12)
    assert found.shared.value == pytest.approx(found.judge.value + found.system.value, abs=1e-12)


def night(rng, rates, shift=0.0):
    return (rng.random(len(rates)) < rates + shift).astype(float)


def judged(truth, draw, se, sp):
    return np.where(truth == 1, draw < se, draw > sp).astype(float)


def simulate(seed, system=0.0, dataset=0.0, judge=0.0, runs=400, n=900, new=100, rows=300):
    """Share of runs in which each part's interval holds its true value."""
    rng = np.random.default_rng(seed)
    held = {"judge": 0, "system": 0, "dataset": 0}
    se, sp = 0.95, 0.85
    youden = se + sp - 1
    for _ in range(runs):
        rates = rng.choice([0.7, 0.9], n)
        truth_a = night(rng, rates)
        lost = (truth_a == 1) & (rng.random(n) < system)
        truth_b = np.where(lost, 0.0, truth_a)
        fixed = rng.random(n)  # one answer, one verdict: the judge's noise is the same on both nights
        f_a, f_b = judged(truth_a, fixed, se, sp), judged(truth_b, fixed, se, sp - judge)
        new_a = night(rng, np.full(new, 0.8))
        new_b = night(rng, np.full(new, (0.8 - dataset) * (1 - system)))
        fresh_a, fresh_b = judged(new_a, rng.random(new), se, sp), judged(new_b, rng.random(new), se, sp - judge)
        human = np.r_[np.ones(rows * 2 // 3), np.zeros(rows // 3)]
        draw = rng.random(len(human))
        s_a, s_b = judged(human, draw, se, sp), judged(human, draw, se, sp - judge)
        at = np.arange(n)
        found = split_change(np.r_[f_a, fresh_a], np.r_[f_b, fresh_b], at, at, Sentinel(human, s_a, s_b))
        # the true parts, in the stated order: the judge at night A's mix, the system on tonight's judge's scale
        true = {
            "judge": judge * (1 - 0.8),
            "system": -0.8 * system * (youden - judge),
            "dataset": -dataset * (youden - judge) * new / (n + new),
        }
        for name in held:
            low, high = getattr(found, name).interval
            held[name] += low <= true[name] <= high
    return {name: count / runs for name, count in held.items()}


@pytest.mark.parametrize(
    "cause", [{}, {"system": 0.08}, {"dataset": 0.3}, {"judge": 0.3}], ids=["none", "system", "dataset", "judge"]
)
def test_each_part_covers_its_true_value_whatever_the_cause(cause):
    held = simulate(71, **cause)
    assert all(share >= 0.915 for share in held.values()), held


def test_verdicts_from_the_ledger_carry_no_drift():
    rng = np.random.default_rng(1)
    values = (rng.random(200) < 0.8).astype(float)
    human = np.r_[np.ones(60), np.zeros(40)]
    drifted = Sentinel(human, human, np.r_[np.ones(60), np.ones(20), np.zeros(20)])
    at = np.arange(200)
    served = split_change(values, values, at, at, drifted, fresh=0.0)
    assert (served.judge.value, served.system.value) == (0.0, 0.0)
    assert split_change(values, values, at, at, drifted, fresh=1.0).judge.value > 0.05


def test_retrieval_metrics_have_no_judge():
    values = np.array([1.0, 0.0, 1.0, 1.0])
    at = np.arange(4)
    found = split_change(values, np.array([1.0, 0.0, 0.0, 1.0]), at, at, None)
    assert (found.judge.value, found.judge.variance) == (0.0, 0.0)
    assert found.system.value == pytest.approx(-0.25)
