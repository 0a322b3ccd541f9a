"""A workspace with a planted value in every field, and services that echo, quote and redirect."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DAYS = ("2026-11-20", "2026-11-21")
# Values that no shape of a provider's key gives away: only the variables' names say that they are secret.
SECRETS = {
    "CANARY_JUDGE_KEY": "jk-Zebra-4417-orchid-wx",
    "CANARY_GATEWAY": "gw_lantern_90210_mossy",
    "CANARY_SYSTEM_KEY": "sys~Harbour~7731~kelp",
    "CANARY_SYSTEM_CODE": "code*Meadow*5582*fern",
    "CANARY_ENGINE_KEY": "eng+Glacier+6604+pine",
    "CANARY_ALERT_TOKEN": "alerttoken0Quartz8853",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdefcanary88",
    "MLFLOW_TRACKING_TOKEN": "mlf-Thistle-3391-opal",
}


class Plants:
    """Makes personal data that occurs once: where one is found, it is known where it came from."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def mail(self, where: str) -> str:
        return self._keep(f"{where}.{len(self.made)}.canary@mail{len(self.made)}.example.org")

    def phone(self) -> str:
        return self._keep(f"+1 212-555-{1000 + len(self.made)}")

    def card(self) -> str:
        body = f"4000{len(self.made):011d}"
        digits = [int(c) * (2 if i % 2 == 0 else 1) for i, c in enumerate(body)]
        check = -sum(d - 9 if d > 9 else d for d in digits) % 10
        return self._keep(f"{body}{check}")

    def key(self) -> str:
        return self._keep(f"sk-proj-canary{len(self.made):04d}ABCDefgh1234ijkl")

    def _keep(self, value: str) -> str:
        self.made.append(value)
        return value


