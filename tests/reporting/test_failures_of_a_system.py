"""A system that failed its user has a 0, known and told apart: in means, corrections, pairs, ranks and tables."""

import numpy as np
import pytest

from ragbench_dagster.reporting.failures import failing_cases
from ragbench_dagster.reporting.leaderboard import rank
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.pairwise import judge_pairs, pairwise_results
from ragbench_dagster.reporting.report import write_report
from ragbench_dagster.reporting.summary import summarise, summary_tables

N = 400
SETTINGS = "metrics: [correctness, 'hit_rate@5']\n"


def crashing(seed, lost, judged=0.9):
    """Verdicts where the first `lost` questions, the hardest, were not answered."""
    own = (np.random.default_rng(seed).random(N) < judged).astype(float).astype(object)
    own[:lost] = "failed"
    return own


@pytest.fixture
def night(maker):
    made = maker(SETTINGS + "pairwise: [[crashes, steady]]\n", n=N)
    hits = np.r_[np.zeros(80), np.ones(N - 80)]  # the hardest are missed
    half = hits.astype(object)
    half[:80] = "failed"
    scores = {
        "crashes": {"correctness": crashing(1, 80), "hit_rate@5": half},
        "steady": {"correctness": crashing(1, 0), "hit_rate@5": hits},
    }
    made.night(scores)
    made.calibrated(["correctness"], table={"tp": 90, "fp": 20, "fn": 10, "tn": 80})
    return made, "2026-11-20"


def test_a_failure_is_zero_in_every_metric_and_covered(night):
    made, day = night
    systems = summarise(made.ws, day)["systems"]
    for system in ("crashes", "steady"):
        row = systems[system]["metrics"]["hit_rate@5"]["overall"]
        assert (row["value"], row["n"], row["coverage"]) == (0.8, N, 1.0)
    row = systems["crashes"]["metrics"]["correctness"]["overall"]
    assert row["statuses"] == {"failed": 80, "scored": 320}
    assert row["value"] == pytest.approx(0.8 * np.mean(crashing(1, 80)[80:].astype(float)))
    answered = systems["crashes"]["metrics"]["answered"]["overall"]
    assert (answered["value"], answered["n"], answered["corrected"]) == (0.8, N, None)
    assert systems["steady"]["metrics"]["answered"]["overall"]["value"] == 1.0
    part = [r for r in systems["crashes"]["metrics"]["answered"]["slices"] if r["part"] == "a"]
    assert part[0]["value"] == 0.8


def test_only_what_a_judge_said_is_corrected(night):
    """Rogan-Gladen on the zeros would give a fifth of the failures back: the judge never saw them."""
    made, day = night
    row = summarise(made.ws, day)["systems"]["crashes"]["metrics"]["correctness"]["overall"]
    q = np.mean(crashing(1, 80)[80:].astype(float))
    people = min(1.0, (q + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert row["corrected"]["value"] == pytest.approx(0.8 * people)
    assert row["corrected"]["low"] < 0.8 * people <= row["corrected"]["high"] < 0.85
    assert "80 failures of the system count as 0" in row["corrected"]["reason"]


def test_a_system_that_answers_nothing_has_zero_and_not_unknown(maker):
    made = maker(SETTINGS, n=60)
    day = made.night({"s": {"correctness": ["failed"] * 60}})
    made.calibrated(["correctness"])
    row = summarise(made.ws, day)["systems"]["s"]["metrics"]["correctness"]["overall"]
    assert (row["value"], row["coverage"], row["corrected"]["value"]) == (0.0, 1.0, 0.0)
    assert row["corrected"]["high"] < 0.1


def test_a_judges_failure_stays_unknown(maker):
    made = maker(SETTINGS, n=60)
    day = made.night({"s": {"correctness": ["error"] * 10 + ["failed"] * 10 + [1.0] * 40}})
    row = summarise(made.ws, day)["systems"]["s"]["metrics"]["correctness"]["overall"]
    assert (row["value"], row["n"], row["coverage"]) == (0.8, 50, pytest.approx(5 / 6))


def test_the_embedded_judge_gives_the_point_to_who_answered(night):
    made, day = night
    judge_pairs(made.ws, day)
    (pair,) = pairwise_results(Night.open(made.ws, day))["pairs"]
    assert (pair["n"], pair["losses"], pair["wins"]) == (N, 80, 0)


def test_a_judge_is_not_asked_about_an_answer_that_is_not_there(maker, monkeypatch):
    from ragbench_dagster.evaluation import judge_runner

    made = maker(SETTINGS + "judge: {provider: openai_like, model: m-2026-01-01}\npairwise: [[one, two]]\n", n=6)
    lost = {"one": ["failed", "failed", 1.0, 1.0, 1.0, 1.0], "two": [1.0, "failed", "failed", 1.0, 1.0, 1.0]}
    day = made.night({name: {"correctness": values} for name, values in lost.items()})
    monkeypatch.setattr(judge_runner, "judge_items", lambda ws, metric, items, **more: [1 / 0 for _ in items])
    judge_pairs(made.ws, day)
    (pair,) = pairwise_results(Night.open(made.ws, day))["pairs"]
    assert (pair["n"], pair["wins"], pair["losses"], pair["ties"]) == (6, 1, 1, 4)


def test_ranks_tables_and_page_tell_failures_from_wrong_answers(night):
    made, day = night
    summarise(made.ws, day)
    rows = {(r["metric"], r["system"]): r for r in rank(made.ws, day)["rows"]}
    assert (rows["answered", "steady"]["rank"], rows["answered", "crashes"]["rank"]) == (1, 2)
    status = next(t for t in summary_tables(made.ws, day) if t["title"] == "By status")
    failed = status["columns"].index("failed")
    assert {(r[0], r[1]): r[failed] for r in status["rows"]}["crashes", "hit_rate@5"] == 80
    assert {r["status"] for r in failing_cases(made.ws, day, metric="answered")} == {"failed"}
    page = write_report(made.ws, day).read_text("utf-8")
    assert "80 failures of the system, each counted as 0" in page
