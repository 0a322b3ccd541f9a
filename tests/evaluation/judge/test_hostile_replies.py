"""What a provider may send: a good verdict in a strange reply is kept, everything else is of its row alone."""

import gzip
import json
import tracemalloc

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge_runner import judge_items
from ragbench_dagster.evaluation.ledger import Ledger, location
from ragbench_dagster.records import Item
from tests.support.fake_provider import Act


def items(n):
    return [Item(f"e{i}", f"question {i}?", f"answer {i}", (f"passage {i}",), f"reference {i}") for i in range(n)]


def number(seen):
    """Which item a request is about."""
    return int(seen.prompt.rsplit("answer ", 1)[1].split("\n")[0])


def reply(usage, **more):
    """A good reply whose `usage` and further fields are raw JSON."""
    fields = {"choices": json.dumps([{"message": {"content": "YES"}, "finish_reason": "stop"}]), "usage": usage, **more}
    return Act(raw=("{" + ", ".join(f'"{k}": {v}' for k, v in fields.items()) + "}").encode())


USAGE = {
    "NaN": '{"prompt_tokens": NaN, "completion_tokens": NaN}',
    "infinite": '{"prompt_tokens": Infinity, "completion_tokens": 5}',
    "1e999": '{"prompt_tokens": 1e999, "completion_tokens": 1}',
    "400 digits": '{"prompt_tokens": ' + "9" * 400 + ', "completion_tokens": 1}',
    "negative": '{"prompt_tokens": -5, "completion_tokens": 1}',
    "true": '{"prompt_tokens": true, "completion_tokens": true}',
    "text": '{"prompt_tokens": "ten", "completion_tokens": null}',
    "a list": "[1, 2]",
    "null": "null",
    "nested": '{"prompt_tokens": ' + "[" * 500 + "]" * 500 + ', "completion_tokens": 1}',
}


@pytest.mark.parametrize("name", USAGE)
def test_a_strange_usage_never_costs_the_verdict(name, serve, judge_of, workspace):
    """It became `error`, was paid, and was asked again every night."""
    provider = serve(lambda seen: reply(USAGE[name]))
    ws = workspace(judge_of(provider.base))
    (verdict,) = judge_items(ws, "faithfulness", items(1))
    assert (verdict.status, verdict.passing) == ("scored", True)
    assert verdict.details["usage_estimated"]
    assert 0 < verdict.cost_usd < 1
    judge_items(ws, "faithfulness", items(1))
    assert len(provider.seen) == 1


STRANGE = {
    "a model that is an object": {"model": '{"a": 1}'},
    "half an emoji for a fingerprint": {"system_fingerprint": '"\\ud83d"', "model": '"m\\u0000"'},
    "a model of 400 digits": {"model": "9" * 400},
    "logprobs that are NaN": {"extra": "NaN"},
    "a created time beyond 64 bits": {"created": "9" * 60},
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_fields_beside_a_verdict_do_not_matter(name, serve, judge_of, workspace):
    provider = serve(lambda seen: reply('{"prompt_tokens": 1, "completion_tokens": 1}', **STRANGE[name]))
    ws = workspace(judge_of(provider.base))
    (verdict,) = judge_items(ws, "faithfulness", items(1))
    assert verdict.status == "scored"
    with Ledger(location(ws)) as book:
        assert book.count() == 1


BOMB = gzip.compress(b'{"choices": "' + b" " * (300 << 20) + b'"}')
DEEP = b"[" * 200_000
BAD = {
    "300 MiB in 300 KB": Act(raw=BOMB, headers={"Content-Encoding": "gzip"}),
    "9 MiB": Act(raw=b'{"choices": "' + b" " * (9 << 20) + b'"}'),
    "nested": Act(raw=DEEP),
    "nested error": Act(status=400, raw=b'{"error": ' + DEEP + b"}"),
    "a code of strange digits": Act(raw={"error": {"code": "\u00b2", "message": "x"}}),
    "a code of 5,000 digits": Act(raw={"error": {"code": "9" * 5000}}),
    "packed in what was not asked for": Act(raw=b"x", headers={"Content-Encoding": "br"}),
    "damaged packing": Act(raw=b"x" * 50, headers={"Content-Encoding": "gzip"}),
    "a wait of 5,000 digits": Act(status=429, raw={}, headers={"Retry-After": "9" * 5000}),
    "a wait until the year 1": Act(status=429, raw={}, headers={"Retry-After": "0001-01-01T00:00:00+14:00"}),
    "a wait that is NaN": Act(status=429, raw={}, headers={"Retry-After": "nan"}),
    "a reply of a million lines": Act("NO\n" * 100_000),
    "a content of 3 MiB": Act("maybe " * 500_000),
    "a content of numbers": Act(raw={"choices": [{"message": {"content": 5}}]}),
    "choices of 10^5": Act(raw={"choices": [[]] * 100_000}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_hostile_reply_is_of_its_row_alone(name, serve, judge_of, workspace):
    provider = serve(lambda seen: BAD[name] if "answer 1\n" in f"{seen.prompt}\n" else Act("YES"))
    ws = workspace(judge_of(provider.base, max_attempts=2, deadline_s=5))
    tracemalloc.start()
    try:
        verdicts = judge_items(ws, "faithfulness", items(3))
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert [v.status for v in verdicts[::2]] == ["scored", "scored"]
    assert verdicts[1].status in ("error", "unparsable")


def test_one_rows_wait_is_not_everybodys(serve, judge_of, workspace):
    """A single `Retry-After: 86400` on one row ended the whole run with 0 of 6 rows judged."""

    def plan(seen):
        return Act(status=429, raw={}, headers={"Retry-After": "86400"}) if number(seen) == 0 else Act("YES")

    provider = serve(plan)
    ws = workspace(judge_of(provider.base, concurrency={"min": 1, "start": 1, "max": 1}))
    for metric in ("faithfulness", "relevancy"):
        verdicts = judge_items(ws, metric, items(6))
        assert [v.status for v in verdicts] == ["error"] + ["scored"] * 5
        assert "deadline_s" in verdicts[0].feedback
    assert len(provider.seen) == 12


def test_where_every_row_is_told_to_wait_the_run_ends_after_five(serve, judge_of, workspace):
    provider = serve(lambda seen: Act(status=429, raw={}, headers={"Retry-After": "86400"}))
    ws = workspace(judge_of(provider.base, concurrency={"min": 1, "start": 1, "max": 1}))
    with pytest.raises(UserError, match=r"asks to wait 86400 s, longer than judge.deadline_s"):
        judge_items(ws, "faithfulness", items(30))
    assert len(provider.seen) == 5