class Service:
    """An HTTP server on loopback; `answer` gives (status, headers, body) and `seen` what came."""

    def __init__(self, answer: Callable[[str, dict[str, str], bytes, int], tuple[int, dict[str, str], Any]]) -> None:
        seen = self.seen = list[tuple[str, dict[str, str], bytes]]()
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with lock:
                    seen.append((self.path, headers, body))
                    number = len(seen)
                status, more, said = answer(self.path, headers, body, number)
                data = json.dumps(said).encode()
                self.send_response(status)
                for name, value in {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(data)),
                    **more,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def judge(plants: Plants) -> Service:
    """Quotes the prompt, adds data of its own, echoes its key; every fifth call fails in another way."""

    def answer(path: str, headers: dict[str, str], body: bytes, number: int) -> tuple[int, dict[str, str], Any]:
        prompt = json.loads(body)["messages"][-1]["content"]
        quoted = f"{path} {headers.get('authorization')} {plants.mail('reply')} {plants.phone()} {prompt[:300]}"
        if number % 5 == 1:
            status = (400, 503, 429)[number // 5 % 3]
            return (
                status,
                {"Retry-After": "0"},
                {"error": {"message": f"refused: {quoted}", "type": "invalid_request_error"}},
            )
        said = f"YES\n{plants.mail('said')} told so, key {headers.get('authorization')}" if number % 2 else quoted
        message = {"role": "assistant", "content": said, "reasoning_content": quoted}
        usage = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        model = f"judge of {plants.mail('model')}" if number % 7 == 0 else "judge-2026-01-01"
        return (
            200,
            {},
            {
                "id": "x",
                "model": model,
                "system_fingerprint": headers.get("authorization"),
                "choices": [choice],
                "usage": usage,
            },
        )

    return Service(answer)


def system(plants: Plants, foreign: str) -> Service:
    """Echoes question and headers, quotes its key, sends some questions to a foreign host."""

    def answer(path: str, headers: dict[str, str], body: bytes, number: int) -> tuple[int, dict[str, str], Any]:
        echo = f"{path} {json.dumps(headers)} {body.decode()} {plants.mail('answer')} {plants.card()}"
        if number % 4 == 1:
            return (307, 302)[number // 4 % 2], {"Location": foreign + path}, {"response": echo}
        if number % 4 == 2:
            return 500, {}, {"error": echo}
        return 200, {}, {
            "response": echo,
            "source_nodes": [{"node_id": plants.phone(), "score": 1.0, "text": echo}, {"node_id": headers.get("x-api-key"), "text": "x"}],
        }  # fmt: skip

    return Service(answer)


ENGINE = """\
def build(api_key, workspace):
    def ask(query):
        if len(query) % 3 == 0:
            raise ValueError(f"cannot answer {query} with {api_key}")
        return {"response": f"{query} {api_key}", "source_nodes": [{"node_id": api_key, "text": query}]}
    return ask

def broken(api_key, workspace):
    raise RuntimeError(f"no access for MAIL with {api_key}")
"""


def write_workspace(root: Path, plants: Plants, judge_port: int, system_port: int) -> None:
    """Inputs with a planted value in every field, good lines and bad ones."""
    for folder in ("logs", "calibration"):
        (root / folder).mkdir(parents=True)
    for day in DAYS:
        lines = [json.dumps(_request(plants, day, n)) for n in range(8)]
        lines += [
            f'{{"timestamp": "{plants.mail("bad")}", "query": "{plants.phone()}"',
            json.dumps({"timestamp": plants.mail("when"), "query": "q"}),
        ]
        (root / "logs" / f"{plants.mail('file')}-{day}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    same = "how do i reset the password of the portal?"
    _jsonl(root / "corpus.jsonl", [
        {"doc_id": plants.phone(), "text": f"the portal resets passwords for {plants.mail('corpus')}"},
        {"doc_id": "doc-2", "text": f"write to {plants.mail('corpus')} or {plants.phone()}"},
    ])  # fmt: skip
    _jsonl(root / "labels.jsonl", [
        {"query": same, "expected_doc_ids": [plants.phone()], "expected_answer": f"ask {plants.mail('label')}", "category": plants.mail("category")},
        {"query": f"who is {plants.mail('label')}?", "expected_doc_ids": ["doc-2"]},
    ])  # fmt: skip
    _jsonl(root / "calibration" / "maria.canaryson-5551239876.jsonl", [
        {"id": plants.mail("id"), "query": f"q{n} of {plants.mail('cal')}", "contexts": [f"{plants.mail('ctx')} {plants.card()}"],
         "response": f"see {plants.phone()}", "reference": plants.mail("ref"), "history": [plants.mail("turn")],
         "human": {"faithfulness": n % 2}} for n in range(4)
    ])  # fmt: skip
    mail = plants.mail("scrub")
    _jsonl(
        root / "scrub_labels.jsonl",
        [{"text": f"i am {mail}", "spans": [{"start": 5, "end": 5 + len(mail), "type": "EMAIL_ADDRESS"}]}],
    )
    (root / "canary_engine.py").write_text(ENGINE.replace("MAIL", plants.mail("engine")), encoding="utf-8")
    (root / "ragbench.yaml").write_text(f"""\
traffic: {{sample: {{rate: 1.0}}}}
dataset: {{min_examples: 1}}
metrics: [faithfulness, hit_rate@5]
systems:
  logged: {{kind: logged}}
  bm25: {{kind: engine, engine: "ragbench_dagster.evaluation.bm25:build", params: {{top_k: 2}}}}
  prod: {{kind: http, url: "http://127.0.0.1:{system_port}/answer?code=${{CANARY_SYSTEM_CODE}}", headers: {{X-Api-Key: "${{CANARY_SYSTEM_KEY}}"}}, timeout_s: 5, retry_after_s: []}}
  mine: {{kind: engine, engine: "canary_engine:build", params: {{api_key: "${{CANARY_ENGINE_KEY}}"}}, retry_after_s: []}}
judge: {{provider: openai_like, model: judge-2026-01-01, api_base: "http://127.0.0.1:{judge_port}/v1?gateway-key=${{CANARY_GATEWAY}}",
        api_key_env: CANARY_JUDGE_KEY, context_window: 8000, max_tokens: 64, price: {{input: 1, output: 1}}, max_attempts: 2, timeout_s: 5}}
thresholds: {{faithfulness: {{min: 0.9}}}}
tracking: {{mlflow_uri: sqlite, wandb_project: canaries, wandb_mode: offline}}
alerts: {{urls_env: CANARY_ALERTS}}
""", encoding="utf-8")  # fmt: skip


def _request(plants: Plants, day: str, n: int) -> dict[str, Any]:
    question = (
        "how do i reset the password of the portal?"
        if n % 4 == 0
        else f"what about ticket number {n} for {plants.mail('query')} with card {plants.card()}"
    )
    return {
        "timestamp": f"{day}T0{n % 10}:00:00Z",
        "request_id": plants.mail("request"),
        "query": question,
        "response": f"{plants.mail('response')} called {plants.phone()}, use {plants.key()}",
        "source_nodes": [{"node_id": plants.phone(), "score": 0.5, "text": f"{plants.mail('node')} {plants.card()}"}],
        "category": plants.mail("category") if n == 3 else "portal",
        "user_id": plants.mail("user"),
        "conversation_id": plants.mail("conversation"),
        "model": plants.mail("model") if n == 5 else "gpt-4o",
        "history": [f"i am {plants.mail('history')}"] if n == 7 else [],
        "latency_ms": 12,
        "unknown": {"deep": [plants.mail("unknown"), plants.key()]},
        plants.mail("field"): 1,
    }


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
