"""From the thresholds of ragbench.yaml to tests on a night."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from scipy import special

from ragbench_dagster.calibration.stats.paired import Change, mean_below
from ragbench_dagster.calibration.stats.weighted import estimate
from ragbench_dagster.reporting import latency
from ragbench_dagster.reporting.baseline import Baseline, Baselines, Pairs
from ragbench_dagster.reporting.compare import change_in
from ragbench_dagster.reporting.correct import Corrector
from ragbench_dagster.reporting.cost import judge_cost
from ragbench_dagster.reporting.gate_rows import Test
from ragbench_dagster.reporting.night import Mask, Night, Scores
from ragbench_dagster.settings import COST, Threshold

LATENCY = re.compile(r"latency_p(50|95|99)_ms")
LEAST_PART = 20  # scored rows of a category below which no test on it could ever fail


class Builder:
    """Builds the tests of one night."""

    def __init__(self, night: Night, correctors: dict[tuple[str, str], Corrector]) -> None:
        self.night = night
        self.correctors = correctors
        self.baselines = Baselines(night)

    def tests(self, system: str, metric: str, threshold: Threshold) -> Iterator[Test]:
        """All tests of one threshold on one system; none where it does not apply to it."""
        if found := LATENCY.fullmatch(metric):
            yield from self._latency(system, metric, int(found[1]), threshold)
        elif metric == COST:
            yield from self._cost(system, threshold)
        else:
            scores = self.night.scores.get((system, metric))
            if scores is None:
                yield self._test(system, metric, threshold, "overall", "floor", threshold.min or 0.0,
                                 reason="not measured tonight")  # fmt: skip
            elif (scores.status[scores.in_gate] != "not_applicable").any():
                yield from self._scores(scores, threshold)
            elif day := self.baselines.last_scored(system, metric):
                yield self._test(system, metric, threshold, "overall", "floor", threshold.min or 0.0,
                                 reason=f"scored on {day}, applies to no answer of tonight")  # fmt: skip

    def _test(
        self, system: str, metric: str, threshold: Threshold, part: str, kind: str, limit: float, **facts: object
    ) -> Test:
        primary = part == "overall" and threshold.role == "primary" and threshold.severity == "fail"
        return Test(system, metric, part, kind, limit, primary=primary, severity=threshold.severity, **facts)  # type: ignore[arg-type]

    def _scores(self, scores: Scores, threshold: Threshold) -> Iterator[Test]:
        everything = np.ones(len(scores.ids), dtype=bool)
        system, metric = scores.system, scores.metric
        if threshold.min is not None:
            test = self._test(system, metric, threshold, "overall", "floor", threshold.min)
            yield self._floor(test, scores, everything)
        if threshold.max is not None:
            test = self._test(system, metric, threshold, "overall", "ceiling", threshold.max)
            yield self._floor(test, scores, everything)
        for part, floor in sorted(threshold.slices.items()):
            where = scores.category == part
            test = self._test(system, metric, threshold, part, "floor", floor)
            if not where.any():
                test.reason = "no example is in this category"
                yield test
            else:
                yield self._floor(test, scores, where)
        if threshold.margin is not None:
            yield from self._margins(scores, threshold)

    def _floor(self, test: Test, scores: Scores, where: Mask) -> Test:
        at = where & scores.counted
        test.n = int(at.sum())
        if test.n == 0:
            test.reason = "no scored answer"
            return test
        if test.part != "overall" and test.n < LEAST_PART:
            test.reason = f"only {test.n} scored answers, {LEAST_PART} are needed"
        values = scores.value[at]
        sign = -1.0 if test.kind == "ceiling" else 1.0
        fix = self.correctors.get((scores.system, scores.metric))
        if fix is not None:
            _corrected_floor(test, fix, scores, at, sign)
        else:
            _plain_floor(test, values, scores.share, sign)
        if test.reason is not None:
            test.p = test.clears = None
        return test

    def _margins(self, scores: Scores, threshold: Threshold) -> Iterator[Test]:
        system, metric, margin = scores.system, scores.metric, threshold.margin or 0.0
        wanted = threshold.baseline
        if wanted == system:
            return  # the baseline system itself
        baseline, why = self.baselines.find(system, wanted)
        overall = self._test(system, metric, threshold, "overall", "margin", -margin)
        pairs = self.baselines.pairs(baseline, scores) if baseline else None
        differs = self.baselines.differs(baseline, metric) if baseline else None
        if baseline is None or pairs is None:
            overall.reason = why or f"{baseline.name if baseline else 'the baseline'} has no {metric}"
            if wanted == "last_passed":
                # else no night could ever be the first to pass
                overall.primary = False
                overall.reason += ": the other thresholds decide until one has"
            yield overall
            return
        if differs and wanted == "last_passed" and self._accepted(metric):
            overall.primary = False
            differs += "; the accepted judge starts anew, the other thresholds decide until a night has passed"
        elif differs:
            differs += ": if that is meant, accept the judge with ragbench calibrate --accept"
        yield _margin(overall, pairs, baseline, np.ones(len(scores.ids), dtype=bool), differs)
        if differs is None:
            for part in sorted({c for c in scores.category.tolist() if c}):
                test = self._test(system, metric, threshold, part, "margin", -margin)
                test = _margin(test, pairs, baseline, scores.category == part, None)
                if test.n >= LEAST_PART:
                    yield test

    def _accepted(self, metric: str) -> bool:
        """True where a person accepted this very judge (ragbench calibrate --accept)."""
        return (self.night.judge_of(metric).get("drift") or {}).get("state") in ("steady", "drifted")

    def _latency(self, system: str, metric: str, q: int, threshold: Threshold) -> Iterator[Test]:
        own = latency.times(self.night, system)
        if len(own) == 0 and not self._should_have_times(system):
            return
        limit = threshold.max or 0.0
        test = self._test(system, metric, threshold, "overall", "latency", limit, n=len(own))
        if len(own) == 0:
            test.reason = "no answer's time is known"
            yield test
            return
        test.value, test.low, test.high = latency.percentile(own, q)
        test.p = latency.late_share_p(own, q, limit)
        test.at_limit = test.value is not None and test.value > limit
        test.clears = test.high is not None and test.high <= limit
        test.times = own
        if test.high is None:
            test.needed = int(np.ceil(np.log(0.025) / np.log(q / 100)))
        yield test

    def _should_have_times(self, system: str) -> bool:
        """Logged answers may lack their time; every other system is timed by us."""
        found = self.night.ws.settings.systems.get(system)
        return (found.kind if found else system) != "logged"

    def _cost(self, system: str, threshold: Threshold) -> Iterator[Test]:
        limit = threshold.max or 0.0
        test = self._test(system, COST, threshold, "overall", "cost", limit)
        cost = judge_cost(self.night, system)
        if cost is None:
            test.reason = "the cost is not known"
        else:
            test.value = test.low = test.high = cost["per_question_usd"]
            test.n = cost.get("questions", 0)
            test.at_limit = test.value > limit
            test.p, test.clears = (0.0, False) if test.at_limit else (1.0, True)  # counted, not estimated
        yield test


def _plain_floor(test: Test, values: np.ndarray, share: bool, sign: float) -> None:
    found = estimate(values, None, share)
    test.value, test.low, test.high = found.value, found.low, found.high
    assert found.value is not None
    n, limit = len(values), test.limit
    if share:
        passing = float(values.sum())
        below = float(special.bdtr(passing, n, limit))
        above = float(special.bdtrc(passing - 1, n, limit)) if passing > 0 else 1.0
        test.p = below if sign > 0 else above
    else:
        test.p = mean_below(sign * values, sign * limit)
        test.spread = float(values.std(ddof=1)) if n > 1 else None
    _clear(test, sign)


def _corrected_floor(test: Test, fix: Corrector, scores: Scores, at: Mask, sign: float) -> None:
    found = fix.correct(scores, at)
    test.basis = found.method
    if found.interval is None or found.draws is None:
        test.basis = "raw"
        test.value = float(scores.value[at].mean())
        test.reason = f"judge not usable: {found.reason}"
        return
    test.value, (test.low, test.high) = found.value, found.interval
    beyond = found.draws >= test.limit if sign > 0 else found.draws <= test.limit
    test.p = float((1 + beyond.sum()) / (1 + len(beyond)))
    test.spread = float(found.draws.std()) * float(np.sqrt(test.n))
    _clear(test, sign)


def _clear(test: Test, sign: float) -> None:
    assert test.value is not None
    test.at_limit = sign * test.value < sign * test.limit
    end = test.low if sign > 0 else test.high
    test.clears = end is not None and sign * end >= sign * test.limit


def _margin(test: Test, pairs: Pairs, baseline: Baseline, where: Mask, differs: str | None) -> Test:
    change = change_in(pairs, where)
    test.baseline = baseline.name
    if change is None:
        test.reason = f"no example is shared with {baseline.name}"
        return test
    fill_change(test, change)
    if differs:
        test.p = test.clears = None
        test.reason = differs
    return test


def fill_change(test: Test, change: Change) -> None:
    """The figures of a paired change against a margin."""
    test.n, test.value = change.n, change.value
    test.low, test.high = change.interval or (None, None)
    test.p = change.p_loss
    test.at_limit = change.value <= test.limit
    test.clears = test.low is not None and test.low > test.limit
    test.discordance = change.discordance if change.binary else None
    test.spread = None if change.binary else change.spread
