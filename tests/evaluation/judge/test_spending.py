"""A run's money is counted in the ledger: over rounds, failures and engines, and on from where it was killed."""

import asyncio

import pytest

from ragbench_dagster.evaluation import spending
from ragbench_dagster.evaluation.judge import governed_llm
from ragbench_dagster.evaluation.judge_runner import judge_answers, judge_items
from ragbench_dagster.evaluation.ledger import Entry, Ledger
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Judge
from tests.support.fake_provider import Act
from tests.support.judge_items import Release, responses

DAY = "2026-01-02"
CENT = {"price": {"input": 10.0, "output": 0.0}, "concurrency": {"min": 1, "start": 1, "max": 1}}


def items(name: str, n: int) -> list[Item]:
    return [Item(f"{name}{i}", f"question {name} {i}?", f"answer {i}", (f"passage {i}",)) for i in range(n)]


def another_process() -> None:
    RUNTIME.close()


@pytest.fixture
def paid(serve, judge_of, workspace):
    """(provider, make): make(usd) is the workspace with a cap; a call costs a cent."""
    provider = serve(lambda seen: Act("YES", prompt_tokens=1000, completion_tokens=0))
    return provider, lambda usd, **more: workspace(
        judge_of(provider.base, **CENT, budget_usd=usd, **more), metrics=["faithfulness"]
    )


@pytest.mark.parametrize("killed", [False, True])
def test_the_sentinel_the_answers_the_week_and_the_pairs_of_a_night_have_one_cap(paid, killed):
    provider, make = paid
    ws, said = make(0.095), [f"said {i}" for i in range(4)]
    steps = [
        lambda: judge_items(ws, "faithfulness", items("s", 3), DAY, run=DAY),
        lambda: judge_answers(ws, DAY, "one", responses(said), Release(said)),
        lambda: judge_items(ws, "faithfulness", items("w", 30), "week 2025-12-29", run=DAY),
        lambda: judge_items(ws, "relevancy", items("p", 3), run=DAY),
    ]
    for step in steps:
        step()
        if killed:
            another_process()
    # Nine cents of nine and a half; the one in flight may cost more than its prompt promised.
    asked = len(provider.seen)
    assert 9 <= asked <= 10
    spending.finish(ws, DAY)
    another_process()
    steps[-1]()
    assert len(provider.seen) <= 10  # its cap stopped it: started again, the night is still the same run
    another_process()
    ws = make(1.0)
    for step in steps:
        step()
    assert len(provider.seen) == 3 + 4 + 30 + 3


def test_a_finished_run_is_over_and_the_next_of_its_name_begins_at_nothing(paid):
    provider, make = paid
    ws = make(0.055)
    judge_items(ws, "faithfulness", items("a", 5), run=DAY)
    spending.finish(ws, DAY)
    another_process()
    judge_items(ws, "faithfulness", items("b", 9), run=DAY)
    assert len(provider.seen) == 10
    judge_items(ws, "faithfulness", items("c", 5), run="2026-01-03")
    assert len(provider.seen) == 15


def test_what_an_engine_asks_the_judges_llm_is_counted_too(paid):
    provider, make = paid
    ws = make(0.055)

    async def engine() -> None:
        llm = governed_llm(ws)
        for n in range(3):
            await llm.acomplete(f"an engine's question {n}")
        await llm.aclose()

    spending.enter(ws, DAY)
    asyncio.run(engine())
    another_process()
    judge_items(ws, "faithfulness", items("a", 9), run=DAY)
    assert len(provider.seen) == 5


def test_failures_that_are_asked_again_have_cost_each_time(tmp_path):
    row = Entry("k", "e", "correctness", "1", "t", "j", "{}", DAY, "s", "v", "")
    with Ledger(f"sqlite:///{tmp_path}/l.db") as book:
        assert book.begin_run(DAY) == 0
        book.keep(row, Verdict("error", cost_usd=0.25))
        book.keep(row, Verdict("error", cost_usd=0.5))
        assert book.begin_run(DAY) == pytest.approx(0.75)
        book.forget_failures(DAY, "s", ["correctness"])
        assert book.begin_run(DAY) == pytest.approx(0.75)
        book.keep(row, Verdict("scored", 1.0, True, cost_usd=1.0))
        assert book.begin_run(DAY) == pytest.approx(1.75)
        book.forget(["e"])
        assert book.begin_run(DAY) == pytest.approx(1.75)
        book.finish_run(DAY)
        assert book.begin_run(DAY) == 0
        book.keep(row._replace(key="k2"), Verdict("over_budget"))
        book.finish_run(DAY)
        book.keep(row._replace(key="k3"), Verdict("scored", 1.0, True, cost_usd=1.0))
        assert book.begin_run(DAY) == pytest.approx(1.0)


def test_a_cap_of_one_metric_is_refused():
    with pytest.raises(ValueError, match=r"metrics\.relevancy\.budget_usd"):
        Judge.model_validate({"metrics": {"relevancy": {"budget_usd": 1}}})
