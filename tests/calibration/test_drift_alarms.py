"""False alarms and power of the drift rule, by simulation with the judge's own noise."""

import numpy as np
import pytest

from ragbench_dagster.calibration.stats.drift import alarm_count

REPEATS = 5


def nights(rng, rows, noise, extra, runs):
    """Share of nights with an alarm: the reference is accepted once a run, then one night is judged."""
    alarms = 0
    for _ in range(runs):
        truth = rng.random(rows) < 0.7
        votes = truth[None, :] ^ (rng.random((REPEATS, rows)) < noise)
        majority = votes.sum(axis=0) > REPEATS / 2
        disagreements = int((votes != majority).sum())
        tonight = truth ^ (rng.random(rows) < noise) ^ (rng.random(rows) < extra)
        flips = int((tonight != majority).sum())
        alarms += flips >= alarm_count(disagreements, REPEATS * rows, rows)
    return alarms / runs


@pytest.mark.parametrize("rows", [100, 200, 300])
def test_a_judge_with_one_percent_noise_raises_at_most_one_false_alarm_in_a_hundred_nights(rows):
    rate = nights(np.random.default_rng(11), rows, 0.01, 0.0, 2000)
    assert rate <= 0.01 + 2 * np.sqrt(0.01 * 0.99 / 2000)


@pytest.mark.parametrize(("rows", "extra", "least"), [(100, 0.10, 0.90), (200, 0.05, 0.85), (300, 0.10, 0.98)])
def test_extra_flips_are_found(rows, extra, least):
    assert nights(np.random.default_rng(12), rows, 0.01, extra, 400) >= least


def test_no_rows_can_never_alarm():
    assert alarm_count(0, 500, 0) == 1
