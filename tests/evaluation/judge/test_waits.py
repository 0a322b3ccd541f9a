"""How long a provider asks to wait, in the spellings of many."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.evaluation.judge.retry_after import seconds, wait_of
from ragbench_dagster.traffic.scrubbing.redact import redact

NOW = 1_790_000_000.0  # Mon, 21 Sep 2026 14:13:20 GMT
DATE = "Mon, 21 Sep 2026 14:13:20 GMT"


def said(text: str) -> dict[str, Any]:
    return {"error": {"message": text}}


WAITS: list[tuple[dict[str, str], Any, float | None]] = [
    ({"Retry-After": "3"}, None, 3), ({"retry-after": "0"}, None, 0), ({"RETRY-AFTER": "2.5"}, None, 2.5),
    ({"retry-after-ms": "1500", "Retry-After": "9"}, None, 1.5), ({"Retry-After": "2.5s"}, None, 2.5),
    ({"Retry-After": "Mon, 21 Sep 2026 14:13:30 GMT"}, None, 10),
    ({"Retry-After": "Wed, 21 Oct 2026 07:28:10 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, None, 10),
    ({"Retry-After": "Mon, 21 Sep 2020 14:13:30 GMT"}, None, 0),
    ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "6m0s",
      "x-ratelimit-remaining-tokens": "100"}, None, 1),
    ({"x-ratelimit-reset-requests": "120ms", "x-ratelimit-reset-tokens": "6m0s"}, None, 360),
    ({"X-RateLimit-Reset": str(int((NOW + 7) * 1000))}, None, 7), ({"X-RateLimit-Reset": str(int(NOW + 7))}, None, 7),
    ({"X-RateLimit-Reset": "7"}, None, 7), ({"anthropic-ratelimit-requests-reset": "2026-09-21T14:13:25Z"}, None, 5),
    ({}, {"error": {"metadata": {"headers": {"X-RateLimit-Reset": str(int((NOW + 4) * 1000))}}}}, 4),
    ({}, {"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]}}, 34.07),
    ({}, [{"error": {"details": [{"retryDelay": "34s"}]}}], 34), ({}, {"retry_after_ms": 1200}, 1.2),
    ({}, {"error": {"retry_after": "1.5"}}, 1.5), ({}, {"error": "Please wait 3 seconds"}, 3),
    ({}, said("Limit 30000, Used 29000, Requested 2000. Please try again in 2s. Visit the site"), 2),
    ({}, said("Please try again in 6m0s."), 360), ({}, said("Please try again in 250ms."), 0.25),
    ({}, said("Please retry after 20 seconds."), 20), ({}, said("Try again in 1 hour and 3 minutes"), 3780),
    ({}, said("retry after: 12"), 12), ({}, said("try again in 7m12s. Limit 200 / day"), 432),
    ({}, said("Please try again in 1m30.5s"), 90.5), ({}, said("Quota resets at 2026-09-21T14:14:00Z"), 40),
    ({}, said("The limit is 60 requests per minute"), None), ({"retry-after": "soon"}, None, None),
    ({"retry-after": "nan"}, None, None), ({"retry-after": "-5"}, None, 0), ({"retry-after": ""}, "", None),
    ({"retry-after-ms": "x", "retry-after": "4"}, None, 4), ({}, None, None), ({}, "slow down, retry in 5 s", 5),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "body", "wait"), WAITS)
def test_a_wait_is_understood(headers: dict[str, str], body: Any, wait: float | None):
    found = wait_of(headers, body, NOW)
    assert found == (None if wait is None else pytest.approx(wait, abs=0.01))


@given(st.text() | st.floats() | st.integers() | st.none() | st.booleans())
def test_nothing_makes_a_wait_negative_or_raise(value: Any):
    found = seconds(value, NOW)
    assert found is None or found >= 0
    found = wait_of({"retry-after": str(value)}, said(str(value)), NOW)
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("message", "prompt", "gone"),
    [("Incorrect API key: sk-abcd1234efgh5678", "", "sk-abcd"), ("key sk-ab***************yz", "", "sk-ab"),
     ("token eyJhbGciOi.eyJzdWIi.c2lnbmF0", "", "eyJ"), ("see https://example.com/?key=abc", "", "abc"),
     ("bad: the customer's own words are here", "The customer's own words are here, said he", "own words"),
     ("a\nb\x1b[31m", "", "\x1b")],
)  # fmt: skip
def test_a_providers_message_is_made_fit_to_be_shown(message: str, prompt: str, gone: str):
    line = redact(message, prompt)
    assert gone not in line
    assert "\n" not in line
    assert len(redact("x " * 1000)) <= 160
