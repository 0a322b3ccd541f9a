"""A workspace whose judge is a fake provider."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragbench_dagster.evaluation.judge.background_loop import background
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Judge, parse_settings
from ragbench_dagster.store import Workspace
from tests.support.fake_provider import FakeProvider, Plan


@pytest.fixture(autouse=True)
def _fresh_process_state() -> None:
    """Limiters, LLMs and budgets live as long as the process; each test is a process of its own."""
    RUNTIME.close()


@pytest.fixture
def serve():
    """Starts fake providers and stops them at the end."""
    running: list[FakeProvider] = []

    def start(plan: Plan, **more: Any) -> FakeProvider:
        provider = FakeProvider(plan, **more)
        running.append(provider)
        return provider.__enter__()

    yield start
    background.close()  # the client before its server
    for provider in running:
        provider.__exit__()


@pytest.fixture
def judge_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Judge]:
    """Settings of a judge at an address; any of them may be given."""
    monkeypatch.setenv("RAGBENCH_TEST_KEY", "a-key")

    def make(base: str, **more: Any) -> Judge:
        known: dict[str, Any] = {
            "provider": "openai_like",
            "model": "fake-2026-01-01",
            "api_base": base,
            "api_key_env": "RAGBENCH_TEST_KEY",
            "context_window": 8192,
            "max_tokens": 64,
            "timeout_s": 2,
            "deadline_s": 20,
            "price": {"input": 1.0, "output": 2.0},
        }
        return Judge.model_validate(known | more)

    return make


@pytest.fixture
def workspace(tmp_path: Path) -> Callable[..., Workspace]:
    def make(judge: Judge, **more: Any) -> Workspace:
        settings = parse_settings("").model_copy(update={"judge": judge, **more})
        return Workspace(tmp_path, settings)

    return make
