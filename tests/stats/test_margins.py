"""Which margins, floors and numbers decide a night: the simulated tables of decisions.md, J."""

import pytest

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.margins import (
    JudgeStrength,
    advised_floor,
    advised_margin,
    clears_floor,
    examples_to_clear,
    examples_to_pass,
    floor_distance,
    labels_to_clear,
    labels_to_pass,
    least_margin,
    outlook,
    pass_power,
)

# 200 labels, 140 of them of good answers, as in the simulations
JUDGES = [None, *(JudgeStrength(se, sp, 140, 60) for se, sp in ((0.97, 0.9), (0.9, 0.8), (0.95, 0.6)))]
PSI = (0.02, 0.05, 0.1, 0.2)


@pytest.mark.parametrize(
    ("n", "rows"),
    [
        (200, [(4, 5, 7, 10), (5, 6, 8, 11), (6, 8, 10, 14), (8, 10, 13, 17)]),
        (700, [(2, 3, 4, 5), (2, 3, 5, 6), (3, 4, 6, 7), (4, 5, 7, 10)]),
        (2000, [(1, 2, 2, 3), (2, 2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 6)]),
        (5000, [(1, 1, 2, 2), (1, 2, 2, 2), (1, 2, 2, 3), (2, 2, 3, 4)]),
    ],
)
def test_smallest_margins(n, rows):
    found = [[round(100 * least_margin(n, psi, judge)) for psi in PSI] for judge in JUDGES]
    gaps = [abs(a - b) for ours, theirs in zip(found, rows, strict=True) for a, b in zip(ours, theirs, strict=True)]
    assert max(gaps) <= 1  # a hundredth, the tables' rounding
    assert sum(gaps) <= 4


@pytest.mark.parametrize(
    ("n", "distances"),
    [(200, (7, 10, 15, 17)), (700, (4, 6, 11, 11)), (2000, (3, 5, 10, 11)), (5000, (2, 4, 9, 10))],
)
def test_distances_of_floors(n, distances):
    for judge, wanted in zip(JUDGES, distances, strict=True):
        assert 100 * floor_distance(n, 0.88, judge) == pytest.approx(wanted, abs=1.05)


def test_more_labels_bring_a_floor_nearer_and_beyond_2000_examples_only_labels_do():
    judge = JUDGES[3]
    assert 100 * floor_distance(2000, 0.88, judge.with_labels(500)) == pytest.approx(7, abs=0.8)
    assert 100 * floor_distance(700, 0.88, judge.with_labels(500)) == pytest.approx(9, abs=1)
    more_examples = floor_distance(2000, 0.88, judge) - floor_distance(10**6, 0.88, judge)
    more_labels = floor_distance(2000, 0.88, judge) - floor_distance(2000, 0.88, judge.with_labels(500))
    assert more_labels > 2 * more_examples


@pytest.mark.parametrize(
    ("n", "psi", "rows"),
    [
        (200, 0.05, [(0.01, 0.28, 0.96, 1), (0.00, 0.14, 0.86, 1), (0.00, 0.00, 0.13, 0.35)]),
        (200, 0.12, [(0.00, 0.03, 0.51, 0.92), (0.00, 0.01, 0.25, 0.63), (0.00, 0.00, 0.01, 0.03)]),
        (700, 0.05, [(0.62, 1, 1, 1), (0.51, 1, 1, 1), (0.03, 0.42, 0.96, 0.99)]),
        (700, 0.12, [(0.12, 0.77, 1, 1), (0.03, 0.55, 0.99, 1), (0.00, 0.04, 0.51, 0.76)]),
        (700, 0.25, [(0.01, 0.26, 0.96, 1), (0.00, 0.12, 0.82, 0.99), (0.00, 0.00, 0.08, 0.35)]),
        (2000, 0.12, [(0.89, 1, 1, 1), (0.62, 1, 1, 1), (0.05, 0.57, 0.98, 1)]),
        (2000, 0.25, [(0.33, 1, 1, 1), (0.08, 0.79, 1, 1), (0.00, 0.10, 0.70, 0.94)]),
    ],
)
def test_five_metrics_that_all_pass(n, psi, rows):
    for judge, wanted in zip((JUDGES[0], JUDGES[1], JUDGES[3]), rows, strict=True):
        found = [pass_power(n, psi, margin, judge) ** 5 for margin in (0.03, 0.05, 0.08, 0.10)]
        assert found == pytest.approx(wanted, abs=0.09)  # the tables come from a few hundred nights


