"""The pass rate under a judge that errs: what people would have said of all answers.

(a) Labels on the very answers under judgement, a random sample of them: Jeffreys posterior on
    theta = q v1 + (1-q) v0, the point by Tenenbein (1970, JASA 65:1350), which equals prediction-powered
    inference with the best weight (Angelopoulos, Duchi, Zrnic 2023, arXiv 2311.01453) up to O(1/n).
(b) A separate calibration set: Rogan and Gladen (1978, Am. J. Epidemiol. 107:71) with Jeffreys draws,
    cut to [0, 1].

Labels of another night or system must never be used as (a): they pull tonight towards the old rate, cover
the truth in 0 to 5 % of nights, and hide a regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ragbench_dagster.stats.agreement_tables import DRAWS, SEED, Table
from ragbench_dagster.stats.intervals import Z95, Floats, Interval, effective_n, kish, wilson

MIN_CLASS = 10  # labelled rows of a class; 20 negatives already double the width
MIN_YOUDEN = 0.1  # lower 2.5 % Jeffreys bound of se + sp - 1
OUTSIDE = 0.975  # share of draws outside [0, 1] that shows the calibration rows describe other answers


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected share, or why there is none."""

    method: str  # labels, audit, calibration, humans_only or none
    value: float | None
    interval: Interval | None
    reason: str  # why this method; for none: what is missing
    draws: Floats | None = None  # of the corrected share, for the test against a floor
    youden: Interval | None = None

    @property
    def usable(self) -> bool:
        return self.interval is not None


@dataclass(frozen=True)
class JudgeDraws:
    """Jeffreys draws of a judge's sensitivity and specificity; drawn once, used for every slice."""

    method: ClassVar[str] = "calibration"
    table: Table
    se: Floats
    sp: Floats

    @classmethod
    def of(cls, table: Table, draws: int = DRAWS) -> JudgeDraws:
        """Draws from a calibration set's table."""
        rng = np.random.default_rng(SEED)
        return cls(
            table,
            rng.beta(table.tp + 0.5, table.fn + 0.5, draws),
            rng.beta(table.tn + 0.5, table.fp + 0.5, draws),
        )

    @cached_property
    def youden(self) -> Interval:
        """95 % interval of Youden's J = sensitivity + specificity - 1."""
        low, high = np.quantile(self.se + self.sp - 1, [0.025, 0.975])
        return float(low), float(high)

    @property
    def point(self) -> tuple[float, float] | None:
        """Sensitivity and specificity at the shares that were seen; None without rows of both classes."""
        t = self.table
        return (t.tp / t.positives, t.tn / t.negatives) if t.positives and t.negatives else None

    @property
    def source(self) -> str:
        """What the rates come from, for words."""
        return f"judge's errors on {self.table.n} labelled calibration answers"

    def too_weak(self) -> str:
        return (
            f"the judge tells good from bad too weakly (sensitivity + specificity - 1 may be "
            f"{self.youden[0]:.2f}, more than {MIN_YOUDEN} is needed)"
        )

    @property
    def youden_point(self) -> float:
        """J at the shares that were seen; 0 without rows of both classes."""
        se, sp = self.point or (0.5, 0.5)
        return se + sp - 1

    def refusal(self) -> str | None:
        """Why this judge's errors cannot be corrected for; None where they can."""
        if self.table.smaller_class < MIN_CLASS:
            which = "bad" if self.table.negatives < self.table.positives else "good"
            count = self.table.smaller_class
            return f"only {count} labelled answers that people call {which}, {MIN_CLASS} are needed: label more of them"
        return self.too_weak() if self.youden[0] <= MIN_YOUDEN else None


def quantiles(draws: Floats) -> Interval:
    """2.5 % and 97.5 % quantiles by partition (a full sort costs ten times as much)."""
    last = len(draws) - 1
    low, high = int(0.025 * last), int(np.ceil(0.975 * last))
    part = np.partition(draws, (low, high))
    return float(part[low]), float(part[high])


def rogan_gladen(passing: float, n: float, judge: JudgeDraws, checked: bool = False) -> Corrected:
    """Method (b). `passing` of `n` rows passed the judge; both may be effective, fractional counts.

    Args:
        checked: the caller knows that `judge.refusal()` is None.
    """
    refusal = None if checked else judge.refusal()
    if refusal:
        return Corrected("none", None, None, refusal, youden=judge.youden)
    if n <= 0:
        return Corrected("none", None, None, "no scored answer", youden=judge.youden)
    rng = np.random.default_rng(SEED + 1)
    q = rng.beta(passing + 0.5, n - passing + 0.5, len(judge.se))
    raw = (q + judge.sp - 1) / (judge.se + judge.sp - 1)
    if float(((raw < 0) | (raw > 1)).mean()) > OUTSIDE:
        reason = "the calibration rows do not describe these answers: label some of tonight's"
        return Corrected("none", None, None, reason, youden=judge.youden)
    draws = np.clip(raw, 0.0, 1.0)
    se, sp = judge.point or (0.0, 0.0)
    point = float(np.clip((passing / n + sp - 1) / (se + sp - 1), 0.0, 1.0)) if se + sp > 1 else None
    return Corrected(judge.method, point, quantiles(draws), judge.source, draws, judge.youden)


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """Tonight's answers with human labels: verdicts, labels and sampling weights of the labelled rows.

    `worth` is how many independent rows one of them counts like, where several are about one thing.
    """

    judge: Floats
    human: Floats
    weights: Floats
    worth: float = 1.0

    @property
    def table(self) -> Table:
        return Table.of(self.human, self.judge)


