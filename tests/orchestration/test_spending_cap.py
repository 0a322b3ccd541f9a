"""One cap for one run: day, calibration, pairs and engines spend from it, and a restart goes on where it stopped."""

import os
import sqlite3
import subprocess
import sys
import time

import pytest

from tests.support.fake_provider import Act, FakeProvider

CALL_USD = 0.001  # each call's price
AT_ONCE = 4
NIGHT = """\
metrics: [faithfulness]
dataset: {{min_examples: 10}}
calibration: {{sentinel: 20}}
pairwise: [[bm25, logged]]
judge:
  provider: openai_like
  model: fake-2026-01-01
  api_base: "{base}"
  api_key_env: RAGBENCH_TEST_KEY
  context_window: 100000
  max_tokens: 10
  price: {{input: 1.0, output: 0}}
  concurrency: {{min: 1, start: {n}, max: {n}}}
"""


def reply(seen):
    # An LLM's first words in a pairwise comparison are [[A]], [[B]] or [[C]]; YES serves the rest.
    return Act("[[A]]" if "[[A]]" in seen.prompt else "YES", prompt_tokens=1000, completion_tokens=0, delay_s=0.005)


@pytest.fixture
def paid_night(make_workspace, monkeypatch):
    monkeypatch.setenv("RAGBENCH_TEST_KEY", "a-key")
    with FakeProvider(reply) as provider:
        ws = make_workspace(days=1)
        text = (ws.root / "ragbench.yaml").read_text()
        kept = "\n".join(line for line in text.splitlines() if not line.startswith(("metrics", "dataset", "calib")))
        (ws.root / "ragbench.yaml").write_text(kept + "\n" + NIGHT.format(base=provider.base, n=AT_ONCE))
        yield ws, provider


def night(ws, usd):
    command = [sys.executable, "-m", "ragbench_dagster.cli", "run", "-w", str(ws.root), "--max-usd", str(usd)]
    return subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def spent(provider):
    return len(provider.seen) * CALL_USD


def kinds(ws):
    """What was paid for, in the order in which it was: sentinel, answer, week, pair."""
    book = sqlite3.connect(ws.store / "ledger.db")
    rows = book.execute("SELECT round, system, evaluator FROM verdicts WHERE cost_usd > 0 ORDER BY at").fetchall()
    book.close()
    names = [
        "pair" if e == "pairwise" else "week" if r[:4] == "week" else "sentinel" if r else "answer" for r, _, e in rows
    ]
    return list(dict.fromkeys(names)), names


@pytest.mark.slow
def test_the_cap_holds_over_day_calibration_pairs_and_a_kill(paid_night):
    ws, provider = paid_night
    first = night(ws, 0.06)
    end = time.monotonic() + 120
    while len(provider.seen) < 35 and first.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    first.kill()
    first.wait()
    assert 35 <= len(provider.seen) < 60
    again = night(ws, 0.06)
    said = again.communicate(timeout=240)[1]
    assert again.returncode in (1, 3), said
    assert 0.06 - AT_ONCE * CALL_USD <= spent(provider) <= 0.06 + AT_ONCE * CALL_USD
    more = night(ws, 100)
    said = more.communicate(timeout=240)[1]
    assert more.returncode in (0, 1, 3), said
    order, names = kinds(ws)
    assert order == ["sentinel", "answer", "week", "pair"]
    assert len(names) + names.count("pair") <= len(provider.seen) <= len(names) + names.count("pair") + 2 * AT_ONCE
