"""A whole night against a provider that misbehaves, and against kill -9: nothing lost, nothing paid twice."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from ragbench_dagster.evaluation.judge_runner import judge_answers
from ragbench_dagster.evaluation.ledger import Ledger
from tests.support import faulty_provider as faulty
from tests.support.fake_provider import Act, Seen

METRICS = ["faithfulness", "relevancy", "correctness"]


@pytest.mark.slow
def test_two_thousand_examples_and_three_metrics_survive_every_fault(serve, judge_of, workspace):
    n = 2000
    provider = serve(faulty.plan, key=faulty.item_of)
    judge = judge_of(
        provider.base, timeout_s=5, deadline_s=120, max_attempts=faulty.MAX_ATTEMPTS,
        concurrency={"min": 16, "start": 32, "max": 64},
    )  # fmt: skip
    ws = workspace(judge, metrics=METRICS)
    run = judge_answers(ws, "2026-01-02", "s", *faulty.night(n))
    wanted = {f"{metric} {i}": faulty.expected(f"{metric} {i}") for metric in METRICS for i in range(n)}
    assert run.statuses == dict(sorted(Counter(status for status, _ in wanted.values()).items()))
    assert {item: len(seen) for item, seen in provider.attempts.items()} == {i: r for i, (_, r) in wanted.items()}
    assert run.calls == len(provider.seen) == sum(requests for _, requests in wanted.values())
    early = [
        later.at - seen.at
        for group in provider.attempts.values()
        for seen, later in pairwise(group)
        if seen.status == 429 and later.at - seen.at < faulty.RETRY_AFTER_S
    ]
    assert early == []
    assert sum(seen.status == 429 for seen in provider.seen) > 200


@pytest.mark.slow
def test_kill_nine_three_times_loses_only_what_was_in_flight(serve, tmp_path: Path):
    n, workers = 700, 32
    answered: list[str] = []

    def plan(seen: Seen) -> Act:
        answered.append(faulty.item_of(seen))
        return Act("4.0\nAlike." if answered[-1].startswith("correctness") else "YES", delay_s=0.03)

    provider = serve(plan)
    command = [sys.executable, "-m", "tests.support.faulty_provider", str(tmp_path), provider.base, str(n)]
    rng = random.Random(7)
    kills = 0
    for _ in range(3):
        before = len(answered)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until = before + rng.randrange(100, 500)
        while len(answered) < until and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        kills += process.returncode == -signal.SIGKILL
    assert kills == 3
    last = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert last.returncode == 0, last.stderr[-500:]
    assert last.stdout.startswith("{'scored': 2100}")
    with Ledger(f"sqlite:///{tmp_path}/store/ledger.db") as book:
        assert book.count() == 3 * n
    assert set(Counter(answered)) == {f"{m} {i}" for m in METRICS for i in range(n)}
    assert 3 * n <= len(answered) <= 3 * n + 3 * workers
