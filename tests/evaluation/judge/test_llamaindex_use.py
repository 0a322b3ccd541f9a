"""Our evaluators and the judge's LLM in the hands of somebody who knows LlamaIndex: with any LLM, sync and async."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core import Document, Settings, SummaryIndex
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.llms import CustomLLM, MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai_like import OpenAILike

import ragbench_dagster
from ragbench_dagster import (
    AnswerRelevancy,
    ContextRelevancy,
    Correctness,
    Faithfulness,
    Guideline,
    Pairwise,
    Relevancy,
    governed_llm,
)
from ragbench_dagster.evaluation import spending
from ragbench_dagster.evaluation.concurrency import Stop
from ragbench_dagster.evaluation.judge import budget
from ragbench_dagster.evaluation.judge.background_loop import background
from ragbench_dagster.evaluation.judge.provider_errors import ItemFault
from ragbench_dagster.evaluation.judge.rate_limiter import Limiter
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.settings import Concurrency
from tests.support.fake_provider import Act

pytestmark = pytest.mark.filterwarnings("ignore:asyncio_module")
ASKED: dict[str, Any] = {"query": "What does it cost?", "response": "It costs 10.", "contexts": ["The fee is 10."]}
EVALUATORS: dict[str, tuple[Callable[..., Any], dict[str, Any], str, float]] = {
    "faithfulness": (Faithfulness, {}, "YES", 1.0),
    "relevancy": (Relevancy, {}, "YES", 1.0),
    "correctness": (Correctness, {"reference": "10 euro"}, "4.5\nFine.", 4.5),
    "answer_relevancy": (AnswerRelevancy, {}, "Good. [RESULT] 2", 1.0),
    "context_relevancy": (ContextRelevancy, {}, "Good. [RESULT] 3", 0.75),
    "guideline": (Guideline, {}, '{"passing": true, "feedback": "fine"}', 1.0),
    "pairwise": (Pairwise, {"second_response": "It is free."}, "[[C]]", 0.5),
}


class Plain(CustomLLM):
    """The least that LlamaIndex asks of an LLM: `complete`."""

    reply: str = "YES"
    prompts: list[str] = []

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="plain")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.reply)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


def plain(reply: str, **more: Any) -> Plain:
    return Plain(reply=reply, prompts=[], **more)


async def within_a_loop(call: Callable[[], Any]) -> Any:
    """What `call` gives where the calling thread's loop runs and has to wait, as in a notebook."""
    return call()


@pytest.fixture(autouse=True)
def _own_loop() -> Iterator[None]:
    """LlamaIndex's sync doors run the thread's current loop, and make one that they never close where there is none."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def of_openai(serve) -> Callable[..., Any]:
    """LlamaIndex's own client at a fake provider."""
    return lambda reply: OpenAILike(
        model="m", api_base=serve(lambda seen: Act(reply)).base, api_key="k", is_chat_model=True, context_window=8192
    )


@pytest.mark.parametrize("metric", EVALUATORS)
def test_an_evaluator_needs_an_llm_and_nothing_else(metric):
    kind, more, reply, score = EVALUATORS[metric]
    results = [
        kind(llm=plain(reply)).evaluate(**ASKED, **more),
        asyncio.run(kind(llm=plain(reply)).aevaluate(**ASKED, **more)),
        asyncio.run(within_a_loop(lambda: kind(llm=plain(reply)).evaluate(**ASKED, **more))),
    ]
    for result in results:
        assert (result.score, result.invalid_result) == (score, False)
        assert result.passing is (None if metric == "pairwise" else True)


def test_without_an_llm_it_is_that_of_llama_indexs_settings(monkeypatch):
    monkeypatch.setattr(Settings, "_llm", plain("NO"))
    assert Faithfulness().evaluate(**ASKED).passing is False


def test_llama_indexs_own_client_in_its_batch_runner(of_openai):
    runner = BatchEvalRunner({"f": Faithfulness(llm=of_openai("YES")), "c": Correctness(llm=of_openai("3"))}, workers=4)
    lists: dict[str, Any] = {
        "queries": ["q"] * 3, "response_strs": ["r"] * 3, "contexts_list": [["c"]] * 3,
        "c": {"reference": ["r"] * 3},
    }  # fmt: skip
    found = asyncio.run(runner.aevaluate_response_strs(**lists))
    assert [[r.score for r in found[name]] for name in "fc"] == [[1.0] * 3, [3.0] * 3]
    assert [r.passing for r in found["c"]] == [False] * 3


