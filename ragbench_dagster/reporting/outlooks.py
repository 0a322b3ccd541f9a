"""What the last night's size, judge and noise can decide at all: the advice of `ragbench doctor`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ragbench_dagster.calibration.rows import read_calibration
from ragbench_dagster.reporting.advice import floor_advice, margin_advice, threshold_advice
from ragbench_dagster.reporting.baseline import gate_systems
from ragbench_dagster.reporting.correct import Corrector, correctors
from ragbench_dagster.reporting.gate_floors import floor_test
from ragbench_dagster.reporting.gate_rows import Test
from ragbench_dagster.reporting.gate_tests import Builder
from ragbench_dagster.reporting.night import Night, Scores
from ragbench_dagster.settings import ANSWERED, is_judged
from ragbench_dagster.store import Workspace


def decision_advice(ws: Workspace, day: str) -> Iterator[tuple[str, str]]:
    """(level, line): thresholds that nights of this size do not decide, and what metrics without one could have.

    Args:
        day: the night whose number of examples, changes and judge are taken.
    """
    night = Night.open(ws, day)
    fixes = correctors(night, read_calibration(ws))
    builder = Builder(night, fixes)
    primaries = sum(t.margin is not None and t.role == "primary" for t in ws.settings.thresholds.values())
    for (system, metric), scores in night.scores.items():
        if system not in gate_systems(night) or metric == ANSWERED or not scores.counted.any():
            continue
        threshold = ws.settings.thresholds.get(metric)
        if threshold is not None:
            for test in builder.tests(system, metric, threshold):
                if line := _undecided(_sized(test, scores, fixes.get((system, metric))), primaries):
                    yield "warning", line
        if threshold is None or threshold.margin is None:
            for line in threshold_advice(_measured(scores, fixes.get((system, metric))), is_judged(metric)):
                yield "ok", line


def _undecided(test: Test, primaries: int) -> str | None:
    """Why a primary threshold is not decided by a night like this one; None where it is."""
    if (not test.primary and test.kind != "margin") or test.part != "overall" or test.per != "question":
        return None
    if test.kind == "margin":
        line = margin_advice(test, primaries)
        return f"{test.name()}: {line}" if line else None
    advice = floor_advice(test) if test.run and not test.clears else None
    return f"{test.name()}: the floor of {test.limit:g} is not cleared at tonight's value; {advice}" if advice else None


def _sized(test: Test, scores: Scores, fix: Corrector | None) -> Test:
    """A margin that could not be tested yet has tonight's size: advice needs no baseline."""
    if test.kind == "margin" and not test.n:
        size = _measured(scores, fix)
        return test.copy(n=size.n, independent=size.independent, judge=fix.strength if fix else None)
    return test


def _measured(scores: Scores, fix: Corrector | None) -> Test:
    """Tonight's figure of a metric as a test without a limit."""
    blank = Test(scores.system, scores.metric, "overall", "floor", 0.0)
    return floor_test(blank, scores, np.ones(len(scores.ids), dtype=bool), fix)
