"""Nights made of arrays and decided by the gate's own functions: planted truth, no files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from ragbench_dagster.reporting.baselines import Baseline, Pairs
from ragbench_dagster.reporting.gate.decide import head_guards, judge_tests
from ragbench_dagster.reporting.gate.limits import floor_test, margin_tests
from ragbench_dagster.reporting.gate.tests import GateResult, GateTest
from ragbench_dagster.reporting.gate.wording import broken_line, broken_questions
from ragbench_dagster.reporting.judge_correction import Corrector
from ragbench_dagster.reporting.night_results import Scores
from ragbench_dagster.results import BrokenHead
from ragbench_dagster.settings import Threshold
from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.correction import JudgeDraws


def scores(values: Any, metric: str = "hit_rate@5", **more: Any) -> Scores:
    """A table of one system `s`; `more`: weight, count, cluster, category, asks, per_request, status."""
    value = np.asarray(values, dtype=float)
    n = len(value)
    given: dict[str, Any] = {
        "status": np.full(n, "scored", dtype=object),
        "score": value,
        "weight": np.ones(n),
        "category": np.full(n, "a", dtype=object),
        "in_gate": np.ones(n, dtype=bool),
        "keys": np.full(n, None, dtype=object),
        "count": np.ones(n),
        "cluster": np.arange(n),
        "asks": np.ones(n, dtype=np.int64),
        "per_request": value,
        **more,
    }
    given["status"] = pd.Categorical(given["status"])
    return Scores("s", metric, np.arange(n).astype(str).astype(object), value=value, **given)


class Compared:
    """Tonight against one other night, as `Baselines` would find them."""

    def __init__(self, before: Scores, after: Scores) -> None:
        night: Any = SimpleNamespace(scores={(after.system, after.metric): after}, judge_of=lambda metric: {})
        self.night = night
        other: Any = SimpleNamespace(scores={(before.system, before.metric): before}, day="2026-11-01")
        self.baseline = Baseline("night 2026-11-01", other, before.system)
        self.before = before

    def find(self, system: str, wanted: str) -> tuple[Baseline, str]:
        return self.baseline, ""

    def differs(self, baseline: Baseline, metric: str) -> None:
        return None

    def pairs(self, baseline: Baseline, after: Scores) -> Pairs:
        at = np.flatnonzero(after.counted & self.before.counted)
        return Pairs(after, self.before, at, at)


def against(
    before: Scores, after: Scores, threshold: Threshold, judge: Corrector | None = None
) -> tuple[list[GateTest], list[BrokenHead]]:
    """The tests of a margin, and the most asked questions that broke."""
    compared: Any = Compared(before, after)
    overall = GateTest("s", after.metric, "overall", "margin", -(threshold.margin or 0.0), primary=True)
    tests = list(margin_tests(overall, after, threshold, compared, judge))
    return tests, broken_questions(compared, ["s"], {after.metric: threshold})


def decided(before: Scores, after: Scores, threshold: Threshold, judge: Corrector | None = None) -> GateResult:
    """The gate's word on one metric with a margin."""
    tests, broken = against(before, after, threshold, judge)
    closed = head_guards(broken, {after.metric: threshold})
    return judge_tests(tests, closed, [], 10_000, first=[broken_line(b) for b in broken], advise=False)


def floored(after: Scores, floor: float, per: Any = "question", judge: Corrector | None = None) -> GateTest:
    test = GateTest("s", after.metric, "overall", "floor", floor, per=per, primary=True)
    return floor_test(test, after, np.ones(len(after.ids), dtype=bool), judge)


def labelled_judge(rng: np.random.Generator, se: float, sp: float, good: int = 100, bad: int = 100) -> Corrector:
    """A judge as `good + bad` labelled calibration rows show it."""
    tp, tn = int(rng.binomial(good, se)), int(rng.binomial(bad, sp))
    return Corrector(JudgeDraws.of(Table(tp=tp, fp=bad - tn, fn=good - tp, tn=tn), 4000), {})


def judged(rng: np.random.Generator, truth: np.ndarray, se: float, sp: float) -> np.ndarray:
    """A judge's verdicts on answers whose truth is known."""
    return np.where(rng.random(len(truth)) < np.where(truth > 0.5, se, 1 - sp), 1.0, 0.0)
