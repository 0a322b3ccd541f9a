"""Which correction a judge metric gets tonight, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ragbench_dagster.calibration.label_audit import audit_counts
from ragbench_dagster.calibration.label_changes import labelled_changes
from ragbench_dagster.calibration.labelled_answers import CalibrationRow
from ragbench_dagster.metrics import is_judged
from ragbench_dagster.reporting.night_results import Mask, Night, Scores
from ragbench_dagster.stats.agreement_tables import DRAWS, SEED, Table
from ragbench_dagster.stats.clustering import clustered_estimate
from ragbench_dagster.stats.correction import (
    ENOUGH,
    MIN_YOUDEN,
    TESTED,
    AuditCounts,
    AuditedJudge,
    Corrected,
    JudgeDraws,
    LabelledSample,
    contradicted,
    from_labels,
    humans_only,
    ppi_plus,
    quantiles,
    rogan_gladen,
)
from ragbench_dagster.stats.judged_change import PairsChange
from ragbench_dagster.stats.margins import JudgeStrength
from ragbench_dagster.stats.request_share import judge_noise_n, request_share

LEAST_LABELS = 30  # labelled answers of tonight below which the calibration set is used


@dataclass(frozen=True)
class Corrector:
    """The correction of one system and judge metric.

    Args:
        judge: draws of the judge's errors on the calibration set, None where there is no table.
        labels: example id -> (human label, sampling weight) on tonight's own answers; empty where refused.
        note: why labels of tonight could not be used, where some were offered.
        refused: why the judge's errors must not be corrected for, by its audit.
        audit: what the audit of these weeks' answers holds; None without one.
        changes: night -> what people said of the answers that changed since, or why that does not count.
    """

    judge: JudgeDraws | None
    labels: dict[str, tuple[int, float]]
    note: str | None = None
    refused: str | None = None
    audit: AuditCounts | None = None
    changes: Mapping[str, PairsChange | str] = field(default_factory=dict)

    @cached_property
    def refusal(self) -> str | None:
        """Why the judge's errors cannot be corrected for; None where they can."""
        if self.refused:
            return self.refused
        return "no labelled calibration answers: label some" if self.judge is None else self.judge.refusal()

    @property
    def strength(self) -> JudgeStrength | None:
        """What the judge's errors are known from, for advice; None without rows of both classes."""
        if self.judge is None or self.judge.point is None:
            return None
        return JudgeStrength(*self.judge.point, self.judge.table.positives, self.judge.table.negatives)

    def correct(self, scores: Scores, at: Mask, per_request: bool = False) -> Corrected:
        """The corrected share of the rows `at` (counted: scored, or a failure of the system).

        Only what a judge said is corrected: that the system failed is known.

        Args:
            per_request: weigh each question with its traffic.
        """
        if not at.any():
            return Corrected("none", None, None, "no scored answer")
        lost = at & scores.failed
        if lost.any():
            return _with_failures(self.correct(scores, at & ~lost, per_request), scores, at, per_request)
        weights = scores.weight[at] if per_request else None
        sample = self.sample(scores, at, per_request)
        if sample is not None:
            weak = JudgeDraws.of(sample.table)
            if weak.youden[0] <= MIN_YOUDEN:
                return humans_only(sample, "the judge is too weak to add to them")
            counted = clustered_estimate(scores.value[at], scores.cluster[at], weights, scores.share)
            return from_labels(scores.value[at], weights, sample, independent=counted.n_effective)
        if self.judge is None or self.refusal:
            return Corrected("none", None, None, self.refusal or "")
        share, size = self._judged(scores, at) if weights is None else self._requests(scores, at)
        return rogan_gladen(share * size, size, self.judge, checked=True)

    @staticmethod
    def _judged(scores: Scores, at: Mask) -> tuple[float, float]:
        """The judged share per question, and how many independent questions it counts like."""
        found = clustered_estimate(scores.value[at], scores.cluster[at], None, scores.share)
        assert found.value is not None
        return found.value, found.n_effective

    def _requests(self, scores: Scores, at: Mask) -> tuple[float, float]:
        """The judged share per request, and its effective requests: the judge errs on a question once for all of them."""
        assert self.judge is not None
        values, weight, count = scores.per_request[at], scores.weight[at], scores.count[at]
        found = request_share(values, weight, count)
        if found is None:
            return float(values.mean()), float(at.sum())
        noise = judge_noise_n(count, found.value, *(self.judge.point or (1.0, 1.0)), weight)
        with_judge = request_share(values, weight, count, judge_noise=noise)
        assert with_judge is not None
        return with_judge.value, with_judge.n

    def sample(self, scores: Scores, at: Mask, per_request: bool = False) -> LabelledSample | None:
        """The labelled rows among `at`, where there are enough."""
        if len(self.labels) < LEAST_LABELS:
            return None
        found = [(i, *self.labels[scores.ids[i]]) for i in np.flatnonzero(at) if scores.ids[i] in self.labels]
        if len(found) < LEAST_LABELS:
            return None
        rows, human, weights = (np.array(column, dtype=float) for column in zip(*found, strict=True))
        own = rows.astype(int)
        together = clustered_estimate(human, scores.cluster[own], None, True)
        worth = min(1.0, together.n_effective / len(human))
        return LabelledSample(scores.value[own], human, weights * scores.weight[own] if per_request else weights, worth)

    def extras(self, corrected: Corrected) -> dict[str, Any]:
        found: dict[str, Any] = {"note": self.note} if self.note else {}
        if self.audit is not None:
            found["audit"] = {"labels": self.audit.labels, "unsure": self.audit.unsure}
        return found

    def ppi(self, scores: Scores, at: Mask) -> dict[str, Any] | None:
        """PPI++ as the check of the labels' point; None where labels were not used or carry weights."""
        given = at & ~scores.failed
        sample = self.sample(scores, given)
        if sample is None or len(set(sample.weights.tolist())) > 1:
            return None
        rows = zip(scores.ids[given], scores.value[given], strict=True)
        others = np.array([v for i, v in rows if i not in self.labels])
        found = ppi_plus(sample.human, sample.judge, others)
        share = float(given.sum() / at.sum())  # the others are failures, known to be 0
        low, high = found.interval
        return {"value": found.value * share, "low": low * share, "high": high * share, "weight": found.weight}


