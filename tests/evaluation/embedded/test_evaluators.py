"""The embedded evaluators as LlamaIndex knows them; hostile text; determinism."""

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner
from llama_index.core.schema import NodeWithScore, TextNode

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.embedded import VERSION, WEAK_NOTE, build, judged_here
from ragbench_dagster.records import Item

CONTEXT = "The old secret keeps working for 72 hours."


@pytest.mark.parametrize("metric", judged_here())
def test_each_is_a_base_evaluator_with_a_name_a_version_and_a_template_hash(metric: str) -> None:
    evaluator = build(metric)
    assert isinstance(evaluator, BaseEvaluator)
    assert (evaluator.name, evaluator.version) == (metric, VERSION)
    assert evaluator.template_hash
    assert evaluator.get_prompts() == {}


def test_other_metrics_are_refused_in_one_line_that_says_what_to_do() -> None:
    with pytest.raises(UserError, match=r"not guideline; set judge\.provider"):
        build("guideline")


def test_it_is_called_weak() -> None:
    assert WEAK_NOTE.startswith("weak")


def test_they_run_inside_llama_indexs_own_batch_runner() -> None:
    runner = BatchEvalRunner({metric: build(metric) for metric in judged_here()}, workers=4)
    nodes = [NodeWithScore(node=TextNode(text=CONTEXT))]
    found = asyncio.run(
        runner.aevaluate_responses(
            queries=["how long does the old secret work?", "how long does the old secret work?"],
            responses=[Response(CONTEXT, nodes), Response("For 99 hours.", nodes)],
            reference=["72 hours", "72 hours"],
        )
    )
    for metric in judged_here():
        good, bad = found[metric]
        assert good.passing is True
        assert (good.score or 0) > (bad.score or 0)
        if metric != "relevancy":
            assert bad.passing is False
            assert bad.feedback


def test_not_applicable_is_an_invalid_result_with_its_reason() -> None:
    result = build("faithfulness").evaluate(query="q", response="a", contexts=[])
    assert (result.invalid_result, result.invalid_reason, result.score) == (True, "no contexts", None)


HOSTILE = st.text(st.characters(codec=None, categories=("L", "N", "P", "S", "Z", "C", "M")), max_size=80)


@settings(max_examples=300, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE, st.one_of(st.none(), HOSTILE))
def test_no_text_of_any_kind_raises_or_leaves_the_scale(
    query: str, answer: str, context: str, reference: str | None
) -> None:
    item = Item("e", query, answer, (context, answer), reference)
    for metric in judged_here():
        verdict = build(metric).grade_sync(item)
        assert verdict == build(metric).grade_sync(item)
        assert verdict.status in ("scored", "not_applicable")
        if verdict.status == "scored":
            low, high = (1.0, 5.0) if metric == "correctness" else (0.0, 1.0)
            assert low <= (verdict.score or 0.0) <= high
            assert verdict.feedback


def test_the_feedback_never_quotes_the_texts() -> None:
    item = Item("e", "zebra question", "zebra answer 99.", ("zebra context 72.",), "zebra reference 5")
    for metric in judged_here():
        assert "zebra" not in build(metric).grade_sync(item).feedback


@pytest.mark.parametrize("metric", judged_here())
def test_a_huge_answer_costs_seconds_at_most(metric: str) -> None:
    """5,000 claims against 5,000 sentences were minutes before claims and clauses were bounded."""
    answer = " ".join(f"Alice{i} likes Bob{i} {i}." for i in range(4000))
    context = " ".join(f"Bob{i % 7} likes Alice{i} {i} days." for i in range(4000))
    begin = time.process_time()
    build(metric).grade_sync(Item("e", "word " * 20_000, answer, (context,), context))
    assert time.process_time() - begin < 10
