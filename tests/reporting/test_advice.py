"""What makes an undecided night decidable, in words that a person can act on."""

import numpy as np
import pytest

from ragbench_dagster.reporting.baselines import accept_night
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.gate.outlook import decision_advice, floor_advice, margin_advice, odds, threshold_advice
from ragbench_dagster.reporting.gate.tests import GateTest
from ragbench_dagster.stats.margins import JudgeStrength

HEAD = "metrics: ['hit_rate@5', faithfulness]\nsystems: {prod: {kind: logged}}\n"


def margin(n, psi, limit, judge=None):
    return GateTest("s", "m", "overall", "margin", -limit, n=n, independent=float(n), discordance=psi, judge=judge)


def test_a_margin_that_is_too_small_names_the_ways_out():
    """shared/decisions.md J: one metric, n = 700, 12 % of verdicts changing, margin .03 passes .65 of nights."""
    line = margin_advice(margin(700, 0.12, 0.03))
    assert line.startswith(
        "with 700 examples and 12 % of verdicts changing, an unchanged system passes a margin of 0.03"
    )
    assert "in 6 of 10 nights: use a margin of 0.04, 1,100 examples or answers that change less" in line


def test_five_margins_together_pass_less_often():
    """J: five independent metrics at n = 700, psi .12, margin .03: .12."""
    line = margin_advice(margin(700, 0.12, 0.03), 5)
    assert "in 1 of 1" in line
    assert "together with the other 4 primary margins" in line


def test_a_margin_that_is_wide_enough_needs_no_advice():
    assert margin_advice(margin(2000, 0.05, 0.05)) is None


def test_a_judge_that_is_known_from_few_labels_asks_for_more_of_them():
    line = margin_advice(margin(5000, 0.02, 0.03, JudgeStrength(0.75, 0.6, 20, 20)))
    assert " labels" in line


def test_a_floor_that_is_near_names_examples_or_labels():
    near = GateTest("s", "m", "overall", "floor", 0.85, n=200, independent=200.0, value=0.88)
    assert "about" in floor_advice(near)
    assert floor_advice(near.copy(value=0.84)) is None


@pytest.mark.parametrize(
    ("power", "words"), [(0.001, "almost no"), (0.125, "1 of 8"), (0.33, "1 of 3"), (0.75, "8 of 10")]
)
def test_odds(power, words):
    assert odds(power) == words


@pytest.mark.parametrize(
    ("n", "judge", "judged", "words"),
    [
        (200, None, False, "a margin of 0.08 can be decided"),
        (700, None, False, "a margin of 0.05 can be decided"),
        (2000, None, False, "a margin of 0.03 can be decided"),
        (700, JudgeStrength(0.97, 0.9, 100, 100), True, "a margin of 0.08 can be decided"),
        (500, JudgeStrength(0.95, 0.6, 100, 100), True, "too weak for a margin below 700"),
        (100, None, False, "200 are needed"),
    ],
)
def test_advice_follows_the_table(n, judge, judged, words):
    test = GateTest("s", "m", "overall", "floor", 0.0, n=n, independent=float(n), judge=judge)
    assert words in next(iter(threshold_advice(test, judged)))


def test_the_doctor_reads_the_last_night(maker):
    made = maker(HEAD + "thresholds: {'hit_rate@5': {min: 0.5, margin: 0.01}}\n", n=300)
    rng = np.random.default_rng(0)
    values = (rng.random(300) < 0.9).astype(float)
    made.night({"prod": {"hit_rate@5": values, "faithfulness": values}}, day="2026-11-18")
    made.calibrated(["faithfulness"], day="2026-11-18")
    decide(made.ws, "2026-11-18")
    found = list(decision_advice(made.ws, "2026-11-18"))
    assert any(
        level == "warning" and "passes a margin of 0.01" in line and "(a guess)" in line for level, line in found
    )
    assert any(level == "ok" and line.startswith("prod: faithfulness: a margin of 0.1") for level, line in found)
    accept_night(made.ws, "2026-11-18", "Ada", "x")
