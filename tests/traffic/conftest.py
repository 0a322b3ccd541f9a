"""Small workspaces with hand-written logs, and a scrubber whose rule a test can see through."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.files import Source
from ragbench_dagster.traffic.logs import Entry, Reader
from ragbench_dagster.traffic.scrubbing import Request, ScrubbedRequest

MakeWorkspace = Callable[..., Workspace]


def jsonl(*rows: Any) -> bytes:
    """Rows as JSON Lines; bytes stand for a line as it is."""
    return b"".join((r if isinstance(r, bytes) else json.dumps(r, ensure_ascii=False).encode()) + b"\n" for r in rows)


@pytest.fixture
def lines() -> Callable[..., bytes]:
    return jsonl


@pytest.fixture
def workspace(tmp_path: Path) -> MakeWorkspace:
    """workspace({"2026-11-20.jsonl": bytes or rows}, "traffic: {...}")"""

    def make(files: dict[str, Any], settings: str = "") -> Workspace:
        root = tmp_path / "ws"
        (root / "logs").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = root / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else jsonl(*content))
        return Workspace.open(root, parse_settings(settings))

    return make


@pytest.fixture
def read() -> Callable[..., list[Entry]]:
    """Every entry of every log file of a workspace, in order."""

    def read_all(ws: Workspace) -> list[Entry]:
        source = Source(ws)
        reader = Reader(source, ws.settings.traffic)
        return [entry for file in source.files(str) for entry in reader.read(file)]

    return read_all


@dataclass
class FakeScrubber:
    """Replaces `secret-123` by `<SECRET>`, nothing else."""

    calls: int = 0

    def plain(self, text: str) -> str:
        return re.sub(r"secret-\d+", "<SECRET>", text)

    def requests(self, requests: list[Request]) -> list[ScrubbedRequest]:
        self.calls += len(requests)
        return [self._one(r) for r in requests]

    def batches(self, batches: Iterable[list[Request]]) -> Iterator[list[ScrubbedRequest]]:
        yield from map(self.requests, batches)

    def _one(self, r: Request) -> ScrubbedRequest:
        count = sum(len(re.findall(r"secret-\d+", t)) for t in r.all_texts)
        return ScrubbedRequest(
            query=self.plain(r.query),
            response=None if r.response is None else self.plain(r.response),
            contexts=[self.plain(c) for c in r.contexts],
            history=[self.plain(h) for h in r.history],
            question=self.plain(r.query) != "<SECRET>",
            counts={"SECRET": count} if count else {},
        )


@pytest.fixture
def fake_scrubber() -> FakeScrubber:
    return FakeScrubber()
