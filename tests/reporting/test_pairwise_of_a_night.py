"""Two systems side by side: win, tie, loss, position bias, and worth of three or more."""

import numpy as np
import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import judge_runner
from ragbench_dagster.records import Verdict
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.pairwise import judge_pairs, pairwise_results
from ragbench_dagster.reporting.summary import summarise, summary_tables
from ragbench_dagster.store import read_table, write_table

N = 60


@pytest.fixture
def night(maker):
    def run(settings, names=("one", "two")):
        made = maker("metrics: [correctness]\n" + settings, n=N)
        day = made.night({name: {"correctness": np.linspace(0, 1, N) + i} for i, name in enumerate(names)})
        for name in names:  # answers of their own
            path = made.ws.night(day, name) / "responses.parquet"
            table = read_table(path)
            texts = [f"{name} says {t}" for t in table["response"].to_pylist()]
            at = table.column_names.index("response")
            write_table(path, table.set_column(at, "response", [texts]))
        return made, day

    return run


MODEL = "judge: {provider: openai_like, model: m-2026-01-01}\n"


def test_the_embedded_judge_compares_scores_and_says_so(night):
    made, day = night("pairwise: [[two, one]]\n")
    judge_pairs(made.ws, day)
    (pair,) = pairwise_results(Night.open(made.ws, day))["pairs"]
    assert (pair["wins"], pair["losses"], pair["basis"], pair["position_bias"]) == (N, 0, "correctness", None)
    summarise(made.ws, day)
    assert "Side by side" in [t["title"] for t in summary_tables(made.ws, day)]


def test_a_judge_that_contradicts_itself_in_the_other_order_ties_and_is_counted(night, monkeypatch):
    made, day = night(MODEL + "pairwise: [[one, two]]\n")
    asked = []

    def judge_items(ws, metric, items, round="", progress=None, run=""):
        asked.extend(items)
        found = []
        for place, _ in enumerate(items):
            biased = place % 4 == 3
            score = 0.5 if biased else float(place % 4 == 0)
            found.append(Verdict("scored", score, details={"position_bias": biased}, attempts=2))
        found[-1] = Verdict("refused", attempts=1)
        return found

    monkeypatch.setattr(judge_runner, "judge_items", judge_items)
    spent = judge_pairs(made.ws, day)
    assert all(i.response.startswith("one says") and i.second.startswith("two says") for i in asked)
    assert spent["calls"] == 2 * (N - 1) + 1
    (pair,) = pairwise_results(Night.open(made.ws, day))["pairs"]
    assert (pair["n"], pair["wins"], pair["losses"], pair["ties"]) == (N - 1, 15, 30, 14)
    assert pair["position_bias"] == pytest.approx(14 / 59)
    assert pair["statuses"] == {"refused": 1, "scored": N - 1}
    assert pair["win_share"]["low"] < pair["win_share"]["value"] < pair["win_share"]["high"]


def test_equal_answers_tie_without_a_call(night, monkeypatch):
    made, day = night(MODEL + "pairwise: [[one, two]]\n")
    one, two = (made.ws.night(day, name) / "responses.parquet" for name in ("one", "two"))
    write_table(two, read_table(one))
    monkeypatch.setattr(
        judge_runner, "judge_items", lambda ws, metric, items, **_: [] if not items else pytest.fail("a call")
    )
    judge_pairs(made.ws, day)
    (pair,) = pairwise_results(Night.open(made.ws, day))["pairs"]
    assert (pair["ties"], pair["n"]) == (N, N)


def test_three_systems_get_a_worth(night):
    made, day = night("pairwise: [[two, one], [three, two], [three, one]]\n", ("one", "two", "three"))
    judge_pairs(made.ws, day)
    worth = pairwise_results(Night.open(made.ws, day))["worth"]
    log = {name: w["log_worth"] for name, w in worth["systems"].items()}
    assert log["three"] > log["two"] > log["one"]
    assert worth["smoothed"]  # nobody ever lost upwards: the maximum lies at infinity without pseudo counts


def test_a_pair_with_an_unknown_system_is_one_line(night):
    made, day = night("pairwise: [[one, gone]]\n")
    with pytest.raises(UserError, match=r"pairwise: the system 'gone' has no answers on 2026-11-20"):
        judge_pairs(made.ws, day)


def test_no_pairs_write_nothing(night):
    made, day = night("")
    assert judge_pairs(made.ws, day)["pairs"] == 0
    assert not (made.ws.night(day) / "pairwise.parquet").exists()