def _with_failures(found: Corrected, scores: Scores, at: Mask, per_request: bool) -> Corrected:
    """The corrected share of the answers given, times the share of questions that were answered at all.

    That share's draws are Jeffreys'. Where nothing was answered, nothing has to be corrected.
    """
    given = (at & ~scores.failed)[at]
    if found.draws is None and given.any():
        return found
    asked = request_share(given.astype(float), scores.weight[at], scores.count[at]) if per_request else None
    if asked is None:
        counted = clustered_estimate(given.astype(float), scores.cluster[at], None, True)
        share, size = float(given.mean()), counted.n_effective
    else:
        share, size = asked.value, asked.n
    rng = np.random.default_rng(SEED + 4)
    draws = rng.beta(share * size + 0.5, (1 - share) * size + 0.5, DRAWS if found.draws is None else len(found.draws))
    lost = f"{int((~given).sum()):,} failures of the system count as 0"
    if not given.any():
        return Corrected("calibration", 0.0, quantiles(draws), lost, draws)
    assert found.draws is not None
    draws = draws * found.draws
    value = None if found.value is None else found.value * share
    reason = f"{found.reason}; {lost}"
    return Corrected(found.method, value, quantiles(draws), reason, draws, found.youden)


def correctors(night: Night, rows: list[CalibrationRow]) -> dict[tuple[str, str], Corrector]:
    """The corrector of every system and judge metric of the night."""
    found: dict[tuple[str, str], Corrector] = {}
    draws: dict[str, JudgeDraws | None] = {}
    for system, metric in night.scores:
        if not is_judged(metric):
            continue
        if metric not in draws:
            table = night.judge_of(metric).get("table")
            draws[metric] = JudgeDraws.of(Table(**table)) if table and sum(table.values()) else None
        labels, note = _own_labels(night, system, metric, rows)
        audit = audit_counts(night.ws, night.day, rows, system, metric, night.identity(metric))
        judge, refused = audited(draws[metric], audit)
        changes = labelled_changes(night.ws, rows, night.day, system, metric, night.identity(metric))
        found[system, metric] = Corrector(judge, labels, note, refused, audit, changes)
    return found


def audited(judge: JudgeDraws | None, audit: AuditCounts | None) -> tuple[JudgeDraws | None, str | None]:
    """The judge's errors to correct for, by its calibration rows or by an audit, and why they must not be."""
    if audit is None or audit.labels < TESTED:
        return judge, None
    if audit.too_unsure:
        left = f"{audit.unsure} of {audit.drawn} answers drawn for the audit are not labelled"
        return judge, f"{left}: what is left is no random sample; label them"
    of_audit = AuditedJudge.from_counts(audit)
    if audit.replaces:
        return of_audit, None
    if judge is not None and contradicted(of_audit, judge):
        enough = f"{audit.labels} labels of the last 28 days contradict them; {ENOUGH} replace them"
        return judge, f"the calibration rows do not describe these answers: {enough} (ragbench label audit)"
    return judge, None


def _own_labels(
    night: Night, system: str, metric: str, rows: list[CalibrationRow]
) -> tuple[dict[str, tuple[int, float]], str | None]:
    """Labels drawn at random from this system's answers of this release, all of them still its answers.

    One changed answer refuses the whole sample: what is left would be the unchanged answers, not a random
    sample, and it would hide exactly the regression that is looked for.
    """
    drawn = [row for row in rows if row.sample is not None and row.sample.system == system and metric in row.human]
    own = [row for row in drawn if row.sample is not None and row.sample.release == night.manifest.release]
    if not own:
        note = "the labelled answers were drawn from another release" if drawn else None
        return {}, note
    table = night.responses(system, ["example_id", "answer_hash"])
    hashes = dict(zip(table["example_id"].to_pylist(), table["answer_hash"].to_pylist(), strict=True))
    samples = [(row.sample, row.human[metric]) for row in own if row.sample is not None]
    changed = sum(hashes.get(s.example_id) != s.answer_hash for s, _ in samples)
    if changed:
        return {}, f"{changed} of {len(samples)} labelled answers have changed since they were drawn"
    return {s.example_id: (label, s.weight) for s, label in samples}, None
