"""With what an undecided night would have been decided: examples, labels, another margin or floor.

Also for `ragbench doctor`, before anybody waits for nights that cannot be decided. Formulas and tables belong to
`calibration.stats.margins`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ragbench_dagster.calibration.labelled_answers import read_calibration
from ragbench_dagster.metrics import ANSWERED, is_judged
from ragbench_dagster.reporting.baselines import gate_systems
from ragbench_dagster.reporting.gate.limits import floor_test
from ragbench_dagster.reporting.gate.tests import GateTest
from ragbench_dagster.reporting.gate.thresholds import Builder
from ragbench_dagster.reporting.judge_correction import Corrector, correctors
from ragbench_dagster.reporting.night_results import Night, Scores
from ragbench_dagster.stats.margins import advised_floor, advised_margin, examples_to_clear, labels_to_clear, outlook
from ragbench_dagster.store import Workspace
from ragbench_dagster.text.format import decimal, percent

USUAL_CHANGE = 0.1  # share of verdicts that differ from the baseline's, where no baseline tells
OFTEN = 0.8
MOST_EXAMPLES = 100_000  # beyond it "more examples" is no advice


def margin_advice(test: GateTest, primaries: int = 1) -> str | None:
    """What makes this margin decidable, in words; None where an unchanged system passes it in 4 of 5 nights."""
    n = test.independent or float(test.n)
    if n < 2 or test.limit >= 0 or test.releases or test.per == "request":
        return None  # linked releases and requests follow other tables
    known = test.discordance if test.discordance is not None else None
    psi = known if known is not None else USUAL_CHANGE
    found = outlook(n, max(psi, 1e-3), -test.limit, test.judge, max(1, primaries))
    if found.power >= OFTEN:
        return None
    ways = []
    if found.margin is not None and found.margin > -test.limit:
        ways.append(f"a margin of {decimal(found.margin, 2)}")
    if found.examples is not None and found.examples > n and found.examples <= MOST_EXAMPLES:
        ways.append(f"{_round(found.examples * test.n / n):,} examples")
    if (
        found.labels is not None
        and test.judge is not None
        and found.labels > test.judge.positives + test.judge.negatives
    ):
        ways.append(f"{_round(found.labels):,} labels")
    if known:
        ways.append("answers that change less from night to night (temperature 0)")
    changing = (
        f"{percent(psi)} of verdicts changing"
        if known is not None
        else f"{percent(psi)} of verdicts changing (a guess)"
    )
    what = "" if primaries <= 1 else f" together with the other {primaries - 1} primary margins"
    line = (
        f"with {test.n:,} examples and {changing}, an unchanged system passes a margin of {decimal(-test.limit, 2)} "
        f"in {odds(found.power)} nights{what}"
    )
    return line + (f": use {_either(ways)}" if ways else ": no number of examples helps")


def odds(power: float) -> str:
    """A chance as `1 of 8`, `3 of 4`; `almost no` below 1 of 100."""
    if power < 0.01:
        return "almost no"
    if power < 0.4:
        return f"1 of {round(1 / power)}"
    return f"{round(power * 10)} of 10"


def threshold_advice(test: GateTest, metric_judged: bool) -> Iterator[str]:
    """What a metric's own n, judge and value advise for a margin and a floor: a line each, none where none helps."""
    n = test.independent or float(test.n)
    margin = advised_margin(n, test.judge.youden if test.judge else None) if not metric_judged or test.judge else None
    if margin is not None:
        yield f"{test.name()}: a margin of {decimal(margin, 2)} can be decided with {test.n:,} examples"
    elif n < 200:
        yield f"{test.name()}: {n:,.0f} independent examples decide no margin; 200 are needed"
    elif metric_judged:
        yield f"{test.name()}: the judge is too weak for a margin below 700 examples; label more, or use a better judge"
    if test.value is not None:
        floor = advised_floor(n, test.value, corrected=test.basis not in ("raw",))
        if floor is not None:
            yield f"{test.name()}: a floor of {decimal(floor, 2)} is cleared in 4 of 5 nights at tonight's value"


def floor_advice(test: GateTest) -> str | None:
    """With what a floor would be cleared at tonight's value; None where it lies too near."""
    if test.value is None or test.kind != "floor" or test.value <= test.limit:
        return None
    n = test.independent or float(test.n)
    ways = []
    examples = examples_to_clear(test.value, test.limit, test.judge)
    if examples is not None and n < examples <= MOST_EXAMPLES:
        ways.append(f"about {_round(examples * test.n / max(n, 1.0)):,} examples")
    if test.judge is not None:
        labels = labels_to_clear(n, test.value, test.limit, test.judge)
        if labels is not None and labels > test.judge.positives + test.judge.negatives:
            ways.append(f"{_round(labels):,} human labels")
    return f"{_either(ways)} would show it" if ways else None


def _round(n: float) -> int:
    """Two significant digits: more would be a promise that the approximation does not hold."""
    digits = max(0, len(str(int(n))) - 2)
    return int(-(-n // 10**digits) * 10**digits)


def _either(ways: list[str]) -> str:
    return ways[0] if len(ways) == 1 else ", ".join(ways[:-1]) + " or " + ways[-1]


# What the last night's size, judge and noise can decide at all: the advice of `ragbench doctor`. Reads only.


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


def _undecided(test: GateTest, primaries: int) -> str | None:
    """Why a primary threshold is not decided by a night like this one; None where it is."""
    if (not test.primary and test.kind != "margin") or test.part != "overall" or test.per != "question":
        return None
    if test.kind == "margin":
        line = margin_advice(test, primaries)
        return f"{test.name()}: {line}" if line else None
    advice = floor_advice(test) if test.run and not test.clears else None
    return f"{test.name()}: the floor of {test.limit:g} is not cleared at tonight's value; {advice}" if advice else None


def _sized(test: GateTest, scores: Scores, fix: Corrector | None) -> GateTest:
    """A margin that could not be tested yet has tonight's size: advice needs no baseline."""
    if test.kind == "margin" and not test.n:
        size = _measured(scores, fix)
        return test.copy(n=size.n, independent=size.independent, judge=fix.strength if fix else None)
    return test


def _measured(scores: Scores, fix: Corrector | None) -> GateTest:
    """Tonight's figure of a metric as a test without a limit."""
    blank = GateTest(scores.system, scores.metric, "overall", "floor", 0.0)
    return floor_test(blank, scores, np.ones(len(scores.ids), dtype=bool), fix)
