"""Heavy questions through a real engine: asked five times, judged each, paid once, their mean per request."""

import numpy as np
import pytest

from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.reproduce import reproduce_night
from ragbench_dagster.store import read_table
from tests.support.real_nights import RealNights

DAY = "2026-11-20"
PER_REQUEST = "thresholds: {correctness: {margin: 0.05, per: request}}"
WEIGHTS = np.r_[400.0, 200.0, np.full(298, 10.0)]  # the first two are heavy, the others .0028 of the requests


@pytest.fixture
def made(tmp_path):
    return RealNights(tmp_path, 300, WEIGHTS, PER_REQUEST, "correctness, 'hit_rate@5'")


def test_heavy_questions_are_asked_five_times_and_count_with_their_mean(made):
    # The most asked question is right in some of its asks only; which, is chance of the call.
    made.night(fault="lambda number, call: number == 0 and call % 2 and 'wrong'")
    assert made.run.calls == 300 + 2 * 4
    asked = made.asked
    assert asked.count("question 0") == asked.count("question 1") == 5
    assert asked.count("question 2") == 1
    night = Night.open(made.ws, DAY)
    table = read_table(night.folder / "asks.parquet").to_pylist()
    own = [r for r in table if (r["metric"], r["example_id"]) == ("hit_rate@5", "e00000")]
    assert [r["ask"] for r in own] == [0, 1, 2, 3, 4]
    for metric in ("hit_rate@5", "correctness", "answered"):
        scores = night.scores["mine", metric]
        assert scores.asks.tolist() == [5, 5, *[1] * 298]
        values = [r["value"] for r in table if (r["metric"], r["example_id"]) == (metric, "e00000")]
        assert scores.per_request[0] == pytest.approx(np.mean(values))
        assert scores.value[0] == values[0]
        assert scores.per_request[1:].tolist() == scores.value[1:].tolist()
    hits = night.scores["mine", "hit_rate@5"]
    assert 0 < hits.per_request[0] < 1
    assert not hits.fixed
    assert reproduce_night(made.ws, DAY)["same"]


def test_the_night_again_asks_and_judges_nothing(made):
    fault = "lambda number, call: number == 0 and call % 2 and 'wrong'"
    made.night(fault=fault)
    before = {p.name: p.read_bytes() for p in made.ws.night(DAY).rglob("*.parquet")}
    made.night(fault=fault)
    assert (made.run.calls, made.judged.calls) == (0, 0)
    assert {p.name: p.read_bytes() for p in made.ws.night(DAY).rglob("*.parquet")} == before


def test_without_a_margin_per_request_nothing_is_asked_twice_and_nothing_stays(made):
    made.night()
    assert (made.ws.night(DAY) / "asks.parquet").exists()
    made.more = ""
    made.night()
    assert made.run.calls == 0
    assert not list(made.ws.night(DAY).rglob("extra_*"))
    assert not (made.ws.night(DAY) / "asks.parquet").exists()
    assert Night.open(made.ws, DAY).scores["mine", "hit_rate@5"].asks.max() == 1
