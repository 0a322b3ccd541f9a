"""A judge for tests: answers from the row's own words, with noise, drift and outages that the test chooses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ragbench_dagster.calibration import judged_rows
from ragbench_dagster.calibration.judged_rows import Identity
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace, digest

METRIC = "faithfulness"


class FakeJudge:
    """Judges an item as its response says ("good" or "bad"), wrongly with chance `noise` in each round.

    Args:
        noise: chance that a verdict is the other one, drawn afresh in every round.
        flipped: share of items whose verdict is always the other one from now on (drift).
        model: the served model.
    """

    def __init__(self, noise: float = 0.0, flipped: float = 0.0, model: str | None = "model-1") -> None:
        self.noise, self.flipped, self.model = noise, flipped, model
        self.fooled: set[str] = set()  # words of injections that it obeys
        self.status = "scored"
        self.calls = 0
        self.rounds: list[str] = []

    def __call__(
        self, ws: Workspace, metric: str, items: Sequence[Item], round: str, progress: object = None, run: str = ""
    ) -> list[Verdict]:
        self.rounds += [round] * len(items)
        self.calls += len(items)
        return [self.verdict(item, round) for item in items]

    def verdict(self, item: Item, round: str) -> Verdict:
        if self.status != "scored":
            return Verdict(self.status, attempts=1)
        passing = "good" in item.response or any(word in item.response for word in self.fooled)
        chance = np.random.default_rng(int(digest(round, item.example_id)[:12], 16)).random()
        always = int(digest("drift", item.example_id)[:8], 16) / 16**8
        passing ^= bool(chance < self.noise)
        passing ^= bool(always < self.flipped)
        return Verdict("scored", float(passing), passing, served_model=self.model, attempts=1)


def install(monkeypatch, judge: FakeJudge) -> None:
    """`judge` answers every round of calibration."""
    monkeypatch.setattr(judged_rows, "judge_round", judge)
    monkeypatch.setattr(judged_rows, "identify", lambda ws, metric: Identity("fake model-1", metric, "1", "t", "same"))


def workspace(root: Path, good: int, bad: int, settings: str = "", wrong: int = 0) -> Workspace:
    """Labelled rows: `good` and `bad` answers, `wrong` of the bad ones read like good ones."""
    folder = root / "calibration"
    folder.mkdir(exist_ok=True)
    rows = []
    for i in range(good + bad):
        human = int(i < good)
        word = "good" if human or i >= good + bad - wrong else "bad"
        rows.append({"query": f"q{i}", "response": f"a {word} answer {i}", "contexts": [], "human": {METRIC: human}})
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    base = f"metrics: [{METRIC}]\njudge: {{provider: openai_like, model: m-2026-01-01, api_key_env: FAKE_KEY}}\n"
    return Workspace(root, parse_settings(base + settings))
