"""A real client against a provider that changes: the gate closes that night, in one sentence."""

import http.server
import json
import re
import threading

import pytest

from ragbench_dagster.calibration.calibrate import accept_reference, calibrate, drift_line
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace

ROWS = 60


class Provider(http.server.ThreadingHTTPServer):
    """Answers YES to good answers and NO to bad ones; `flip` share of rows the other way round."""

    daemon_threads = True
    model, flip = "judge-2026-01-01", 0.0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        row = re.findall(r"row-(\d+)-(good|bad)", asked)
        good = bool(row) and row[-1][1] == "good"
        if row and int(row[-1][0]) * 7 % ROWS < self.server.flip * ROWS:
            good = not good
        message = {"role": "assistant", "content": "YES" if good else "NO"}
        reply = {
            "id": "c", "object": "chat.completion", "created": 1, "model": self.server.model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 1, "total_tokens": 51},
        }  # fmt: skip
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider():
    server = Provider(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def ws(tmp_path, provider, monkeypatch):
    monkeypatch.setenv("FAKE_KEY", "k")
    folder = tmp_path / "calibration"
    folder.mkdir()
    rows = []
    for i in range(ROWS):
        word = "good" if i % 2 else "bad"
        row = {"query": f"q{i}", "contexts": ["c"], "response": f"row-{i}-{word}", "human": {"faithfulness": i % 2}}
        rows.append(json.dumps(row))
    (folder / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    settings = (
        "metrics: [faithfulness]\n"
        "judge: {provider: openai_like, model: judge-2026-01-01, api_key_env: FAKE_KEY, context_window: 8000,\n"
        f"  api_base: 'http://127.0.0.1:{provider.server_port}/v1', max_tokens: 8, concurrency: {{start: 16}},\n"
        "  price: {input: 1, output: 1}}\n"
    )
    return Workspace(tmp_path, parse_settings(settings))


def test_a_provider_that_changes_its_model_and_flips_a_tenth_closes_the_gate_that_night(ws, provider):
    accept_reference(ws, "Ada", "first judge", when="2026-11-25T10:00:00+00:00")
    steady = calibrate(ws, "2026-11-25")
    assert steady["metrics"]["faithfulness"]["closed"] == []
    assert steady["calls"] > 0
    assert steady["cost_usd"] > 0
    again = calibrate(ws, "2026-11-25")
    assert (again["calls"], again["cost_usd"]) == (0, 0)

    provider.model, provider.flip = "judge-2026-03-03", 0.10
    night = calibrate(ws, "2026-11-26")
    assert [c["kind"] for c in night["metrics"]["faithfulness"]["closed"]] == ["drifted"]
    drifted, sentence = drift_line(night)
    assert drifted
    assert "6 of 60 sentinel verdicts are the odd one out of six" in sentence
    assert "serves another model" in sentence
