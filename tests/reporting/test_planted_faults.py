"""Nights through a real engine with planted faults: a crash on hard questions, an outage, answers that come too late."""

import pytest

from ragbench_dagster.reporting.gate.guards import outage_of
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.reproduce import reproduce_night
from ragbench_dagster.reporting.summary import summary_tables
from ragbench_dagster.results import GateDecision, Manifest
from tests.support.real_nights import RealNights

N = 300
DAY = "2026-11-20"
FLOOR = "thresholds: {'hit_rate@5': {min: 0.85}}"


@pytest.fixture
def real(tmp_path):
    return lambda **more: RealNights(tmp_path, N, **more)


def row(summary, metric):
    return summary["systems"]["mine"]["metrics"][metric]["overall"]


def test_a_crash_on_the_hard_questions_fails_by_answered_and_by_zeros(real):
    """It read as .976 of the rest, and passed."""
    made = real(more=FLOOR)
    summary, gate = made.night(fault="lambda number, call: number % 5 == 0 and 'raise'", waits="[0, 0]")
    assert (row(summary, "hit_rate@5")["value"], row(summary, "hit_rate@5")["n"]) == (0.8, N)
    assert row(summary, "answered")["value"] == 0.8
    assert gate.verdict == "fail"
    assert {r.metric for r in gate.rows if r.verdict == "fail"} == {"answered", "hit_rate@5"}
    facts = outage_of(Night.open(made.ws, DAY), "mine")
    assert (facts.first_pass, facts.mended, facts.missing, facts.outage) == (0.8, 0, 60, False)
    assert facts.bunched_p > 0.001
    assert made.run.calls == N + 2 * 60
    assert made.ws.result(DAY, Manifest).answered_first == {"mine": 0.8}
    shown = next(t for t in summary_tables(made.ws, DAY) if t["title"] == "Questions that failed when first asked")
    assert shown["rows"] == [["mine", "80 %", 0, 60, "scattered"]]
    assert reproduce_night(made.ws, DAY)["same"]


def test_an_outage_that_ends_before_the_retry_costs_nothing(real):
    made = real(more=FLOOR)
    summary, gate = made.night(fault="lambda number, call: 100 <= call < 140 and 'raise'")
    assert row(summary, "answered")["value"] == 1.0
    facts = summary["systems"]["mine"]["attempts"]
    assert (facts["mended"], facts["missing"], facts["outage"]) == (40, 0, False)
    assert facts["first_pass"] == pytest.approx(260 / 300)
    assert facts["bunched_p"] <= 0.001
    assert gate.verdict == "pass"


def test_an_outage_that_lasts_decides_nothing_and_asks_for_the_night_again(real):
    made = real(more=FLOOR)
    summary, gate = made.night(fault="lambda number, call: call >= 240 and 'raise'")
    facts = summary["systems"]["mine"]["attempts"]
    assert (facts["missing"], facts["outage"]) == (61, True)
    assert row(summary, "hit_rate@5")["value"] == pytest.approx(239 / 300)  # shown, and not decided on
    assert (gate.verdict, gate.exit_code) == ("inconclusive", 3)
    assert any("looks like an outage" in r and "run the night again" in r for r in gate.reasons)
    summary, gate = made.night(
        fault="lambda number, call: call >= 240 and 'raise'"
    )  # the process is new, its calls too
    assert summary["systems"]["mine"]["attempts"]["missing"] == 0
    assert gate.verdict == "pass"
    assert made.run.calls == 61


def test_answers_that_come_too_late_do_not_clear_a_ceiling(real):
    made = real(more="thresholds: {latency_p95_ms: {max: 100000}}")
    summary, gate = made.night(fault="lambda number, call: number % 10 == 0 and 'late'")
    found = summary["systems"]["mine"]["latency"]
    assert (found["timed_out"], found["p95_ms"]["value"], found["p95_ms"]["over"]) == (
        30,
        None,
        ["value", "low", "high"],
    )
    test = next(r for r in made.ws.result(DAY, GateDecision).rows if r.kind == "latency")
    assert test.verdict == "fail"
    assert test.value is None
    assert any("latency_p95_ms is over" in r and "inf" not in r for r in gate.reasons)


@pytest.mark.parametrize("per", ["both", "question"])
def test_the_most_asked_questions_broke_and_it_is_said_first(real, per):
    """8 of 300 questions, 38 % of requests, always wrong: it passed, and only a mean of requests hinted at it."""
    weights = [230.0] * 8 + [10.0] * (N - 8)
    made = real(weights=weights, more=f"thresholds: {{'hit_rate@5': {{min: 0.85, margin: 0.05, per: {per}}}}}")
    assert made.night(day="2026-11-19")[1].verdict == "pass"
    summary, gate = made.night(fault="lambda number, call: number < 8 and 'wrong'")
    assert row(summary, "hit_rate@5")["value"] == pytest.approx(292 / 300)
    asked = row(summary, "hit_rate@5")["per_request"]
    assert asked["low"] < 1 - 1840 / 4760 < asked["high"]
    assert gate.reasons[0].startswith(
        "mine: hit_rate@5: 8 of the 50 most asked questions were right on the accepted night 2026-11-19 and are wrong "
        "tonight: together 38.7 % of requests: "
    )
    assert gate.verdict == ("fail" if per == "both" else "inconclusive")
    if per == "both":
        fell = "mine: hit_rate@5 per request fell by 38.7 points (1.000 to 0.613, 95 % -"
        assert any(reason.startswith(fell) for reason in gate.reasons)
    else:
        assert "a margin per question cannot decide on that; set per: both" in gate.reasons[1]
