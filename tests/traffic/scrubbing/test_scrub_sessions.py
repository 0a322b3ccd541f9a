"""Keys of sessions: behind the names that frameworks give them, or with the prefix that says so; words stay."""

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber

HEX = "9f3ab17c02de84561b7fa90c3de2475a"
GONE = [
    f"session sess_{HEX} expired", f"session_id={HEX}", f"sessionid {HEX}", f"Cookie: JSESSIONID={HEX.upper()}",
    "PHPSESSID=q1w2e3r4t5y6u7i8o9p0a1s2d3", f"sid: s%3A{HEX}.Zk3abcd", f"here is my sess_{HEX}", f"sess-{HEX}",
    f"uid tok_{HEX}", f"connect.sid=s%3A{HEX}", f"my session id is {HEX}", f"ASP.NET_SessionId={HEX[:24]}",
    f"XSRF-TOKEN={HEX}", f"csrftoken={HEX}", f'"sessionId": "{HEX}"', f"sessid:{HEX}", f"rt_{HEX} is refused",
    f"at_{HEX[:20]}", f"session-key={HEX}", f"laravel session={HEX}", f"auth_{HEX}",
]  # fmt: skip
STAY = [
    "how long does a session last on 2026-11-20?", "session management-overview-2026-guide", "the sid of the room",
    "token at-least-once delivery v2.10.3", "csrf: enabled", "what is the session id of a websocket in v1.2.3-beta",
    "session sess_overview_page", "tok_per_second is 1200", "auth_provider_configuration", "sid: 12345678",
]  # fmt: skip


@pytest.fixture(scope="module")
def scrub_text():
    scrubber = build_scrubber(Scrub(ner="off"))
    return lambda text: scrubber.texts([text])[0].text


@pytest.mark.parametrize("text", GONE)
def test_a_sessions_key_goes(text, scrub_text):
    cleaned = scrub_text(text)
    assert "SECRET" in cleaned
    assert HEX[:12] not in cleaned.lower()
    assert "q1w2e3r4" not in cleaned


@pytest.mark.parametrize("text", STAY)
def test_words_about_sessions_stay(text, scrub_text):
    assert scrub_text(text) == text
