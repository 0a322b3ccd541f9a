"""A judge's error rates from an audit of these weeks' answers."""

import numpy as np
import pytest

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.correction import (
    AuditCounts,
    AuditedJudge,
    JudgeDraws,
    contradicted,
    contradiction_p,
    rogan_gladen,
)
from tests.support.decision_tables import reference

COUNTS = AuditCounts(passed=50, passed_good=48, failed=50, failed_good=22, week_passed=3000, week_n=4000)
REFERENCE = reference()


def test_reference_quantiles():
    found = AuditedJudge.from_counts(COUNTS, draws=200_000)
    levels = [0.025, 0.5, 0.975]
    assert np.quantile(found.se, levels) == pytest.approx([0.829, 0.866, 0.903], abs=0.002)
    assert np.quantile(found.sp, levels) == pytest.approx([0.593, 0.811, 0.957], abs=0.002)
    assert found.point == pytest.approx((0.866, 0.811), abs=0.02)
    assert found.source == "100 labels of the last 28 days' answers"


@pytest.mark.skipif(REFERENCE is None, reason="no tools/decision_reference.py")
@pytest.mark.parametrize("seed", range(8))
def test_the_draws_have_the_quantiles_of_the_independent_implementation(seed):
    rng = np.random.default_rng(seed)
    passed, failed, n = (int(x) for x in rng.integers(15, 120, 3))
    good, wrong, week = (int(rng.integers(0, k + 1)) for k in (passed, failed, n))
    found = AuditedJudge.from_counts(AuditCounts(passed, good, failed, wrong, week, n), draws=100_000)
    se, sp = REFERENCE.audit_draws(good, passed, wrong, failed, week, n, 100_000, seed=99)
    for ours, theirs in ((found.se, se), (found.sp, sp)):
        assert np.quantile(ours, [0.025, 0.5, 0.975]) == pytest.approx(
            np.quantile(theirs, [0.025, 0.5, 0.975]), abs=0.006
        )


def test_an_audited_judge_corrects_like_any_other():
    found = rogan_gladen(520, 700, AuditedJudge.from_counts(COUNTS))
    assert found.method == "audit"
    assert found.interval[0] < found.value < found.interval[1]
    assert "28 days" in found.reason
    weak = AuditCounts(50, 30, 50, 28, 3000, 4000)
    assert rogan_gladen(520, 700, AuditedJudge.from_counts(weak)).method == "none"


def test_the_audit_covers_where_the_calibration_rows_do_not_describe_the_answers():
    """Rows said (.98, .95); the judge of tonight's answers is (.95, .6). Truth .6."""
    rng = np.random.default_rng(4)
    cover = old_cover = 0
    for _ in range(200):
        tp, tn = rng.binomial(100, 0.98), rng.binomial(100, 0.95)
        rows = JudgeDraws.of(Table(tp, 100 - tn, 100 - tp, tn), 2000)
        good = rng.random(4000) < 0.8
        verdict = rng.random(4000) < np.where(good, 0.95, 0.4)
        counts = []
        for side in (verdict, ~verdict):
            drawn = rng.permutation(np.flatnonzero(side))[:50]
            counts += [50, int(good[drawn].sum())]
        audit = AuditedJudge.from_counts(AuditCounts(*counts, int(verdict.sum()), 4000), 2000)
        tonight = rng.binomial(700, 0.6 * 0.95 + 0.4 * 0.4)
        for name, judge in (("audit", audit), ("rows", rows)):
            interval = rogan_gladen(tonight, 700, judge).interval
            inside = interval is not None and interval[0] <= 0.6 <= interval[1]
            cover += inside and name == "audit"
            old_cover += inside and name == "rows"
    assert cover / 200 >= 0.91
    assert old_cover / 200 <= 0.1


def test_rows_that_contradict_the_audit_are_found_and_the_same_judge_is_not():
    rows = JudgeDraws.of(Table(98, 5, 2, 95))
    shifted = AuditedJudge.from_counts(AuditCounts(30, 24, 30, 3, 3000, 4000))
    assert contradicted(shifted, rows)
    same = AuditedJudge.from_counts(AuditCounts(30, 30, 30, 2, 3000, 4000))
    assert contradiction_p(same, rows) > 0.05
    assert contradiction_p(rows, rows) == 1.0


def test_false_contradictions_are_rare():
    rng = np.random.default_rng(6)
    false = 0
    for _ in range(300):
        tp, tn = rng.binomial(120, 0.95), rng.binomial(80, 0.6)
        rows = JudgeDraws.of(Table(tp, 80 - tn, 120 - tp, tn), 2000)
        q = 0.8 * 0.95 + 0.2 * 0.4
        passed_good = rng.binomial(30, 0.8 * 0.95 / q)
        failed_good = rng.binomial(30, 0.8 * 0.05 / (1 - q))
        week = rng.binomial(4000, q)
        false += contradicted(
            AuditedJudge.from_counts(AuditCounts(30, passed_good, 30, failed_good, week, 4000), 2000), rows
        )
    assert false / 300 <= 0.09


def test_answers_that_people_could_not_judge_spoil_the_sample():
    def counts(labels, unsure):
        return AuditCounts(labels // 2, 10, labels // 2, 10, 300, 400, unsure)

    assert not counts(90, 10).too_unsure
    assert counts(88, 12).too_unsure
    assert counts(60, 0).replaces
    assert not counts(58, 0).replaces
    assert not AuditCounts(60, 50, 9, 3, 300, 400).replaces  # too few failed ones
    assert counts(60, 3).drawn == 63
