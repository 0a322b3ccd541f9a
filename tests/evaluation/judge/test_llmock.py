"""Somebody else's chaos server, which also judges how a client reacts to what it does to it."""

import json
import random
import urllib.request

import pytest

from ragbench_dagster.evaluation.judge_runner import judge_items
from ragbench_dagster.records import Item

llmock = pytest.importorskip("llmock", reason="needs the test extra")


def items(n: int) -> list[Item]:
    return [Item(f"e{i}", f"question {i}?", f"answer {i}", (f"passage {i}",)) for i in range(n)]


def test_an_independent_judge_finds_nothing_wrong_with_our_retries(judge_of, workspace):
    from llmock.chaos import ChaosSettings
    from llmock.testing import LLMockServer

    random.seed(11)  # llmock draws its faults from the shared generator
    chaos = ChaosSettings(error_rates={429: 0.08, 500: 0.05, 503: 0.05})
    with LLMockServer(chaos=chaos) as server:
        judge = judge_of(server.base_url("openai"), deadline_s=200, max_attempts=9)
        found = judge_items(workspace(judge), "faithfulness", items(40))
        with urllib.request.urlopen(f"{server.url}/_llmock/verdict") as answer:
            verdict = json.load(answer)
    assert {v.status for v in found} == {"unparsable"}  # its replies hold no verdict: each was asked again once
    assert all(v.details["re_asked"] for v in found)
    assert verdict["findings"] == []
    assert verdict["attempts"] == sum(v.attempts for v in found) > 80