def from_labels(
    verdicts: Floats,
    weights: Floats | None,
    sample: LabelledSample,
    draws: int = DRAWS,
    independent: float | None = None,
) -> Corrected:
    """Method (a): all rows' verdicts (labelled ones among them) and a random labelled sample of them.

    With weights each share stands on its own effective n (Kish per verdict group).

    Args:
        independent: independent rows that all verdicts count like, where several are about one thing.
    """
    w = np.ones(len(verdicts)) if weights is None else weights
    n = effective_n(verdicts, w) if weights is not None else float(len(verdicts))
    n = n if independent is None else min(n, independent)
    q = float(w @ verdicts) / float(w.sum())
    groups = [sample.judge > 0.5, sample.judge <= 0.5]
    shares, sizes = [], []
    for group in groups:
        own = sample.weights[group]
        sizes.append(kish(own) * sample.worth)
        shares.append(float(own @ sample.human[group]) / float(own.sum()) if len(own) else 0.5)
    rng = np.random.default_rng(SEED + 2)
    draws_q = rng.beta(q * n + 0.5, (1 - q) * n + 0.5, draws)
    v1, v0 = (rng.beta(s * m + 0.5, (1 - s) * m + 0.5, draws) for s, m in zip(shares, sizes, strict=True))
    theta = draws_q * v1 + (1 - draws_q) * v0
    point = q * shares[0] + (1 - q) * shares[1]
    reason = f"{len(sample.human)} of tonight's own answers carry human labels"
    return Corrected("labels", float(point), quantiles(theta), reason, theta)


def humans_only(sample: LabelledSample, reason: str) -> Corrected:
    """The labelled sample alone, Wilson: where the judge cannot be used."""
    n = kish(sample.weights) * sample.worth
    share = float(sample.weights @ sample.human) / float(sample.weights.sum())
    rng = np.random.default_rng(SEED + 3)
    draws = rng.beta(share * n + 0.5, (1 - share) * n + 0.5, DRAWS)
    return Corrected("humans_only", share, wilson(share * n, n), f"people's labels alone: {reason}", draws)


@dataclass(frozen=True, slots=True)
class Powered:
    """PPI++ with the best weight: shown beside (a) as the check of its point."""

    value: float
    interval: Interval
    weight: float  # lambda


def ppi_plus(
    sample_human: Floats, sample_judge: Floats, others_judge: Floats, weight: float | None = None, z: float = Z95
) -> Powered:
    """Prediction-powered mean with power tuning, equal weights, Wald interval (arXiv 2311.01453, section 6).

    Args:
        sample_human: labels of the labelled rows.
        sample_judge: the judge's verdicts on them.
        others_judge: the judge's verdicts on the other rows.
        weight: lambda; None for the best one, cut to [0, 1].
    """
    m, n = len(sample_human), len(others_judge)
    lam = weight
    if lam is None:
        spread = float(np.var(np.concatenate([sample_judge, others_judge]), ddof=1)) if m + n > 1 else 0.0
        together = float(np.mean((sample_human - sample_human.mean()) * (sample_judge - sample_judge.mean())))
        lam = float(np.clip(together / ((1 + m / n) * spread), 0, 1)) if spread > 0 and n else 0.0
    rest = sample_human - lam * sample_judge
    value = float(rest.mean()) + (lam * float(others_judge.mean()) if n else 0.0)
    variance = float(np.var(rest)) / m + (lam * lam * float(np.var(others_judge)) / n if n else 0.0)
    half = z * float(np.sqrt(variance))
    return Powered(value, (value - half, value + half), lam)


# A judge's error rates on the answers of these weeks, from labels drawn evenly from passed and failed ones.
#
# Labels drawn within the verdict give P(good | passed) and P(good | failed); with the share that passed in those
# weeks they give sensitivity and specificity. They replace the calibration rows instead of joining them: pooled
# with rows of other answers the corrected rate covers .03 to .44 under a shift, alone .93 to .97 under every shift
# that was tried. A test for contradiction finds large shifts only (.23 to .50 for the small ones), so it guards
# only until there are enough labels.

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