def test_the_judges_llm_in_the_batch_runner_in_loops_that_come_and_go(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES"))
    evaluators = {"f": Faithfulness(llm=governed_llm(workspace(judge_of(provider.base))))}
    lists: dict[str, Any] = {"queries": ["q"] * 9, "response_strs": ["r"] * 9, "contexts_list": [["c"]] * 9}
    for found in (
        BatchEvalRunner(evaluators).evaluate_response_strs(**lists),
        asyncio.run(within_a_loop(lambda: BatchEvalRunner(evaluators).evaluate_response_strs(**lists))),
        asyncio.run(BatchEvalRunner(evaluators).aevaluate_response_strs(**lists)),
    ):
        assert [r.passing for r in found["f"]] == [True] * 9
    assert len(provider.seen) == 27


def test_the_arguments_are_llama_indexs():
    asked = plain("3")
    assert (
        Correctness(llm=asked, eval_template="Rate {generated_answer}", score_threshold=3)
        .evaluate(**ASKED, reference="x")
        .passing
    )
    assert "Rate It costs 10." in asked.prompts[0]
    template = PromptTemplate("Is {response} good?")
    assert Faithfulness(llm=asked, eval_template=template).get_prompts() == {"eval_template": template}
    assert AnswerRelevancy(llm=plain("[RESULT] 1"), score_threshold=1).evaluate(**ASKED).passing
    assert not ContextRelevancy(llm=plain("[RESULT] 3"), score_threshold=4).evaluate(**ASKED).passing
    for template in ("Mind {guidelines}: {response}", PromptTemplate("Mind {guidelines}: {response}")):
        asked = plain('{"passing": false, "feedback": "long"}')
        result = Guideline(llm=asked, guidelines="Be short.", eval_template=template).evaluate(**ASKED)
        assert (result.passing, result.feedback) == (False, "long")
        assert "Mind Be short.: It costs 10." in asked.prompts[0]
        assert "JSON" in asked.prompts[0]
    assert PromptTemplate("Mind {guidelines}").output_parser is None, "a template that is handed in stays as it was"
    asked = plain("[[A]]")
    once = Pairwise(llm=asked, enforce_consensus=False).evaluate(**ASKED, second_response="b")
    assert (once.score, once.passing, once.pairwise_source, len(asked.prompts)) == (1.0, True, None, 1)
    both = Pairwise(llm=asked).evaluate(**ASKED, second_response="b")
    assert (both.score, both.passing, both.pairwise_source) == (0.5, None, "neither")
    spoken = plain("YES", system_prompt="Be strict.")
    Faithfulness(llm=spoken).evaluate(**ASKED)
    assert "Be strict." in spoken.prompts[0]


@pytest.mark.parametrize(
    ("kind", "reply", "raises"),
    [(Faithfulness, "NO", True), (Faithfulness, "YES", False), (Faithfulness, "perhaps", True),
     (AnswerRelevancy, "[RESULT] 0", False), (AnswerRelevancy, "perhaps", True)],
)  # fmt: skip
def test_raise_error_raises_where_llama_index_would(kind, reply, raises):
    if raises:
        with pytest.raises(ValueError, match="invalid"):
            kind(llm=plain(reply), raise_error=True).evaluate(**ASKED)
    else:
        assert not kind(llm=plain(reply), raise_error=True).evaluate(**ASKED).invalid_result
    assert kind(llm=plain(reply)).evaluate(**ASKED).invalid_result is (reply == "perhaps")


def test_an_ordinary_query_engine_asks_the_judges_llm(serve, judge_of, workspace):
    refused = Act(status=429, headers={"Retry-After": "0"})
    provider = serve(lambda seen: refused if seen.attempt == 1 and "e?" in seen.prompt else Act("Ten."))
    llm = governed_llm(workspace(judge_of(provider.base)))
    index = SummaryIndex.from_documents([Document(text="The fee is 10.")])
    engine, streaming = index.as_query_engine(llm=llm), index.as_query_engine(llm=llm, streaming=True)
    assert str(engine.query("One?")) == "Ten."
    assert str(asyncio.run(within_a_loop(lambda: engine.query("Two?")))) == "Ten."
    assert str(asyncio.run(engine.aquery("Three?"))) == "Ten."
    with ThreadPoolExecutor(4) as threads:
        assert [str(a) for a in threads.map(engine.query, ["4", "5", "6", "7"])] == ["Ten."] * 4
    assert "".join(streaming.query("Eight?").response_gen) == "Ten."
    assert [seen.status for seen in provider.seen].count(429) == 2
    assert len(provider.seen) == 10
    assert all("stream" not in seen.body for seen in provider.seen)


def test_every_way_to_ask_it_gives_the_reply(serve, judge_of, workspace):
    provider = serve(lambda seen: Act('{"fee": 10}'))
    llm = governed_llm(workspace(judge_of(provider.base)))
    messages = [ChatMessage(role="user", content="?")]

    class Fee(BaseModel):
        fee: int

    async def in_a_loop() -> list[str]:
        pieces = [piece.delta or "" async for piece in await llm.astream_chat(messages)]
        more = [piece.delta or "" async for piece in await llm.astream_complete("?")]
        return [
            *pieces, *more, (await llm.achat(messages)).message.content or "", str(await llm.acomplete("?")),
            str(await llm.apredict(PromptTemplate("?"))),
        ]  # fmt: skip

    replies = [
        llm.chat(messages).message.content, str(llm.complete("?")), llm.predict(PromptTemplate("?")),
        *[piece.delta for piece in llm.stream_chat(messages)], *[piece.text for piece in llm.stream_complete("?")],
        str(llm.complete("?", use_chat_completions=False)), *asyncio.run(in_a_loop()),
    ]  # fmt: skip
    assert replies == ['{"fee": 10}'] * 11
    assert llm.structured_predict(Fee, PromptTemplate("What is it?")) == Fee(fee=10)
    assert {seen.path for seen in provider.seen} == {"/v1/chat/completions"}
    assert {seen.body["temperature"] for seen in provider.seen} == {0}


def test_sync_calls_pass_the_same_limits_as_a_judge_session_beside_them(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES", delay_s=0.1))
    llm = governed_llm(workspace(judge_of(provider.base, concurrency={"min": 3, "start": 3, "max": 3})))

    async def session() -> None:
        llm.prepare(Stop(), "night")
        await asyncio.gather(*(llm.acomplete(f"night {i}") for i in range(9)))
        await llm.aclose()

    with ThreadPoolExecutor(10) as threads:
        night = threads.submit(asyncio.run, session())
        list(threads.map(lambda i: llm.complete(f"engine {i}"), range(9)))
        night.result()
    begun = [seen.at for seen in provider.seen]
    assert len(begun) == 18
    # Each takes the server a tenth of a second: no tenth saw more than three begin.
    assert max(sum(one <= other < one + 0.1 for other in begun) for one in begun) == 3


def test_sync_calls_keep_the_pace_and_the_budget_and_are_noted_in_the_ledger(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES", prompt_tokens=1000, completion_tokens=0))
    cent = {"price": {"input": 10.0, "output": 0.0}, "concurrency": {"min": 1, "start": 1, "max": 1}}
    ws = workspace(judge_of(provider.base, rpm=600, budget_usd=0.055, **cent))
    llm = governed_llm(ws)
    spending.enter(ws, "night")
    for n in range(5):
        llm.complete(f"question {n}")
    with pytest.raises(ItemFault, match="budget_usd") as fault:
        llm.complete("one too many")
    assert fault.value.status == "over_budget"
    assert len(provider.seen) == 5
    with Ledger.open(ws) as ledger:
        assert ledger.begin_run("night") == pytest.approx(0.05)
    budget.open_budgets.clear()
    spending.enter(ws, "next")  # the same LLM, the same connection: another run pays
    for n in range(5, 10):
        llm.complete(f"question {n}")
    assert provider.seen[-1].at - provider.seen[0].at >= 0.35, "600 a minute, half a second's worth at once"
    with Ledger.open(ws) as ledger:
        assert ledger.begin_run("next") == pytest.approx(0.05)


def test_calls_outside_a_run_have_one_cap_too(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES", prompt_tokens=1000, completion_tokens=0))
    llm = governed_llm(workspace(judge_of(provider.base, budget_usd=0.025, price={"input": 10.0, "output": 0.0})))
    assert [str(llm.complete(f"question {n}")) for n in range(2)] == ["YES", "YES"]
    with pytest.raises(ItemFault, match="budget_usd"):
        asyncio.run(llm.acomplete("one too many"))
    assert len(provider.seen) == 2


def test_an_interrupted_wait_takes_its_call_back(serve, judge_of, workspace):
    provider = serve(lambda seen: Act(hang=True) if "hang" in seen.prompt else Act("YES"))
    one = {"min": 1, "start": 1, "max": 1}
    llm = governed_llm(workspace(judge_of(provider.base, timeout_s=30, deadline_s=30, concurrency=one)))

    async def given_up() -> None:
        async with asyncio.timeout(0.3):
            await llm.acomplete("hang")

    with pytest.raises(TimeoutError):
        asyncio.run(given_up())
    assert str(llm.complete("and the next")) == "YES"  # its place is free again


def test_a_closed_background_loop_starts_again(serve, judge_of, workspace):
    llm = governed_llm(workspace(judge_of(serve(lambda seen: Act("YES")).base)))
    assert str(llm.complete("?")) == "YES"
    background.close()
    assert str(llm.complete("?")) == "YES"
    background.close()
    background.close()


def test_a_limiter_wakes_who_waits_in_another_threads_loop_and_forgets_a_dead_one():
    limiter = Limiter(None, None, Concurrency(min=1, start=1, max=1))
    order: list[str] = []

    async def hold() -> None:
        permit = await limiter.acquire(lambda: 1)
        taken.set()
        await asyncio.sleep(0.2)
        order.append("first")
        limiter.release(permit, "ok")

    async def wait() -> None:
        limiter.release(await limiter.acquire(lambda: 1), "ok")
        order.append("second")

    taken = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(asyncio.run, hold())
        assert taken.wait(5)
        threads.submit(asyncio.run, wait()).result(5)
        first.result(5)
    assert order == ["first", "second"]
    loop = asyncio.new_event_loop()
    loop.run_until_complete(limiter.acquire(lambda: 1))  # never released
    loop.close()
    asyncio.run(asyncio.wait_for(wait(), 5))
    assert limiter.in_flight == 0


def test_a_limiters_timer_rings_on_the_loop_that_waits():
    limiter = Limiter(300, None, Concurrency(min=1, start=1, max=1))
    held, queued = threading.Event(), threading.Event()

    async def hold() -> None:
        for _ in range(3):  # what may be caught up is used
            limiter.release(await limiter.acquire(lambda: 1), "ok")
        permit = await limiter.acquire(lambda: 1)
        held.set()
        assert queued.wait(5)
        limiter.release(permit, "ok")  # the other may go in a fifth of a second; this loop ends now

    async def wait() -> None:
        waiting = asyncio.create_task(limiter.acquire(lambda: 1))
        await asyncio.sleep(0)
        queued.set()
        limiter.release(await asyncio.wait_for(waiting, 3), "ok")

    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(asyncio.run, hold())
        assert held.wait(5)
        asyncio.run(wait())
        holding.result(5)


def test_everything_public_is_documented_and_importing_the_package_is_cheap():
    for name in ragbench_dagster.__all__:
        assert getattr(ragbench_dagster, name).__doc__, name
    code = "import sys, ragbench_dagster; print([m for m in ('llama_index', 'pandas', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_process_that_asked_ends_without_a_word(serve, judge_of, workspace):
    base = serve(lambda seen: Act("YES")).base
    code = (
        "import sys\nfrom ragbench_dagster.evaluation.judge.llm import GovernedLLM\n"
        "from ragbench_dagster.settings import Judge\n"
        f"judge = Judge.model_validate({judge_of(base).model_dump(mode='json', exclude_unset=True)!r})\n"
        "import asyncio\nfrom ragbench_dagster import Faithfulness\n"
        "llm = GovernedLLM(judge)\nask = lambda: print(Faithfulness(llm=llm).evaluate(response='r', contexts=['c']).passing)\n"
        "async def main(): ask()\n"
        "for _ in range(2): ask(); asyncio.run(main()); print(llm.complete('?'))"
    )
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", code],
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.stdout == "True\nTrue\nYES\n" * 2
    assert "Unclosed" not in done.stderr  # a client; LlamaIndex itself leaves an event loop open


def test_a_mock_llm_gives_an_invalid_result_and_no_zero():
    result = Faithfulness(llm=MockLLM()).evaluate(**ASKED)
    assert (result.score, result.invalid_result) == (None, True)
