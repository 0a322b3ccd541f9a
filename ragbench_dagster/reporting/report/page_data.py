"""The report as plain frozen data: what the templates read, and nothing else.

Text under judgement is cleaned here once (`text.shown`) and escaped by the templates. Names of systems, metrics and
categories are values, never keys of a chart or of HTML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from ragbench_dagster.results import GateRow


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval; None where it is unknown."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None  # of times: an infinite one is known to be more than this

    @classmethod
    def of(cls, row: dict[str, Any] | float | None) -> Figure:
        """From a row with value, low and high, or a bare number."""
        if not isinstance(row, dict):
            return cls(row)
        over = row.get("over") or ()
        value, low, high = (math.inf if name in over else row.get(name) for name in ("value", "low", "high"))
        return cls(value, low, high, row.get("over_ms"))


@dataclass(frozen=True)
class Standing:
    """One system's figures on one metric."""

    system: str
    metric: str
    raw: Figure
    n: int
    coverage: float | None
    nothing: str  # why there is no value, "" where there is one
    statuses: list[tuple[str, int]]  # other than scored
    judged: bool
    corrected: Figure | None
    correction: str  # how it was corrected, or why not
    per_request: Figure
    per_request_corrected: Figure | None
    ppi: Figure | None  # PPI++, the check of a correction by tonight's labels
    mean_score: Figure | None  # p50, p10 and p90 of the evaluator's own scale, with the mean in `mean`
    mean: float | None
    delta: Figure | None
    delta_text: str  # against what, and over how many shared questions
    note: str
    floor: float | None
    ceiling: float | None
    verdict: str  # the gate's word on the overall tests: fail, inconclusive, pass or ""
    failing: int  # cases below full marks
    hint: str
    unit_range: bool  # the value lies in 0..1
    clusters: int | None = None  # things that the questions are about
    independent: float | None = None  # independent questions that n counts like


@dataclass(frozen=True)
class Card:
    """A metric with the standing of every system."""

    metric: str
    title: str
    weak: bool  # graded by the embedded judge
    standings: list[Standing]
    verdict: str


@dataclass(frozen=True)
class Chart:
    """A drawing with the same content as text and as a table."""

    id: str
    title: str
    svg: Markup
    says: str  # the text alternative
    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Slice:
    """A part of the questions where a system does worse, or better, than overall."""

    system: str
    metric: str
    dimension: str
    part: str
    figure: Figure
    overall: float | None
    n: int
    harm: float | None  # questions lost against the overall rate: (overall - value) x n
    delta: Figure | None
    verdict: str


@dataclass(frozen=True)
class JudgeRow:
    """What calibration found on the judge of one metric."""

    metric: str
    judge: str
    weak: bool
    template: str
    n: int
    table: dict[str, int]
    figures: list[tuple[str, Figure]]  # accuracy, balanced accuracy, sensitivity, specificity, kappa
    reason: str  # why a figure is missing
    drift: str
    drift_text: str
    probes: str
    closed: list[str]
    usable: bool | None


@dataclass(frozen=True)
class Latency:
    """A system's own time in milliseconds, and what its judging cost."""

    system: str
    n: int
    p50: Figure
    p95: Figure
    p99: Figure
    mean: float | None
    first_token_p50: float | None
    answers: list[tuple[str, int]]
    judge_usd: float | None
    per_question_usd: float | None
    chart: Chart | None


@dataclass(frozen=True)
class Split:
    """Where a change since the baseline comes from; the parts add up to the total."""

    system: str
    metric: str
    baseline: str
    n_shared: int
    parts: list[tuple[str, Figure]]  # total, system, judge, dataset, unscored


@dataclass(frozen=True)
class Mark:
    """One verdict on one answer."""

    metric: str
    status: str
    score: float | None
    value: float | None
    failing: bool
    feedback: str


@dataclass(frozen=True)
class Passage:
    """A retrieved passage; `text` is empty where only its id is known."""

    id: str
    text: str
    expected: bool


@dataclass(frozen=True)
class Case:
    """One system's answer to one question, with every verdict on it."""

    anchor: str
    example_id: str
    system: str
    category: str
    query: str
    history: list[str]
    response: str
    status: str
    error: str
    expected_answer: str
    expected_ids: list[str]
    passages: list[Passage]
    more_passages: int
    marks: list[Mark]
    weight: float
    requests: int
    harm: float
    in_gate: bool

    @property
    def lowest(self) -> float:
        """The lowest value of its verdicts; without one, above all that have one."""
        return min((m.value for m in self.marks if m.value is not None), default=2.0)


@dataclass(frozen=True)
class Cases:
    """The worst questions, and what was left out."""

    rows: list[Case]
    failing: int  # answers with any failing verdict
    verdicts: int = 0  # failing verdicts on them
    systems: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """A plain table; numbers are formatted by the template."""

    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Gate:
    """The night's verdict."""

    verdict: str  # pass, fail, inconclusive or none
    says: str  # one sentence for a reader in a hurry
    reasons: list[str]
    notes: list[str]
    tests: list[GateRow]


@dataclass(frozen=True)
class NightView:
    """Everything on the page of a night."""

    day: str
    workspace: str
    gate: Gate
    release: str
    examples: int | None
    sample: int | None
    judge: str
    weak_judge: bool
    systems: list[str]
    warnings: list[str]
    production: list[tuple[str, str, str]]  # system, metric, words
    cards: list[Card]
    trends: list[Chart]
    trend_note: str
    slices: list[Slice]
    slices_left: int
    judges: list[JudgeRow]
    judge_note: str
    latencies: list[Latency]
    splits: list[Split]
    leaderboard: list[dict[str, Any]]
    pairwise: Table
    worth: Table
    cases: Cases
    conditions: list[tuple[str, str]]
    command: str
    tables: dict[str, Table] = field(default_factory=dict)  # of plain sections
