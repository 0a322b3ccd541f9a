"""Our evaluators beside LlamaIndex's own: the same prompts, and the same results on clean replies."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import evaluation as stock
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge import build_evaluator
from ragbench_dagster.evaluation.judge.catalog import build_llm_evaluator
from ragbench_dagster.evaluation.judge_runner import judge_items
from ragbench_dagster.records import Item
from ragbench_dagster.settings import Judge
from tests.support.fake_provider import Act, token

ITEM = Item("a", "What does it cost?", "It costs 10 {euro}.", ("The fee is 10.\n", "Paid yearly. {x}"), "10 euro")
GUIDELINES = ["Name the currency.", "Be short."]


class Scripted(CustomLLM):
    """Says what it is told to and keeps what it was asked."""

    reply: str = ""
    asked: list[list[tuple[str, str]]]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8192, num_output=256, is_chat_model=True, model_name="scripted")

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        self.asked.append([(m.role.value, m.content) for m in messages])
        return ChatResponse(message=ChatMessage(role="assistant", content=self.reply))

    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return self.chat(messages)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


def ours(metric: str, llm: Any) -> Any:
    judge = Judge.model_validate({"guidelines": GUIDELINES})
    return build_llm_evaluator(metric, judge, None, llm)


STOCK: dict[str, Callable[[Any], Any]] = {
    "faithfulness": lambda llm: stock.FaithfulnessEvaluator(llm=llm),
    "relevancy": lambda llm: stock.RelevancyEvaluator(llm=llm),
    "correctness": lambda llm: stock.CorrectnessEvaluator(llm=llm),
    "answer_relevancy": lambda llm: stock.AnswerRelevancyEvaluator(llm=llm),
    "context_relevancy": lambda llm: stock.ContextRelevancyEvaluator(llm=llm),
    "guideline": lambda llm: stock.GuidelineEvaluator(llm=llm, guidelines="\n".join(GUIDELINES)),
    "pairwise": lambda llm: stock.PairwiseComparisonEvaluator(llm=llm),
}
CLEAN: list[tuple[str, str]] = [
    ("faithfulness", "YES"), ("faithfulness", "NO"), ("faithfulness", "YES\nThe fee is named."),
    ("faithfulness", "No."),
    ("relevancy", "YES"), ("relevancy", "NO"), ("relevancy", "yes"),
    ("correctness", "4.0\nAs the reference."), ("correctness", "1\nWrong."), ("correctness", "3.5\nPartly."),
    ("correctness", "5.0\n\nFully."),
    ("answer_relevancy", "On the subject.\n[RESULT] 2"), ("answer_relevancy", "No.\n[RESULT] 0"),
    ("answer_relevancy", "Half.\n[RESULT] 1"),
    ("context_relevancy", "Enough.\n[RESULT] 4"), ("context_relevancy", "Partly.\n[RESULT] 2.5"),
    ("guideline", '{"passing": true, "feedback": "short"}'), ("guideline", '{"passing": false, "feedback": "long"}'),
    ("pairwise", "Alike. [[C]]"),
]  # fmt: skip


def ask(evaluator: Any, metric: str) -> Any:
    return asyncio.run(
        evaluator.aevaluate(
            query=ITEM.query,
            response=ITEM.response,
            contexts=list(ITEM.contexts),
            **({"reference": ITEM.reference} if metric in ("correctness", "pairwise") else {}),
            **({"second_response": "Ten."} if metric == "pairwise" else {}),
        )
    )


@pytest.mark.parametrize(("metric", "reply"), CLEAN)
def test_on_clean_replies_prompt_score_and_verdict_are_those_of_llama_index(metric: str, reply: str):
    mine, theirs = Scripted(reply=reply, asked=[]), Scripted(reply=reply, asked=[])
    got, want = ask(ours(metric, mine), metric), ask(STOCK[metric](theirs), metric)
    assert mine.asked == theirs.asked
    assert got.score == want.score
    assert got.invalid_result is want.invalid_result is False
    if metric not in ("answer_relevancy", "context_relevancy"):  # which give no verdict there
        assert got.passing == want.passing
    assert want.feedback in (got.feedback, "", reply) or got.feedback == reply


@pytest.mark.parametrize("reply", ["Unclear. It was updated yesterday.", "I'm sorry, I can't help with that.", ""])
def test_where_llama_index_guesses_we_do_not(reply: str):
    theirs = ask(STOCK["faithfulness"](Scripted(reply=reply, asked=[])), "faithfulness")
    assert theirs.score in (0.0, 1.0)
    mine = ask(ours("faithfulness", Scripted(reply=reply, asked=[])), "faithfulness")
    assert mine.score is None
    assert mine.passing is None
    assert mine.invalid_result is True


def test_our_evaluators_run_inside_llama_indexs_runner():
    llm = Scripted(reply="YES", asked=[])
    runner = stock.BatchEvalRunner({"f": ours("faithfulness", llm), "r": ours("relevancy", llm)}, workers=4)
    found = asyncio.run(
        runner.aevaluate_response_strs(["q"] * 3, ["r"] * 3, [["passage"]] * 3),
    )
    assert {name: [r.score for r in results] for name, results in found.items()} == {"f": [1.0] * 3, "r": [1.0] * 3}


@pytest.mark.parametrize(
    ("replies", "score", "bias"),
    [("AB", 1.0, False), ("BA", 0.0, False), ("AA", 0.5, True), ("BB", 0.5, True), ("CC", 0.5, False),
     ("AC", 0.5, True)],
)  # fmt: skip
def test_pairwise_asks_both_orders_and_a_disagreement_is_a_tie(serve, judge_of, workspace, replies, score, bias):
    provider = serve(lambda seen: Act(f"[[{replies[len(provider.seen) - 1]}]]"))
    item = Item("a", "q?", "first answer", (), "r", (), "second answer")
    verdict = judge_items(workspace(judge_of(provider.base)), "pairwise", [item])[0]
    assert verdict.score == score
    assert verdict.passing is (None if score == 0.5 else score == 1.0)
    assert verdict.details["position_bias"] is bias
    assert verdict.attempts == 2
    assert provider.seen[0].prompt.index("first answer") < provider.seen[0].prompt.index("second answer")
    assert provider.seen[1].prompt.index("second answer") < provider.seen[1].prompt.index("first answer")


def test_what_an_evaluator_needs_and_lacks_is_not_applicable(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES"))
    ws = workspace(judge_of(provider.base, guidelines=GUIDELINES))
    bare = Item("a", "q?", "r")
    for metric in ("faithfulness", "relevancy", "correctness", "context_relevancy", "pairwise", "semantic_similarity"):
        verdict = judge_items(ws, metric, [bare])[0]
        assert (verdict.status, verdict.score) == ("not_applicable", None), metric
    assert provider.seen == []


def logprob_act(**alternatives: float) -> Act:
    first = max(alternatives, key=lambda name: alternatives[name])
    return Act(first, logprobs=[token(first, **alternatives)])


def test_log_probabilities_give_the_difference_of_logits(serve, judge_of, workspace):
    provider = serve(lambda seen: logprob_act(YES=0.6, NO=0.2, Maybe=0.2))
    ws = workspace(judge_of(provider.base, read="logprobs"))
    verdict = judge_items(ws, "faithfulness", [ITEM])[0]
    assert provider.seen[0].body["logprobs"] is True
    assert provider.seen[0].body["top_logprobs"] == 20
    # logit(.6) = ln 1.5, logit(.2) = -ln 4: together ln 6
    assert verdict.score == pytest.approx(1.791759, abs=1e-6)
    assert verdict.passing is True


@pytest.mark.parametrize(
    ("tokens", "sign"),
    [([token("\n", **{"\n": 0.9}), token("**", **{"**": 0.9}), token("Yes", **{"Yes": 0.7, " no": 0.2})], 1),
     ([token("Answer", Answer=0.9), token(":", **{":": 0.9}), token(" NO", **{" NO": 0.9, " YES": 0.05})], -1),
     ([token("<think>", **{"<think>": 1.0}), token("YES", YES=0.9), token("</think>", **{"</think>": 1.0}),
       token("no", no=0.8, yes=0.1)], -1),
     ([token("N", N=0.8, Y=0.1), token("O", O=0.9)], -1),
     ([token("No", No=0.8, Yes=0.1), token("thing", thing=0.9)], 0),
     ([token("The", The=0.9), token(" cat", **{" cat": 0.9})], 0), ([], 0), ([token("maybe", maybe=0.5)], 0),
     ([token("Paris", Paris=0.4, Yes=0.3, No=0.1), token(" is", **{" is": 0.9})], 1),
     ([token("Paris", Paris=0.9, Yes=0.01, No=0.01)], 0)],
)  # fmt: skip
def test_the_first_verdict_token_is_found(tokens: list[dict[str, Any]], sign: int):
    from ragbench_dagster.evaluation.judge.logprobs import yes_no

    found = yes_no(tokens)
    assert (found is None) if sign == 0 else (found is not None and found[0] * sign > 0)


def test_correctness_by_log_probabilities_is_the_expected_score(serve, judge_of, workspace):
    act = Act("4", logprobs=[token("4", **{"4": 0.5, "5": 0.3, "2": 0.2})])
    provider = serve(lambda seen: act)
    verdict = judge_items(workspace(judge_of(provider.base, read="logprobs")), "correctness", [ITEM])[0]
    assert verdict.score == pytest.approx(0.5 * 4 + 0.3 * 5 + 0.2 * 2)
    assert verdict.passing is False


def test_a_provider_without_log_probabilities_is_told_of(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES"))
    with pytest.raises(UserError, match=r"judge\.read"):
        judge_items(workspace(judge_of(provider.base, read="logprobs")), "faithfulness", [ITEM])


def test_the_threshold_comes_from_the_settings_or_the_accepted_calibration(serve, judge_of, workspace):
    from ragbench_dagster.evaluation.cache_key import prefix
    from ragbench_dagster.store import write_json

    provider = serve(lambda seen: logprob_act(YES=0.6, NO=0.2))
    judge = judge_of(provider.base, read="logprobs")
    ws = workspace(judge)
    assert judge_items(ws, "faithfulness", [ITEM])[0].passing is True
    identity = {"hash": prefix(build_evaluator("faithfulness", judge, ws), judge)}
    write_json(
        ws.calibration / "accepted.json", {"metrics": {"faithfulness": {"identity": identity, "threshold": 1.8}}}
    )
    assert judge_items(ws, "faithfulness", [ITEM])[0].passing is False
    by_hand = workspace(judge_of(provider.base, read="logprobs", logprob_threshold=1.7))
    assert judge_items(by_hand, "faithfulness", [ITEM])[0].passing is True
    assert len(provider.seen) == 1  # a threshold is no part of the key


def test_semantic_similarity_needs_no_provider(workspace):
    pytest.importorskip("onnxruntime", reason="needs the semantic extra")
    ws = workspace(Judge.model_validate({}))
    same = Item("a", "q", "The fee is ten euro.", (), "It costs ten euro.")
    other = Item("b", "q", "Cats sleep a lot.", (), "It costs ten euro.")
    several = Item("c", "q", "Landover", (), "the Washington area/Landover")
    found = judge_items(ws, "semantic_similarity", [same, other, several])
    assert found[0].score is not None
    assert found[1].score is not None
    assert found[0].score > 0.6 > 0.3 > found[1].score
    assert found[2].passing is True


def test_any_base_evaluator_joins_by_import_path(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("On the subject.\n[RESULT] 2"))
    path = "llama_index.core.evaluation:AnswerRelevancyEvaluator"
    ws = workspace(judge_of(provider.base, evaluators={"about": path}))
    verdict = judge_items(ws, "about", [ITEM])[0]
    assert (verdict.status, verdict.score, verdict.passing, verdict.attempts) == ("scored", 1.0, None, 1)
    assert verdict.prompt_tokens == 100
    provider.plan = lambda seen: Act("nothing")
    other = Item("b", "q2", "r2")
    assert judge_items(ws, "about", [other])[0].status == "unparsable"


@pytest.mark.parametrize(
    ("path", "words"),
    [("no.such:thing", "no module 'no'; put it into"), ("json:dumps", "missing a required argument: 'obj'"), ("builtins:dict", "not a LlamaIndex"),
     ("llama_index.core.evaluation:FaithfulnessEvaluator", "asks for an LLM"), ("json", "module:factory")],
)  # fmt: skip
def test_an_import_path_that_gives_no_evaluator_is_one_line(workspace, path: str, words: str):
    with pytest.raises(UserError, match=words):
        build_evaluator("x", Judge.model_validate({"evaluators": {"x": path}}), None)


def test_an_engine_may_share_the_judges_llm_and_its_limits(serve, judge_of, workspace):
    from ragbench_dagster.evaluation.judge import governed_llm

    provider = serve(lambda seen: Act("an answer") if seen.attempt > 1 else Act(status=500, raw={"error": "x"}))
    ws = workspace(judge_of(provider.base))
    llm = governed_llm(ws)

    async def engine() -> str:
        said = await llm.acomplete("a question")
        await llm.aclose()
        return str(said)

    assert asyncio.run(engine()) == "an answer"
    assert len(provider.seen) == 2
    assert governed_llm(ws) is llm
    with pytest.raises(UserError, match="embedded"):
        governed_llm(workspace(Judge.model_validate({})))
