"""An outage fails calls in a row, a regression here and there."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.stats.drift import errors_bunched
from tests.support.decision_tables import reference

REFERENCE = reference()


def test_reference_values():
    outage = errors_bunched([0] * 10 + [1] * 5 + [0] * 15)
    assert outage.p == pytest.approx(0.000182, abs=1e-6)
    assert outage.bunched
    assert (outage.calls, outage.errors, outage.runs) == (30, 5, 1)
    scattered = errors_bunched([0, 0, 1, 1, 0, 1, 0, 0, 0, 0])
    assert scattered.p == pytest.approx(0.533333, abs=1e-6)
    assert not scattered.bunched


@pytest.mark.skipif(REFERENCE is None, reason="no tools/decision_reference.py")
@given(st.lists(st.integers(0, 1), min_size=1, max_size=80))
def test_it_equals_the_independent_implementation(errors):
    assert errors_bunched(errors).p == pytest.approx(REFERENCE.bunched(errors), rel=1e-9)


def test_the_sum_is_exact_by_enumeration():
    def runs(places):
        return sum(1 for i in places if i - 1 not in places)

    orders = [set(c) for c in combinations(range(9), 4)]
    for wanted in orders[::17]:
        share = sum(runs(o) <= runs(wanted) for o in orders) / len(orders)
        assert errors_bunched([i in wanted for i in range(9)]).p == pytest.approx(share)


@pytest.mark.parametrize("errors", [[], [0], [1], [0, 1, 0], [1, 1, 1, 1], np.ones(500, dtype=bool), np.zeros(50)])
def test_no_error_one_error_or_nothing_but_errors_is_never_bunched(errors):
    assert errors_bunched(errors).p == 1.0


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3])
def test_scattered_errors_are_rarely_flagged(share):
    rng = np.random.default_rng(1)
    flagged = sum(errors_bunched(rng.random(700) < share).bunched for _ in range(1500))
    assert flagged / 1500 <= 0.0033


def test_one_outage_is_told_even_among_scattered_errors():
    rng = np.random.default_rng(2)
    for _ in range(50):
        errors = rng.random(700) < 0.05
        start = rng.integers(0, 650)
        errors[start : start + 35] = True
        assert errors_bunched(errors).bunched
