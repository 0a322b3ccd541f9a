"""What a night stores as JSON: one Struct a file. No figure is computed here.

    store/nights/DAY/manifest.json      Manifest
    store/nights/DAY/gate.json          GateDecision

A key that is missing in a file of a former version has its default; a key that no version knows is refused, since
writing the file again would lose it. The Structs of one stage alone stand beside its code and begin with `Stored`.
Written and read by `store.write_struct` and `store.read_struct`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

T = TypeVar("T")

Number: TypeAlias = int | float | None  # null: unknown, which is not zero
Decision: TypeAlias = Literal["pass", "fail", "inconclusive"]
Plain: TypeAlias = dict[str, Any]  # what came from ragbench.yaml, as it was dumped


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object of the store. A field that is UNSET is left out of the file."""


def if_set(value: T | UnsetType) -> T | None:
    """`value`, None where its key is not in the file."""
    return None if value is UNSET else value


class Result(Stored, frozen=True):
    """A file of a night's folder, one a night."""

    FILE: ClassVar[str]  # its name


class Manifest(Result, frozen=True, kw_only=True):
    """manifest.json: the conditions of a night.

    Attributes:
        day: the night, YYYY-MM-DD.
        release: id of the release whose questions were asked.
        examples: questions of the night.
        window: first and last day of the requests that the release holds; null without one.
        sample: N of `run --sample N`; null: all questions.
        systems: system -> version of its answers.
        fixed: systems that give a question the same answer at every ask.
        answered_first: system -> share of the questions answered when first asked.
        judge: the section `judge` of the settings.
        judge_label: how the judge is named wherever it is shown.
        metrics: in the order of the settings.
        templates: metric -> hash of the evaluator's version and template.
        settings: all of the settings; null in manifests that do not hold them.
        settings_hash: of the settings.
        code_version: of this package.
        warnings: one line each.
    """

    FILE: ClassVar[str] = "manifest.json"

    day: str = ""
    release: str
    examples: int | None = None
    window: tuple[str | None, str | None] = (None, None)
    sample: int | None = None
    systems: dict[str, str] = {}
    fixed: list[str] = []
    answered_first: dict[str, Number] = {}
    judge: Plain = {}
    judge_label: str | None = None
    metrics: list[str] = []
    templates: dict[str, str] = {}
    settings: Plain | None = None
    settings_hash: str | None = None
    code_version: str | None = None
    warnings: list[str] = []

    @property
    def judge_model(self) -> str | None:
        """The judge's model, its provider where it has none."""
        return self.judge.get("model") or self.judge.get("provider")


class GateRow(Stored, frozen=True, kw_only=True):
    """One test of the gate. Figures that belong to a test that was not run are null; `gate.tests.GateTest` says more.

    Attributes:
        part: "overall", or a category.
        kind: floor, ceiling, margin, coverage, latency or cost.
        limit: floor, ceiling, or minus the margin.
        per: question or request.
        basis: raw, labels, calibration, audit, pairs or humans_only.
        p: one-sided.
        reason: why it was not run.
    """

    system: str
    metric: str
    part: str
    kind: str
    limit: Number
    per: str = "question"
    baseline: str | None = None
    primary: bool = False
    severity: str = "fail"
    value: Number = None
    low: Number = None
    high: Number = None
    before: Number = None
    after: Number = None
    raw: Number = None
    seen: Number = None
    n: int = 0
    clusters: int | None = None
    independent: Number = None
    releases: int = 0
    since_accepted: str | None = None
    basis: str = "raw"
    p: Number = None
    p_adjusted: Number = None
    at_limit: bool = False
    clears: bool | None = None
    detectable: Number = None
    needed: int | None = None
    over_ms: Number = None
    reason: str | None = None
    verdict: Decision = "inconclusive"


class ClosedGuard(Stored, frozen=True):
    """What keeps the gate from passing. `system` and `metric` are null where it holds for all of them."""

    reason: str
    kind: str
    system: str | None = None
    metric: str | None = None


class BrokenHead(Stored, frozen=True):
    """The most asked questions of one system and metric that were right in the baseline and are wrong tonight."""

    system: str
    metric: str
    baseline: str
    looked_at: int  # the most asked questions
    examples: list[str]  # ids, the most asked first
    shares: list[float]  # of requests
    net: float  # share of requests lost among the most asked, those that turned right counted against it

    @property
    def share(self) -> float:
        """Share of requests that ask one of them."""
        return sum(self.shares)


class GateDecision(Result, frozen=True, kw_only=True):
    """gate.json: the gate's word on a night.

    Attributes:
        sample: N of `run --sample N`.
        exit_code: 0 pass, 1 fail, 3 inconclusive.
        reasons: of the verdict, the gravest first.
        notes: what bars nothing.
        tests: how many were run over which the chance of a false fail is kept.
        level: chance that an unchanged system fails.
        accepted: the accepted night that margins were measured against.
    """

    FILE: ClassVar[str] = "gate.json"

    day: str = ""
    release: str | None = None
    sample: int | None = None
    verdict: Decision
    exit_code: int | None = None
    reasons: list[str] = []
    notes: list[str] = []
    closed: list[ClosedGuard] = []
    tests: int = 0
    rows: list[GateRow] = []
    level: Number = None
    broken: list[BrokenHead] = []
    accepted: str | None = None