def test_what_would_have_decided_the_night():
    found = outlook(700, 0.12, 0.03, primaries=5)
    assert found.power == pytest.approx(0.12, abs=0.05)
    assert found.margin == pytest.approx(0.06, abs=0.011)
    assert 1500 < found.examples < 2500
    assert found.labels is None
    alone = outlook(700, 0.12, 0.03)
    assert alone.power == pytest.approx(0.65, abs=0.05)
    assert 900 < alone.examples < 1200
    assert pass_power(alone.examples, 0.12, 0.03) >= 0.8


def test_labels_decide_where_examples_cannot():
    weak = JudgeStrength(0.95, 0.6, 14, 6)
    assert examples_to_pass(0.03, 0.05, weak) is None
    labels = labels_to_pass(20_000, 0.03, 0.05, weak)
    assert labels is not None
    assert pass_power(20_000, 0.05, 0.03, weak.with_labels(labels)) >= 0.8
    assert labels_to_pass(200, 0.03, 0.2, weak) is None  # there examples are missing
    assert examples_to_clear(0.88, 0.86, JUDGES[3]) is None
    more = labels_to_clear(5000, 0.88, 0.84, JUDGES[3])
    assert clears_floor(5000, 0.88, 0.84, JUDGES[3].with_labels(more))
    assert labels_to_clear(200, 0.88, 0.86, JUDGES[3]) is None


def test_numbers_that_cannot_decide_are_no_error():
    assert pass_power(0, 0.1, 0.03) == 0
    assert pass_power(700, 0.1, 0.0) == 0
    assert pass_power(700, 0.0, 0.03) == pytest.approx(1, abs=1e-3)
    assert pass_power(700, 1.0, 0.5) == pytest.approx(1, abs=1e-3)
    assert least_margin(5, 0.5) is None
    assert not clears_floor(700, 0.8, 0.8)
    assert not clears_floor(700, 0.8, 0.5, JudgeStrength(0.5, 0.4, 50, 50))


def test_the_approximation_for_many_pairs_joins_the_exact_sum():
    below, above = pass_power(4990, 0.2, 0.02), pass_power(5010, 0.2, 0.02)
    assert below == pytest.approx(above, abs=0.02)


def test_advice_by_number_of_examples_and_judge():
    assert [advised_margin(n) for n in (199, 200, 700, 2000, 9000)] == [None, 0.08, 0.05, 0.03, 0.03]
    assert [advised_margin(n, 0.87) for n in (200, 700, 2000)] == [0.10, 0.08, 0.05]
    assert [advised_margin(n, 0.55) for n in (200, 700, 2000)] == [None, 0.10, 0.08]
    for n in (200, 700, 2000):
        between = advised_margin(n, 0.7)
        assert advised_margin(n, 0.87) < between
        assert advised_margin(n, 0.55) is None or between < advised_margin(n, 0.55)
    assert [advised_floor(n, 0.9, False) for n in (100, 200, 700, 2000)] == [None, 0.80, 0.84, 0.85]
    assert [advised_floor(n, 0.9, True) for n in (200, 700, 2000)] == [0.73, 0.79, 0.80]
    assert advised_floor(200, 0.05, True) == 0.0


@pytest.mark.parametrize("n", [200, 700, 2000])
def test_what_is_advised_is_passed_by_an_unchanged_system(n):
    assert pass_power(n, 0.12, advised_margin(n)) >= 0.8
    for se, sp in ((0.97, 0.9), (0.9, 0.8), (0.95, 0.6)):
        judge = JudgeStrength(se, sp, 140, 60)
        margin = advised_margin(n, judge.youden)
        assert margin is None or pass_power(n, 0.12, margin, judge) >= 0.8


def test_a_judge_is_read_from_its_table():
    judge = JudgeStrength.of(Table(133, 24, 7, 36))
    assert judge.youden == pytest.approx(0.55, abs=0.01)
    assert (judge.with_labels(400).positives, judge.with_labels(400).negatives) == (280, 120)
    assert JudgeStrength.of(Table()).positives == 1
