"""The tests of the gate as plain rows: what is tested, what was found, what it could have shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ragbench_dagster.calibration.stats.intervals import Floats

Verdict = Literal["pass", "fail", "inconclusive"]
Kind = Literal["floor", "ceiling", "margin", "coverage", "latency", "cost"]


@dataclass
class Test:
    """One threshold on one system, metric and part. `p` and `clears` are None where it could not be run."""

    system: str
    metric: str
    part: str  # "overall", or the category
    kind: Kind
    limit: float  # floor, ceiling, or minus the margin
    baseline: str | None = None
    primary: bool = False
    severity: Literal["fail", "warn"] = "fail"
    value: float | None = None  # the estimate that is compared with the limit
    low: float | None = None
    high: float | None = None
    n: int = 0
    basis: str = "raw"  # raw, labels, calibration, humans_only
    p: float | None = None  # one-sided, H0: no loss, or not beyond the limit
    p_adjusted: float | None = None
    at_limit: bool = False  # the estimate is at or beyond the limit
    clears: bool | None = None  # its own 95 % bound clears the limit
    detectable: float | None = None  # smallest shortfall or loss this n could have shown
    needed: int | None = None  # rows with which it would clear, at tonight's estimate
    spread: float | None = field(default=None, repr=False)
    discordance: float | None = field(default=None, repr=False)
    times: Floats | None = field(default=None, repr=False)  # sorted, latency only
    reason: str | None = None  # why it was not run
    verdict: Verdict = "inconclusive"

    @property
    def run(self) -> bool:
        return self.p is not None

    def name(self) -> str:
        part = "" if self.part == "overall" else f" in {self.part}"
        return f"{self.system} {self.metric}{part}"

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self)
        for inner in ("spread", "discordance", "times"):
            found.pop(inner)
        return found


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

    def covers(self, test: Test) -> bool:
        return (self.system in (None, test.system)) and (self.metric in (None, test.metric))


@dataclass(frozen=True)
class GateResult:
    """The gate's word on a night."""

    verdict: Verdict
    reasons: list[str]
    rows: list[dict[str, Any]]
    closed: list[dict[str, Any]] = field(default_factory=list)
    tests: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive (design 11)."""
        return {"pass": 0, "fail": 1, "inconclusive": 3}[self.verdict]
