"""What providers and gateways really answer, through real HTTP, and what becomes of the item and of the run."""

import ssl
import subprocess
import time
from typing import Any

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge.circuit_breaker import Breaker
from ragbench_dagster.evaluation.judge.provider_errors import Trouble
from ragbench_dagster.evaluation.judge_runner import judge_answers, judge_items
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.records import Item
from tests.support.fake_provider import Act
from tests.support.judge_items import Release, responses


def items(n: int) -> list[Item]:
    return [Item(f"e{i}", f"question {i}?", f"answer {i}", (f"passage {i}",), f"reference {i}") for i in range(n)]


def number(seen: Any) -> int:
    """Which item a request is about."""
    return int(seen.prompt.rsplit("answer ", 1)[1].split("\n")[0])


def error(http: int, **fields: Any) -> Act:
    return Act(status=http, raw={"error": fields})


def test_the_request_holds_what_the_settings_say_and_nothing_else(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES"))
    judge = judge_of(
        provider.base, temperature=None, seed=7, max_tokens=None, max_completion_tokens=99, extra={"top_p": 1}
    )
    verdict = judge_items(workspace(judge), "faithfulness", items(1))[0]
    (seen,) = provider.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == "Bearer a-key"
    assert set(seen.body) == {"model", "seed", "max_completion_tokens", "top_p", "messages"}
    assert seen.body["max_completion_tokens"] == 99
    assert (verdict.status, verdict.passing, verdict.attempts) == ("scored", True, 1)
    assert (verdict.served_model, verdict.fingerprint) == ("fake-2026-01-01", "fp")
    assert (verdict.prompt_tokens, verdict.completion_tokens) == (100, 5)
    assert verdict.cost_usd == pytest.approx(110e-6)
    assert verdict.latency_ms > 0


RETRIED = {
    "429 with seconds": Act(status=429, headers={"Retry-After": "1"}, raw={"error": {"message": "slow down"}}),
    "429 with milliseconds": Act(status=429, headers={"retry-after-ms": "1000"}, raw={}),
    "429 with prose": error(429, message="Rate limit reached. Please try again in 1s.", code="rate_limit_exceeded"),
    "429 with a duration header": Act(status=429, headers={"x-ratelimit-reset-requests": "0m1s"}, raw={}),
    "429 with RetryInfo": error(429, message="x", details=[{"retryDelay": "1.0s"}], status="RESOURCE_EXHAUSTED"),
    "429 in a 200": Act(raw={"error": {"message": "Too many calls this minute. Retry after 1 second", "code": 429}}),
    "503 with Retry-After": Act(status=503, headers={"Retry-After": "1"}, raw="busy"),
}


@pytest.mark.parametrize("first", RETRIED.values(), ids=RETRIED)
def test_a_wait_is_honoured_and_the_item_ends_scored(serve, judge_of, workspace, first: Act):
    provider = serve(lambda seen: first if seen.attempt == 1 else Act("YES"))
    verdict = judge_items(workspace(judge_of(provider.base)), "faithfulness", items(1))[0]
    assert verdict.status == "scored"
    assert verdict.attempts == 2
    gap = provider.seen[1].at - provider.seen[0].at
    assert 1.0 <= gap < 1.9
    assert verdict.wait_ms >= 1000


def test_a_date_in_milliseconds_in_the_body_is_honoured(serve, judge_of, workspace):
    def plan(seen: Any) -> Act:
        if seen.attempt > 1:
            return Act("YES")
        reset = str(int((time.time() + 1.2) * 1000))
        return Act(
            raw={"error": {"message": "limit", "code": 429, "metadata": {"headers": {"X-RateLimit-Reset": reset}}}}
        )

    provider = serve(plan)
    assert judge_items(workspace(judge_of(provider.base)), "faithfulness", items(1))[0].status == "scored"
    assert 1.0 <= provider.seen[1].at - provider.seen[0].at < 2.2


HEALING = {
    "500": error(500, message="boom"),
    "choices null": Act(raw={"id": None, "choices": None}),
    "no choices": Act(raw={"choices": []}),
    "error beside choices": Act(raw={"choices": [{"error": {"code": 502, "message": "upstream"}, "message": {}}]}),
    "empty 200": Act(raw=b""),
    "half a JSON": Act(raw=b'{"choices": [{"mess'),
    "an error in words": Act(raw={"error": "rate limit exceeded, retry in 0.1 s"}),
    "cut before": Act(cut="before"),
    "cut half way": Act(cut="half"),
    "hangs": Act(hang=True),
    "529": error(529, type="overloaded_error"),
    "408": error(408, message="timeout"),
}


@pytest.mark.parametrize("first", HEALING.values(), ids=HEALING)
def test_a_passing_fault_is_tried_again(serve, judge_of, workspace, first: Act):
    provider = serve(lambda seen: first if seen.attempt == 1 else Act("NO"))
    judge = judge_of(provider.base, timeout_s=0.5)
    verdict = judge_items(workspace(judge), "faithfulness", items(1))[0]
    assert (verdict.status, verdict.passing, verdict.attempts) == ("scored", False, 2)


ITEM_FAULTS = {
    "filter": ("refused", error(400, code="content_filter", message="filtered", param="prompt")),
    "azure filter": ("refused", error(400, message="x", innererror={"code": "ResponsibleAIPolicyViolation"})),
    "moderation 403": ("refused", error(403, message="x", metadata={"reasons": ["violence"], "flagged_input": "..."})),
    "blocked without a message": ("refused", Act(raw={"choices": [{"index": 0, "finish_reason": "SAFETY"}]})),
    "too long": ("truncated", error(400, code="context_length_exceeded", message="maximum context length is 8192")),
    "too long for llama.cpp": ("truncated", error(400, type="exceed_context_size_error", message="n_ctx")),
    "413": ("truncated", Act(status=413, raw="payload too large")),
    "400 of the item": ("error", error(400, message="could not decode the third message")),
}


@pytest.mark.parametrize(("status", "act"), ITEM_FAULTS.values(), ids=ITEM_FAULTS)
def test_a_fault_of_the_item_is_typed_and_costs_one_request(serve, judge_of, workspace, status: str, act: Act):
    provider = serve(lambda seen: act if number(seen) == 1 else Act("YES"))
    found = judge_items(workspace(judge_of(provider.base)), "faithfulness", items(4))
    assert [v.status for v in found] == ["scored", status, "scored", "scored"]
    assert found[1].score is None
    assert len(provider.seen) == 4


FATAL = {
    "wrong key": (error(401, code="invalid_api_key", message="Wrong API key: sk-abcd1234efgh"), "RAGBENCH_TEST_KEY"),
    "forbidden": (error(403, message="this project may not"), "key"),
    "quota": (error(429, code="insufficient_quota", message="You exceeded your current quota"), "quota"),
    "billing": (error(402, message="payment"), "quota"),
    "unknown model": (error(404, code="model_not_found", message="The model `x` does not exist"), "judge.model"),
    "unknown model as 400": (error(400, message="fake-2026-01-01 is not a valid model ID"), "judge.model"),
    "wrong path": (Act(status=404, raw="<html>not found</html>"), "judge.api_base"),
    "a web page": (Act(raw=b"<html>log in</html>"), "judge.api_base"),
    "redirected": (Act(status=302, headers={"Location": "/login"}, raw=""), "judge.api_base"),
    "parameter": (error(400, param="max_tokens", code="unsupported_parameter"), "judge.max_tokens"),
    "temperature": (error(400, message="'temperature' does not support 0 with this model"), "judge.temperature"),
    "extra": (error(422, message="x", param="top_k"), "judge.extra.top_k"),
}  # fmt: skip


@pytest.mark.parametrize(("act", "words"), FATAL.values(), ids=FATAL)
def test_a_fault_of_the_settings_ends_the_run_with_one_line(serve, judge_of, workspace, act: Act, words: str):
    provider = serve(lambda seen: act)
    begin = time.monotonic()
    with pytest.raises(UserError) as raised:
        judge_items(workspace(judge_of(provider.base)), "faithfulness", items(40))
    assert time.monotonic() - begin < 5
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "sk-abcd1234efgh" not in str(raised.value)
    assert len(provider.seen) <= 16


PAGE = b"\n<!DOCTYPE html><html><body>Sign in to go on</body></html>"
PAGES = {
    "a page with 200": Act(raw=PAGE),
    "a page with 200 that says it is JSON": Act(raw=PAGE, headers={"Content-Type": "application/json"}),
    "a firewall's 403": Act(status=403, raw=PAGE),
    "a page with 404": Act(status=404, raw=PAGE),
    "maintenance with 503": Act(status=503, raw=PAGE),
    "an empty body": Act(raw=b""),
}


@pytest.mark.parametrize("act", PAGES.values(), ids=PAGES)
def test_some_pages_among_good_replies_are_asked_again_whichever_comes_first(serve, judge_of, workspace, act: Act):
    """A tenth of all first answers, the very first among them, ended the night with a wrong address."""
    provider = serve(lambda seen: act if seen.attempt == 1 and number(seen) % 10 == 0 else Act("YES"))
    found = judge_items(workspace(judge_of(provider.base)), "faithfulness", items(40))
    assert [v.status for v in found] == ["scored"] * 40
    assert {v.attempts for v in found[::10]} == {2}


def test_a_page_for_one_row_alone_is_that_rows_error(serve, judge_of, workspace):
    provider = serve(lambda seen: Act(raw=PAGE) if number(seen) == 3 else Act("YES"))
    found = judge_items(workspace(judge_of(provider.base, max_attempts=3)), "faithfulness", items(8))
    assert [v.status for v in found] == ["scored"] * 3 + ["error"] + ["scored"] * 4
    assert "web page" in found[3].feedback


def test_pages_from_the_middle_of_the_night_on_are_a_provider_that_is_down(judge_of):
    now = [0.0]
    watch = Breaker(judge_of("http://localhost/v1"), clock=lambda: now[0])
    watch.sent()
    watch.success()
    page = Trouble("page", "200 with a web page")
    for now[0] in range(2, 42, 2):  # nineteen more without a success, over 38 seconds
        if now[0] < 40:
            watch.check(page)
    with pytest.raises(UserError, match=r"provider is down: 20 attempts in a row failed, the last with .* web page"):
        watch.check(page)


@pytest.mark.parametrize(
    ("base", "words"),
    [("http://no-such-host.invalid/v1", "host name"), ("http://127.0.0.1:9/v1", "nobody answers"),
     ("ftp://x/v1", "api_base")],
)  # fmt: skip
def test_an_address_where_nobody_is_ends_the_run_at_once(judge_of, workspace, base: str, words: str):
    begin = time.monotonic()
    with pytest.raises(UserError, match=words):
        judge_items(workspace(judge_of(base)), "faithfulness", items(40))
    assert time.monotonic() - begin < 5


def test_a_certificate_that_nobody_vouches_for_names_tls(serve, judge_of, workspace, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "2"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    provider = serve(lambda seen: Act(), ssl=context)
    begin = time.monotonic()
    with pytest.raises(UserError, match="TLS"):
        judge_items(workspace(judge_of(provider.base)), "faithfulness", items(40))
    assert time.monotonic() - begin < 5
    assert provider.seen == []


def test_what_was_finished_before_the_key_was_refused_is_kept(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES") if len(provider.seen) <= 20 else error(401, message="revoked"))
    ws = workspace(judge_of(provider.base, concurrency={"min": 1, "start": 2, "max": 2}))
    with pytest.raises(UserError, match="key"):
        judge_items(ws, "faithfulness", items(40))
    with Ledger.open(ws) as book:
        assert book.count() == 20
    provider.plan = lambda seen: Act("YES")
    assert len(judge_items(ws, "faithfulness", items(40))) == 40
    assert len(provider.seen) <= 20 + 2 + 20


def test_an_item_that_never_recovers_ends_as_error_and_is_asked_again_next_time(serve, judge_of, workspace):
    provider = serve(lambda seen: error(502, message="Upstream failed") if number(seen) == 0 else Act("YES"))
    ws = workspace(judge_of(provider.base, max_attempts=3))
    found = judge_items(ws, "faithfulness", items(3))
    assert [v.status for v in found] == ["error", "scored", "scored"]
    assert "Upstream failed" in found[0].feedback
    assert len(provider.seen) == 5
    provider.plan = lambda seen: Act("NO")
    assert judge_items(ws, "faithfulness", items(3))[0].passing is False
    assert len(provider.seen) == 6


def test_a_provider_that_is_down_ends_the_run(serve, judge_of, workspace, monkeypatch):
    from ragbench_dagster.evaluation.judge import circuit_breaker, retry

    monkeypatch.setattr(circuit_breaker, "_PATIENCE_S", 0.9)
    monkeypatch.setattr(retry, "_BACKOFF_S", 0.05)
    provider = serve(lambda seen: error(503, message="down"))
    with pytest.raises(UserError, match="down"):
        judge_items(workspace(judge_of(provider.base)), "faithfulness", items(500))
    assert len(provider.seen) < 60


def test_a_wait_beyond_the_deadline_is_not_slept(serve, judge_of, workspace):
    provider = serve(lambda seen: Act(status=429, headers={"Retry-After": "3600"}, raw={"error": {"message": "daily"}}))
    begin = time.monotonic()
    with pytest.raises(UserError, match="3600 s"):
        judge_items(workspace(judge_of(provider.base)), "faithfulness", items(40))
    assert time.monotonic() - begin < 5
    assert len(provider.seen) <= 16


def test_a_message_that_quotes_the_answer_is_not_kept(serve, judge_of, workspace):
    secret = "the customer said something private and long"
    provider = serve(lambda seen: error(400, message=f"bad message: {secret}") if secret in seen.prompt else Act("YES"))
    found = judge_items(workspace(judge_of(provider.base)), "faithfulness", [Item("a", "q", secret, ("p",)), *items(1)])
    assert found[0].status == "error"
    assert "private" not in found[0].feedback


def test_without_a_key_the_ledger_still_serves_and_the_rest_is_error(serve, judge_of, workspace, monkeypatch):
    provider = serve(lambda seen: Act("YES"))
    ws = workspace(judge_of(provider.base), metrics=["faithfulness"])
    judge_answers(ws, "2026-01-02", "s", responses(["one"]), Release(["one"]))
    monkeypatch.delenv("RAGBENCH_TEST_KEY")
    run = judge_answers(ws, "2026-01-03", "s", responses(["one", "two"]), Release(["one", "two"]))
    assert run.statuses == {"error": 1, "scored": 1}
    assert "RAGBENCH_TEST_KEY" in run.unavailable
    assert run.calls == 0
    assert len(provider.seen) == 1
    judge = judge_of(provider.base, api_key_env="")
    assert judge_items(workspace(judge), "faithfulness", items(1))[0].status == "scored"
