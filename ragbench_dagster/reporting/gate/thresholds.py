"""From the thresholds of ragbench.yaml to tests on a night."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ragbench_dagster.metrics import ANSWERED, COST, metric_of
from ragbench_dagster.reporting import latency
from ragbench_dagster.reporting.baselines import Baselines
from ragbench_dagster.reporting.estimates import judge_cost
from ragbench_dagster.reporting.gate.limits import floor_test, margin_tests
from ragbench_dagster.reporting.gate.production import is_production, production_tests
from ragbench_dagster.reporting.gate.tests import GateTest, Kind
from ragbench_dagster.reporting.judge_correction import Corrector
from ragbench_dagster.reporting.night_results import Night, Scores
from ragbench_dagster.settings import Threshold
from ragbench_dagster.stats.intervals import wilson


class Builder:
    """Builds the tests of one night."""

    def __init__(self, night: Night, correctors: dict[tuple[str, str], Corrector]) -> None:
        self.night = night
        self.correctors = correctors
        self.baselines = Baselines(night)

    def tests(self, system: str, metric: str, threshold: Threshold) -> Iterator[GateTest]:
        """All tests of one threshold on one system; none where it does not apply to it."""
        if (percentile := metric_of(metric).percentile) is not None:
            yield from self._latency(system, metric, percentile, threshold)
        elif metric == COST:
            yield from self._cost(system, threshold)
        else:
            scores = self.night.scores.get((system, metric))
            if scores is None:
                if metric not in self.night.ws.settings.thresholds:
                    return  # a default on a night of before it was measured
                yield self._test(system, metric, threshold, "overall", "floor", threshold.min or 0.0,
                                 reason="not measured tonight")  # fmt: skip
            elif is_production(self.night, system):
                if metric != ANSWERED:
                    blank = self._test(system, metric, threshold, "overall", "floor", 0.0)
                    yield from production_tests(blank, self.night, threshold, self.correctors.get((system, metric)))
            elif (scores.status[scores.in_gate] != "not_applicable").any():
                # whether a system answers is hardly a matter of the passage: each question is its own evidence
                own = replace(scores, cluster=np.arange(len(scores.ids))) if metric == ANSWERED else scores
                for test in self._scores(own, threshold):
                    yield self._possible(test)
            elif day := self.baselines.last_scored(system, metric):
                yield self._test(system, metric, threshold, "overall", "floor", threshold.min or 0.0,
                                 reason=f"scored on {day}, applies to no answer of tonight")  # fmt: skip

    def _test(
        self, system: str, metric: str, threshold: Threshold, part: str, kind: Kind, limit: float, **facts: Any
    ) -> GateTest:
        primary = part == "overall" and threshold.role == "primary" and threshold.severity == "fail"
        default = metric not in self.night.ws.settings.thresholds
        return GateTest(
            system, metric, part, kind, limit, primary=primary, severity=threshold.severity,
            own_level=metric == ANSWERED, optional=default, **facts,
        )  # fmt: skip

    def _possible(self, test: GateTest) -> GateTest:
        """A default that not even a perfect night of this size could clear is a guard: it can fail, it need not pass."""
        if test.optional and test.primary and test.kind in ("floor", "margin"):
            perfect = wilson(test.n, test.n) if test.n else None
            best = 0.0 if perfect is None else perfect[0]
            if best <= test.limit or (test.kind == "margin" and best - 1 <= test.limit):
                test.primary = False
        return test

    def _scores(self, scores: Scores, threshold: Threshold) -> Iterator[GateTest]:
        everything = np.ones(len(scores.ids), dtype=bool)
        system, metric = scores.system, scores.metric
        fix = self.correctors.get((system, metric))
        bounds: list[tuple[Kind, float | None]] = [("floor", threshold.min), ("ceiling", threshold.max)]
        for kind, limit in bounds:
            if limit is not None and threshold.per == "request" and self.thinned:
                test = self._test(system, metric, threshold, "overall", kind, limit)
                yield floor_test(test, scores, everything, fix)
                continue
            for per in ("question", "request"):
                if limit is not None and threshold.per in (per, "both") and not (per == "request" and self.thinned):
                    test = self._test(system, metric, threshold, "overall", kind, limit, per=per)
                    yield floor_test(test, scores, everything, fix)
        for part, floor in sorted(threshold.slices.items()):
            where = scores.category == part
            test = self._test(system, metric, threshold, part, "floor", floor)
            if not where.any():
                test.reason = f"no example is in this category; there are {self._categories(scores)}"
                yield test
            else:
                yield floor_test(test, scores, where, fix)
        if threshold.margin is not None and threshold.baseline != system:
            overall = self._test(system, metric, threshold, "overall", "margin", -threshold.margin)
            yield from margin_tests(overall, scores, self._per_question(threshold), self.baselines, fix)

    @property
    def thinned(self) -> bool:
        """A night of `run --sample` judges a sample of the questions: the requests are not the sample any more."""
        return bool(self.night.manifest.sample)

    def _per_question(self, threshold: Threshold) -> Threshold:
        return threshold.model_copy(update={"per": "question"}) if self.thinned else threshold

    @staticmethod
    def _categories(scores: Scores) -> str:
        names = sorted({c for c in scores.category.tolist() if c})
        return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") or "none"

    def _latency(self, system: str, metric: str, q: int, threshold: Threshold) -> Iterator[GateTest]:
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
        test.over_ms = latency.time_limit(self.night, system)
        if test.high is None:
            test.needed = int(np.ceil(np.log(0.025) / np.log(q / 100)))
        yield test

    def _should_have_times(self, system: str) -> bool:
        """Logged answers may lack their time; every other system is timed by us."""
        found = self.night.ws.settings.systems.get(system)
        return (found.kind if found else system) != "logged"

    def _cost(self, system: str, threshold: Threshold) -> Iterator[GateTest]:
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
