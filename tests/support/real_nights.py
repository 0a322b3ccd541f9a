"""Nights made by real engines on a release of a test's own, through the functions of a night, without Dagster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ragbench_dagster.dataset.release import pointer_file
from ragbench_dagster.evaluation.answers import answer_release
from ragbench_dagster.evaluation.pipeline import judge_night, night_release, score_retrieval_night, write_manifest
from ragbench_dagster.reporting.gate.decide import GateResult, decide
from ragbench_dagster.reporting.leaderboard import rank
from ragbench_dagster.reporting.scores import build_scores
from ragbench_dagster.reporting.summary import summarise
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace, write_json
from tests.support.night_maker import DAY, NightMaker

# Answers question N with "answer N" from passage dN. What goes wrong is said in the file `fault.py` of the workspace.
ENGINE = """
import re
def build(workspace, fault="None", seed=0):
    calls = [0]
    broken = eval(fault) or (lambda number, call: "")
    def ask(text):
        with open(workspace.root / "asked.txt", "a", encoding="utf-8") as file:
            file.write(text + "\\n")
        calls[0] += 1
        number = int(re.search(r"[0-9]+", text)[0])
        how = broken(number, calls[0])
        if how == "raise":
            raise RuntimeError("down")
        if how == "late":
            raise TimeoutError
        if how == "wrong":
            return {"answer": "I do not know.", "sources": [{"id": "d999999", "text": "nothing"}]}
        return {"answer": f"answer {number}", "sources": [{"id": f"d{number}", "text": f"answer {number}"}]}
    return ask
"""
SETTINGS = """
systems:
  mine: {kind: engine, engine: "planted:build", params: {fault: "%s"}, concurrency: 1, retry_after_s: %s}
metrics: [%s]
scrub: {ner: "off"}
dataset: {min_examples: 50}
%s
"""


class RealNights:
    """A workspace whose nights are made by an engine with planted faults."""

    def __init__(self, root: Path, n: int, weights: Any = None, more: str = "", metrics: str = "'hit_rate@5'") -> None:
        self.root, self.n, self.more, self.metrics = root, n, more, metrics
        (root / "planted.py").write_text(ENGINE, "utf-8")
        self.maker = NightMaker(root, SETTINGS % ("None", "[]", metrics, more), n)
        if weights is not None:
            self.maker.weights = np.asarray(weights, dtype=float)
            self.maker.release = self.maker.make_release(count=[max(1, round(w / 10)) for w in weights])
        write_json(pointer_file(self.maker.ws, "2026-11-16"), {"release": self.maker.release})

    def night(self, day: str = DAY, fault: str = "None", waits: str = "[0]") -> tuple[dict[str, Any], GateResult]:
        """Run a night; (summary, gate)."""
        self.ws = ws = Workspace(self.root, parse_settings(SETTINGS % (fault, waits, self.metrics, self.more)))
        self.run = answer_release(ws, day, "mine", night_release(ws, day))
        score_retrieval_night(ws, day, "mine")
        if ws.settings.judged_metrics:
            self.judged = judge_night(ws, day, "mine")
        write_manifest(ws, day)
        build_scores(ws, day, ["mine"])
        summary = summarise(ws, day)
        rank(ws, day)
        return summary, decide(ws, day)

    @property
    def asked(self) -> list[str]:
        return (self.root / "asked.txt").read_text("utf-8").split("\n")[:-1]
