"""A small OpenAI-compatible server that misbehaves on purpose: in a thread for tests, as a process for benchmarks.

A plan says for each request what happens; the server keeps what it was asked and when.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Act:
    """What happens to one request."""

    content: Any = "YES"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: Any = None  # the whole body instead of a completion
    finish: str = "stop"
    message: dict[str, Any] | None = None
    delay_s: float = 0.0
    hang: bool = False  # never answers
    cut: str = ""  # "before": closed without an answer; "half": closed within it
    logprobs: Any = None
    prompt_tokens: int = 100
    completion_tokens: int = 5
    model: str = "fake-2026-01-01"

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw if isinstance(self.raw, bytes) else json.dumps(self.raw).encode()
        message = self.message or {"role": "assistant", "content": self.content}
        total = self.prompt_tokens + self.completion_tokens
        usage = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
        }
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish, "message": message}
        if self.logprobs is not None:
            choice["logprobs"] = {"content": self.logprobs}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": self.model, "system_fingerprint": "fp",
                  "choices": [choice], "usage": usage}  # fmt: skip
        return json.dumps(answer).encode()


@dataclass
class Seen:
    """One request as it came."""

    at: float
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    attempt: int  # 1 for the first request with this prompt
    status: int = 0

    @property
    def prompt(self) -> str:
        return "\n".join(str(m["content"]) for m in self.body.get("messages", []))


Plan = Callable[[Seen], Act]


class FakeProvider:
    """Serves `plan` on a loopback port from a thread of its own.

    `seen` holds every request; `key` groups the attempts at one item (default: the whole prompt).
    """

    def __init__(self, plan: Plan, key: Callable[[Seen], str] = lambda seen: seen.prompt, ssl: Any = None) -> None:
        self.plan = plan
        self._key = key
        self._ssl = ssl
        self.seen: list[Seen] = []
        self.attempts: dict[str, list[Seen]] = defaultdict(list)
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def base(self) -> str:
        return f"http{'s' if self._ssl else ''}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FakeProvider:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._ssl))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *rest = head.rstrip().split("\r\n")
                headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in rest)}
                data = await reader.readexactly(int(headers.get("content-length", 0)))
                seen = Seen(time.monotonic(), first.split(" ")[1], headers, json.loads(data or b"{}"), 1)
                group = self.attempts[self._key(seen)]
                group.append(seen)
                seen.attempt = len(group)
                self.seen.append(seen)
                act = self.plan(seen)
                seen.status = act.status
                if not await self._answer(act, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, act: Act, writer: asyncio.StreamWriter) -> bool:
        if act.hang:
            await asyncio.sleep(3600)
        if act.delay_s:
            await asyncio.sleep(act.delay_s)
        if act.cut == "before":
            writer.transport.abort()
            return False
        body = act.body()
        lines = [f"HTTP/1.1 {act.status} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines += [f"{k}: {v}" for k, v in act.headers.items()]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        if act.cut == "half":
            writer.write(head + body[: len(body) // 2])
            await writer.drain()
            return False
        writer.write(head + body)
        await writer.drain()
        return True


def token(text: str, **alternatives: float) -> dict[str, Any]:
    """One token with its log-probabilities, as the chat API gives them."""
    import math

    top = [{"token": t, "logprob": math.log(p)} for t, p in alternatives.items()]
    chosen = next((a["logprob"] for a in top if a["token"] == text), -0.01)
    return {"token": text, "logprob": chosen, "top_logprobs": top}


if __name__ == "__main__":  # fake_provider.py DELAY_S: prints its port, serves until it is killed
    with FakeProvider(lambda seen: Act(delay_s=float(sys.argv[1]))) as provider:
        print(provider.port, flush=True)
        threading.Event().wait()
