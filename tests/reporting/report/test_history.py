"""`ragbench history`: every night, and the best value a metric ever had with its conditions."""

from ragbench_dagster.reporting.history import history_rows
from tests.support.pages import finish

LOGGED = "systems: {logged: {kind: logged}}\nmetrics: [answer_relevancy]\n"


def nights(maker):
    made = maker(LOGGED, n=100)
    for day, share, template in (("2026-11-18", 70, "t1"), ("2026-11-19", 90, "t2"), ("2026-11-20", 80, "t3")):
        values = [1.0] * share + [0.0] * (100 - share)
        conditions = {"templates": {"answer_relevancy": template}, "code_version": f"0.{share}"}
        made.night({"logged": {"answer_relevancy": values}}, day=day, latency=float(share), **conditions)
        made.calibrated(["answer_relevancy"], day=day)
        finish(made.ws, day)
    return made


def test_the_best_answer_relevancy_and_with_which_prompt(maker):
    made = nights(maker)
    rows = history_rows(made.ws, best="answer_relevancy")
    assert [r["date"] for r in rows] == ["2026-11-19", "2026-11-20", "2026-11-18"]
    best = rows[0]
    assert (best["value"], best["n"], best["template"], best["code_version"]) == (0.9, 100, "t2", "0.90")
    assert best["low"] < 0.9 < best["high"]
    assert best["release"] == made.release
    assert best["system_version"] == "v1"


def test_the_lowest_latency_is_the_best(maker):
    rows = history_rows(nights(maker).ws, best="latency_p95_ms")
    assert [r["value"] for r in rows] == [70.0, 80.0, 90.0]


def test_all_nights_newest_first_with_equal_columns(maker):
    rows = history_rows(nights(maker).ws)
    assert [r["date"] for r in rows] == ["2026-11-20", "2026-11-19", "2026-11-18"]
    assert len({tuple(r) for r in rows}) == 1
    assert [r["answer_relevancy"] for r in rows] == [0.8, 0.9, 0.7]


def test_a_metric_nobody_measured_has_no_best_night(maker):
    assert history_rows(nights(maker).ws, best="guideline") == []


def test_an_empty_store_has_no_history(maker):
    assert history_rows(maker(LOGGED, n=5).ws) == []
