"""What the gate says of nights whose truth is planted: the quick cells; the grid is tests/bench/bench_planted.py.

Each row is a night that the gate once decided wrongly: see docs/statistics.md.
"""

import numpy as np
import pytest

from tests.support import decision_worlds as worlds


def share(verdicts, wanted):
    return sum(v in wanted for v in verdicts) / len(verdicts)


@pytest.mark.parametrize("noise", [0.0, 0.06])
def test_the_most_asked_questions_broke_fails_per_request_and_never_passes_per_question(noise):
    rng = np.random.default_rng(1)
    both = [worlds.head_broken(rng, 8, "both", noise) for _ in range(40)]
    assert share([r.verdict for r in both], ("fail",)) >= 0.95
    assert all("most asked questions were right" in r.reasons[0] for r in both)
    each = [worlds.head_broken(rng, 8, "question", noise).verdict for _ in range(40)]
    assert share(each, ("fail", "inconclusive")) >= 0.95


def test_a_noisy_but_unchanged_head_does_not_fail():
    rng = np.random.default_rng(2)
    assert share([worlds.head_broken(rng, 0, "request", 0.06).verdict for _ in range(100)], ("fail",)) <= 0.07


def test_an_engine_that_raises_on_its_hardest_questions_fails():
    rng = np.random.default_rng(3)
    assert share([worlds.failing_engine(rng).verdict for _ in range(40)], ("fail",)) >= 0.95


@pytest.mark.parametrize(("se", "sp", "n"), [(0.95, 0.6, 700), (0.95, 0.6, 5000), (0.98, 0.95, 2000)])
def test_a_true_loss_of_the_whole_margin_hardly_passes_under_a_judge_that_errs(se, sp, n):
    """On the judge's own scale it passed .26 to .93 of nights."""
    rng = np.random.default_rng(4)
    found = [worlds.judged_loss(rng, n, 0.03, se, sp).verdict for _ in range(300)]
    assert share(found, ("pass",)) <= 0.035 + 2 * np.sqrt(0.035 * 0.965 / 300)


def test_a_judge_that_errs_still_lets_an_unchanged_system_pass():
    rng = np.random.default_rng(5)
    found = [worlds.judged_loss(rng, 5000, 0.0, 0.95, 0.6).verdict for _ in range(100)]
    assert share(found, ("pass",)) >= 0.85


@pytest.mark.parametrize(("clusters", "size", "icc"), [(200, 5, 0.5), (200, 5, 1.0), (600, 1, 0.0)])
def test_identical_systems_rarely_fail_where_questions_come_in_clusters(clusters, size, icc):
    """Counted as independent, fives failed .51 to .995 of nights."""
    rng = np.random.default_rng(6)
    found = [worlds.clustered_identical(rng, clusters, size, icc).verdict for _ in range(25)]
    assert share(found, ("fail",)) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 25)


def test_a_small_loss_every_night_fails_before_two_margins_are_lost():
    """Against the last passing night it passed until .142 was lost."""
    rng = np.random.default_rng(7)
    lost = [worlds.slow_loss(rng, 0.005) for _ in range(12)]
    assert all(night is not None and loss <= 0.06 for night, loss in lost)
    assert all(worlds.slow_loss(rng, 0.0, nights=14)[0] is None for _ in range(6))


@pytest.mark.parametrize(("se", "sp"), [(0.95, 0.6), (0.97, 0.9)])
def test_a_judges_errors_on_heavy_questions_pass_no_loss_per_request(se, sp):
    """Five equal verdicts on one answer are one verdict: taken as certain they passed .10 to .29 of nights."""
    rng = np.random.default_rng(8)
    found = [worlds.judged_requests(rng, 0.05, se, sp, 0.05).verdict for _ in range(150)]
    assert share(found, ("pass",)) <= 0.035 + 2 * np.sqrt(0.035 * 0.965 / 150)
    quiet = [worlds.judged_requests(rng, 0.0, se, sp, 0.05).verdict for _ in range(150)]
    assert share(quiet, ("fail",)) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 150)


def test_failures_of_the_system_are_worth_what_people_would_have_called_the_answers():
    """Under (.75, .95) the judge calls a quarter of the good answers bad: their loss read as .037 of .050 and passed."""
    rng = np.random.default_rng(9)
    lost = [worlds.failures_under_a_weak_judge(rng, 2000, 0.75, 0.95, 0.056, 0.9, 0.05).verdict for _ in range(60)]
    assert share(lost, ("pass",)) <= 0.15  # .40 before
    hard = [worlds.failures_under_a_weak_judge(rng, 2000, 0.95, 0.6, 0.066, 0.3, 0.03).verdict for _ in range(60)]
    assert share(hard, ("fail",)) <= 0.15  # .95 before: the answers were bad anyway
