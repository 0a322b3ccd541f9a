"""Values of secret variables are taken out of text from outside, however they are spelled there."""

from __future__ import annotations

import base64
import html
import json
import logging
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster import masking
from ragbench_dagster.masking import MASK, mask

KEY = 'Qx7+rT/9pL"z&W2v=kM 4nB'
PLAIN = "zq81-kfw0-77ab-canary"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    masking.watch(["RAGBENCH_TEST_KEY", "RAGBENCH_TEST_URL"])
    monkeypatch.setenv("RAGBENCH_TEST_KEY", KEY)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SPELLINGS = {
    "as it is": KEY,
    "in a sentence": f"Incorrect API key provided: {KEY}.",
    "quoted for a URL": quote(KEY, safe=""),
    "quoted for a form": quote_plus(KEY),
    "in JSON": json.dumps({"key": KEY}),
    "in HTML": f"<p>{html.escape(KEY)}</p>",
    "a repr": repr({"key": KEY}),
    "base64": b64(KEY),
    "base64 without padding": b64(KEY).rstrip("="),
    "base64 for URLs": base64.urlsafe_b64encode(KEY.encode()).decode(),
    "in the base64 of a longer text": b64(f"user:{KEY}@host"),
    "in the base64 of a longer text, shifted": b64(f"users:{KEY}@host"),
    "in the base64 of a longer text, shifted twice": b64(f"theuser:{KEY}@host"),
    "hex": KEY.encode().hex(),
    "HEX": KEY.encode().hex().upper(),
    "another case": KEY.upper(),
    "split by lines": "\n".join([KEY[:5], KEY[5:9], KEY[9:]]),
    "letter by letter": " ".join(KEY),
    "concatenated": f"'{KEY[:7]}' + '{KEY[7:]}'",
    "with zero-width characters": "\u200b".join(KEY),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_value_is_masked_in_every_spelling(name: str) -> None:
    clean = mask(f"before {SPELLINGS[name]} after")
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert MASK in clean
    squeezed = "".join(c for c in clean.replace(MASK, "") if c.isalnum()).casefold()
    for whole in (KEY, b64(KEY), KEY.encode().hex(), quote(KEY)):
        assert "".join(c for c in whole if c.isalnum()).casefold()[:20] not in squeezed


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, len(PLAIN) - 12), st.integers(12, len(PLAIN)))
def test_a_long_piece_of_a_key_is_masked_wherever_it_stands(before: str, after: str, start: int, length: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGBENCH_TEST_KEY", PLAIN)
        piece = PLAIN[start : start + length]
        if len(piece) >= 12:
            assert piece not in mask(before + piece + after)


def test_what_gives_access_in_a_url_is_masked_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "RAGBENCH_TEST_URL",
        "postgresql://me:p%40ss-w0rd-9@db.example/rag?sslmode=require\nslack://T0KENaaaa1/B0bbbbbb2/ccCC33dd",
    )
    clean = mask("FATAL: password p@ss-w0rd-9 (p%40ss-w0rd-9) on db.example, rag, sslmode=require; T0KENaaaa1 ccCC33dd")
    assert clean == f"FATAL: password {MASK} ({MASK}) on db.example, rag, sslmode=require; {MASK} {MASK}"


@pytest.mark.parametrize("value", ["none", "EMPTY", "ollama", "x", "abc", "42", "sk-no-key-required", "   ", "local"])
def test_what_is_no_secret_leaves_texts_alone(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGBENCH_TEST_KEY", value)
    text = "none of the 42 EMPTY boxes: x abc ollama local sk-no-key-required"
    assert mask(text) == text


def test_a_short_value_is_masked_as_a_word_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGBENCH_TEST_KEY", "ab12")
    assert mask("ab12, xab12, ab123") == f"{MASK}, xab12, ab123"


def test_other_text_stays_as_it_is() -> None:
    text = "The answer is 42. See https://x.example/docs?page=2 and Qx7 for more."
    assert mask(text) is text


def test_what_a_library_logs_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    masking.guard_logs()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("somebody").debug("GET %s", f"https://x.example/?key={quote(KEY, safe='')}")
    assert quote(KEY, safe="") not in caplog.text
    assert MASK in caplog.text
