"""A judge's error rates on the answers of these weeks, from labels drawn evenly from passed and failed ones.

Labels drawn within the verdict give P(good | passed) and P(good | failed); with the share that passed in those
weeks they give sensitivity and specificity. They replace the calibration rows instead of joining them: pooled
with rows of other answers the corrected rate covers .03 to .44 under a shift, alone .93 to .97 under every shift
that was tried. A test for contradiction finds large shifts only (.23 to .50 for the small ones), so it guards
only until there are enough labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragbench_dagster.calibration.stats.correction import MIN_CLASS, MIN_YOUDEN, JudgeDraws
from ragbench_dagster.calibration.stats.tables import DRAWS, SEED, Table

ENOUGH = 60  # audit labels from which they replace the calibration rows; 100 are recommended
TESTED = 30  # from which the calibration rows are tested against them
UNSURE = 0.10  # share of labels drawn but left open, above which the sample is no longer random
CONTRADICTED = 0.05


@dataclass(frozen=True, slots=True)
class AuditCounts:
    """Labels of an audit and the verdicts of the weeks they were drawn from."""

    passed: int  # labelled answers that the judge passed
    passed_good: int  # of these, people call good
    failed: int
    failed_good: int
    week_passed: int  # all answers of those weeks that passed, labelled or not
    week_n: int
    unsure: int = 0  # drawn, and people could not say

    @property
    def labels(self) -> int:
        return self.passed + self.failed

    @property
    def drawn(self) -> int:
        return self.labels + self.unsure

    @property
    def too_unsure(self) -> bool:
        """More were left open than a random sample bears."""
        return self.unsure > UNSURE * self.drawn

    @property
    def replaces(self) -> bool:
        """Enough labels, of both verdicts, to replace the calibration rows.

        An audit drawn without regard to the verdict keeps its coverage too, so 10 of the rarer one do.
        """
        return self.labels >= ENOUGH and min(self.passed, self.failed) >= MIN_CLASS


@dataclass(frozen=True)
class AuditedJudge(JudgeDraws):
    """A judge's error rates from an audit; `table` counts its labels, which were drawn within the verdict."""

    method: ClassVar[str] = "audit"
    rates: tuple[float, float]

    @classmethod
    def from_counts(cls, counts: AuditCounts, draws: int = DRAWS) -> AuditedJudge:
        """Draws of sensitivity and specificity.

        With v1, v0 = share good among passed and failed, q = share that passed and t = q v1 + (1-q) v0:
        se = q v1 / t, sp = (1-q)(1-v0) / (1-t).
        """
        rng = np.random.default_rng(SEED + 4)
        c = counts
        v1 = rng.beta(c.passed_good + 0.5, c.passed - c.passed_good + 0.5, draws)
        v0 = rng.beta(c.failed_good + 0.5, c.failed - c.failed_good + 0.5, draws)
        q = rng.beta(c.week_passed + 0.5, c.week_n - c.week_passed + 0.5, draws)
        t = q * v1 + (1 - q) * v0
        table = Table(c.passed_good, c.passed - c.passed_good, c.failed_good, c.failed - c.failed_good)
        return cls(table, q * v1 / t, (1 - q) * (1 - v0) / (1 - t), _rates(c))

    @property
    def point(self) -> tuple[float, float] | None:
        """Sensitivity and specificity at the shares that were seen."""
        return self.rates

    @property
    def source(self) -> str:
        """What the rates come from, for words."""
        return f"{self.table.n} labels of the last 28 days' answers"

    def refusal(self) -> str | None:
        """Why the correction is refused: only for a judge that tells too little."""
        if self.youden[0] <= MIN_YOUDEN:
            return self.too_weak()
        return None


def _rates(c: AuditCounts) -> tuple[float, float]:
    """Sensitivity and specificity at the shares that were seen, with half a row added against 0/0."""
    v1, v0 = (c.passed_good + 0.5) / (c.passed + 1), (c.failed_good + 0.5) / (c.failed + 1)
    q = (c.week_passed + 0.5) / (c.week_n + 1)
    t = q * v1 + (1 - q) * v0
    return q * v1 / t, (1 - q) * (1 - v0) / (1 - t)


def contradiction_p(audit: JudgeDraws, rows: JudgeDraws) -> float:
    """Two-sided p of H0 "the calibration rows describe these answers", over both rates (Bonferroni)."""
    least = 1.0
    for new, old in ((audit.se, rows.se), (audit.sp, rows.sp)):
        least = min(least, 2 * float(min((new <= old).mean(), (new >= old).mean())))
    return min(1.0, 2 * least)


def contradicted(audit: JudgeDraws, rows: JudgeDraws) -> bool:
    """True where the correction by calibration rows must be refused: they do not describe these answers."""
    return contradiction_p(audit, rows) <= CONTRADICTED
