"""Alerts: one message a night, all lines in the store, and no text of a question in either."""

import http.server
import json
import threading

import pytest

from ragbench_dagster.reporting.alerts import alert_night, alerts, failed_run, missed_nights
from tests.support.hostile_texts import TEXTS
from tests.support.pages import finish

LOGGED = "systems: {logged: {kind: logged}}\nmetrics: [faithfulness]\n"
DAY = "2026-11-20"


@pytest.fixture
def inbox(monkeypatch):
    """A webhook on the loopback that keeps what it is sent; alerts are configured to go there."""
    pytest.importorskip("apprise", reason="no apprise: pip install 'ragbench-dagster[alerts]'")
    messages = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(self.server.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.status = 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("RAGBENCH_ALERT_URLS", f"json://127.0.0.1:{server.server_port}/token-in-the-path\n")
    messages_and_server = messages, server
    yield messages_and_server
    server.shutdown()


def failing(maker, **more):
    made = maker(LOGGED + "thresholds: {faithfulness: {min: 0.9}}\n", n=300, **more)
    made.night({"logged": {"faithfulness": [0.0] * 150 + [1.0] * 150}})
    made.calibrated(["faithfulness"])
    finish(made.ws, DAY)
    return made


def test_a_failed_gate_is_one_message_with_its_reasons(maker, inbox):
    messages, _ = inbox
    made = failing(maker)
    alert_night(made.ws, DAY)
    (message,) = messages
    assert DAY in message["title"]
    assert "gate: fail" in message["title"]
    assert "logged: faithfulness is 0.5" in message["message"]
    assert f"ragbench report --date {DAY}" in message["message"]


def test_the_same_trouble_of_a_night_is_told_once(maker, inbox):
    messages, _ = inbox
    made = failing(maker)
    for _ in range(3):
        alert_night(made.ws, DAY)
    before = (made.ws.store / "alerts.jsonl").read_bytes()
    alert_night(made.ws, DAY)
    assert len(messages) == 1
    assert (made.ws.store / "alerts.jsonl").read_bytes() == before
    assert len(alerts(made.ws)) == 1


def test_retries_of_a_failed_run_are_recorded_each_and_told_once(maker, inbox):
    messages, _ = inbox
    made = maker(LOGGED, n=5)
    for run in ("run-1", "run-2", "run-2"):
        failed_run(made.ws, run, "nightly", DAY)
    assert len(messages) == 1
    assert [a["run_id"] for a in alerts(made.ws)] == ["run-1", "run-2"]
    assert [a["sent"] for a in alerts(made.ws)] == ["yes", "told before"]


def test_drift_and_missed_nights_join_the_message_of_the_gate(maker, inbox):
    messages, _ = inbox
    made = failing(maker)
    later = "2026-11-24"
    made.night({"logged": {"faithfulness": [1.0] * 300}}, day=later)
    drift = {"state": "drifted", "causes": ["30 of 100 sentinel verdicts flipped"]}
    made.calibrated(
        ["faithfulness"], day=later, drift=drift, closed=[{"reason": "the judge drifted", "kind": "drifted"}]
    )
    finish(made.ws, later)
    assert missed_nights(made.ws, later) == ["2026-11-21", "2026-11-22", "2026-11-23"]
    alert_night(made.ws, later)
    (message,) = messages
    for part in ("INCONCLUSIVE", "30 of 100 sentinel verdicts flipped", "3 nights from 2026-11-21 to 2026-11-23"):
        assert part in message["message"]


def test_a_night_that_passed_sends_nothing(maker, inbox):
    messages, _ = inbox
    made = maker(LOGGED + "thresholds: {faithfulness: {min: 0.5}}\n", n=300)
    made.night({"logged": {"faithfulness": [1.0] * 270 + [0.0] * 30}})
    made.calibrated(["faithfulness"])
    finish(made.ws, DAY)
    assert alert_night(made.ws, DAY) is None
    assert messages == []
    assert not (made.ws.store / "alerts.jsonl").exists()


def test_a_message_that_was_not_taken_is_sent_at_the_next_call(maker, inbox):
    messages, server = inbox
    made = failing(maker)
    server.status = 500
    assert alert_night(made.ws, DAY)["sent"].startswith("no: ")
    server.status = 200
    assert alert_night(made.ws, DAY)["sent"] == "yes"
    assert alert_night(made.ws, DAY)["sent"] == "told before"
    assert len(messages) == 2


def test_no_text_of_a_question_is_sent_or_stored(maker, inbox):
    messages, _ = inbox
    made = maker(LOGGED + "thresholds: {faithfulness: {min: 0.9}}\n", n=300)
    made.release = made.make_release(query=[f"{TEXTS[i % len(TEXTS)]} secret-question {i}" for i in range(300)])
    made.night({"logged": {"faithfulness": [0.0] * 300}})
    made.calibrated(["faithfulness"])
    finish(made.ws, DAY)
    alert_night(made.ws, DAY)
    failed_run(made.ws, "run-1", "nightly", DAY)
    told = json.dumps(messages) + (made.ws.store / "alerts.jsonl").read_text("utf-8")
    for secret in ("secret-question", "response to", "feedback on", "pwned", "token-in-the-path"):
        assert secret not in told


def test_without_targets_the_store_alone_remembers(maker, monkeypatch):
    monkeypatch.delenv("RAGBENCH_ALERT_URLS", raising=False)
    made = failing(maker)
    assert alert_night(made.ws, DAY)["sent"] == "not configured"
    assert [a["kinds"] for a in alerts(made.ws)] == [["gate: fail"]]


def test_a_wrong_target_is_counted_not_printed(maker, monkeypatch, capfd):
    pytest.importorskip("apprise", reason="no apprise: pip install 'ragbench-dagster[alerts]'")
    monkeypatch.setenv("RAGBENCH_ALERT_URLS", "nosuch://token-123@host\n")
    made = failing(maker)
    told = alert_night(made.ws, DAY)
    assert told["sent"] == "no: 1 of 1 URLs in RAGBENCH_ALERT_URLS are not apprise URLs"
    said = capfd.readouterr()
    assert "token-123" not in said.out + said.err
