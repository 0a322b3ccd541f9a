"""The tests of the gate as plain rows: what is tested, what was found, what it could have shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ragbench_dagster.results import ClosedGuard, Decision, GateRow
from ragbench_dagster.stats.intervals import Floats
from ragbench_dagster.stats.margins import JudgeStrength

Kind = Literal["floor", "ceiling", "margin", "coverage", "latency", "cost"]


@dataclass
class GateTest:
    """One threshold on one system, metric and part. `p` and `clears` are None where it could not be run."""

    system: str
    metric: str
    part: str  # "overall", or the category
    kind: Kind
    limit: float  # floor, ceiling, or minus the margin
    per: Literal["question", "request"] = "question"  # each question counts once, or as often as it was asked
    baseline: str | None = None
    primary: bool = False
    severity: Literal["fail", "warn"] = "fail"
    value: float | None = None  # the estimate that is compared with the limit
    low: float | None = None
    high: float | None = None
    before: float | None = None  # margins: both sides' means on the shared questions, on the judge's scale
    after: float | None = None
    raw: float | None = None  # margins of judged metrics: the change as the judge saw it; `value` is people's
    seen: float | None = None  # the share of a change that the judge sees, Youden's J
    n: int = 0  # questions, or sampled requests
    clusters: int | None = None  # things that the questions are about, where several share one
    independent: float | None = None  # independent questions that `n` counts like, where clustered
    releases: int = 0  # releases linked since the accepted night
    since_accepted: str | None = None  # what was lost since then, where another night is the measure
    basis: str = "raw"  # raw, labels, calibration, audit, pairs (changed pairs), humans_only
    p: float | None = None  # one-sided, H0: no loss, or not beyond the limit
    p_adjusted: float | None = None
    at_limit: bool = False  # the estimate is at or beyond the limit
    clears: bool | None = None  # its own 95 % bound clears the limit
    detectable: float | None = None  # smallest shortfall or loss this n could have shown
    needed: int | None = None  # rows with which it would clear, at tonight's estimate
    own_level: bool = False  # tested at .01 of its own, outside Holm's family: `answered`
    optional: bool = False  # a default, not written by anybody: it alone is nothing to decide on
    over_ms: float | None = None  # latency: what is infinite here took longer than this
    judge: JudgeStrength | None = field(default=None, repr=False)  # where a judge's errors are corrected for
    spread: float | None = field(default=None, repr=False)
    discordance: float | None = field(default=None, repr=False)
    times: Floats | None = field(default=None, repr=False)  # sorted, latency only
    reason: str | None = None  # why it was not run
    verdict: Decision = "inconclusive"

    @property
    def run(self) -> bool:
        return self.p is not None

    def name(self) -> str:
        return f"{self.system}: {self.about()}"

    def about(self) -> str:
        """The metric with its part and how questions count: `relevancy in billing`, `relevancy per request`."""
        part = "" if self.part == "overall" else f" in {self.part}"
        return self.metric + part + (" per request" if self.per == "request" else "")

    def copy(self, **changes: Any) -> GateTest:
        return replace(self, **changes)

    def as_row(self) -> GateRow:
        """The test as gate.json has it."""
        return GateRow(**{name: getattr(self, name) for name in GateRow.__struct_fields__})


@dataclass(frozen=True)
class Closed:
    """A guard that is closed: nothing in its scope can pass, and what it closes is not tested."""

    reason: str
    kind: str  # release, privacy, floating, drifted, disagrees, unchecked, key, sentinel, probes, stale, coverage, missing, ...
    system: str | None = None  # None: every system
    metric: str | None = None  # None: every metric
    blocks_tests: bool = True  # False: tests may still fail (too few examples)

    @property
    def line(self) -> str:
        """The reason with what it is about."""
        about = " ".join(filter(None, (self.system, self.metric)))
        return f"{about}: {self.reason}" if about else self.reason

    def covers(self, test: GateTest) -> bool:
        return (self.system in (None, test.system)) and (self.metric in (None, test.metric))


@dataclass(frozen=True)
class GateResult:
    """The gate's word on a night."""

    verdict: Decision
    reasons: list[str]
    rows: list[GateRow]
    closed: list[ClosedGuard] = field(default_factory=list)
    tests: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive (design 11)."""
        return {"pass": 0, "fail": 1, "inconclusive": 3}[self.verdict]
