"""Simulated judges for the grids: margins on their verdicts, audits under a shift, drift of a sentinel."""

from __future__ import annotations

import numpy as np

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.correction import AuditCounts, AuditedJudge, JudgeDraws, contradicted, rogan_gladen
from ragbench_dagster.stats.drift import rounds_moved
from ragbench_dagster.stats.judged_change import LabelledStratum, changed_pairs, people_change
from ragbench_dagster.stats.paired import tango

Judge = tuple[float, float]
DRAWS = 2_000
JUDGES: tuple[Judge, ...] = ((0.98, 0.95), (0.9, 0.75), (0.95, 0.6))


def rows_of(judge: Judge, labels: int, rng: np.random.Generator) -> JudgeDraws:
    """Calibration rows, 7 of 10 of good answers."""
    good, bad = round(0.7 * labels), round(0.3 * labels)
    tp, tn = rng.binomial(good, judge[0]), rng.binomial(bad, judge[1])
    return JudgeDraws.of(Table(int(tp), int(bad - tn), int(good - tp), int(tn)), DRAWS)


def verdicts(good: np.ndarray, judge: Judge, rng: np.random.Generator) -> np.ndarray:
    return rng.random(len(good)) < np.where(good, judge[0], 1 - judge[1])


def margins(
    judge: Judge, n: int, labels: int, runs: int, seed: int, loss: float = 0.03, changed: float = 0.3
) -> dict[str, float]:
    """A true loss of the whole margin: passed by people's verdicts, by the raw ones, and covered.

    Args:
        changed: share of answers that changed; the others keep their verdict.
    """
    rng = np.random.default_rng(seed)
    out = dict.fromkeys(("passes", "raw_passes", "covers"), 0.0)
    k = round(changed * n)
    for _ in range(runs):
        draws = rows_of(judge, labels, rng)
        old, new = rng.random(k) < 0.7, rng.random(k) < 0.7 - loss / changed
        first, second = verdicts(old, judge, rng), verdicts(new, judge, rng)
        gains, losses = int((second & ~first).sum()), int((first & ~second).sum())
        low, high = tango(gains, losses, n)
        found = people_change((gains - losses) / n, low, high, draws.youden_point, *draws.youden, loss)
        out["passes"] += found.passes
        out["raw_passes"] += low > -loss
        out["covers"] += found.interval is not None and found.interval[0] <= -loss <= found.interval[1]
    return {key: value / runs for key, value in out.items()}


def pairs(old_judge: Judge, new_judge: Judge, n: int, runs: int, seed: int, loss: float = 0.03) -> dict[str, float]:
    """Labels on changed pairs, where the judge errs otherwise on the new answers."""
    rng = np.random.default_rng(seed)
    out = dict.fromkeys(("passes", "covers"), 0.0)
    k, drawn = round(0.3 * n), (30, 30, 60)
    for _ in range(runs):
        old, new = rng.random(k) < 0.8, rng.random(k) < 0.8 - loss / 0.3
        first, second = verdicts(old, old_judge, rng), verdicts(new, new_judge, rng)
        strata = []
        for kind, wanted in zip((second & ~first, first & ~second, first == second), drawn, strict=True):
            at = rng.permutation(np.flatnonzero(kind))
            rows = at[:wanted]
            better, worse = int((new & ~old)[rows].sum()), int((old & ~new)[rows].sum())
            strata.append(LabelledStratum(len(at), better, worse, len(rows) - better - worse))
        found = changed_pairs(strata, n - k, DRAWS)
        out["covers"] += found.interval[0] <= -loss <= found.interval[1]
        out["passes"] += found.interval[0] > -loss
    return {key: value / runs for key, value in out.items()}


def audit(
    rows_say: Judge, truth: Judge, rate: float, labels: int, runs: int, seed: int, week_rate: float = 0.8, n: int = 700
) -> dict[str, float]:
    """Coverage by the old rows and by an audit alone, and how often the audit contradicts the rows."""
    rng, (se, sp) = np.random.default_rng(seed), truth
    out = dict.fromkeys(("rows", "audit", "usable", "contradicted"), 0.0)
    q = week_rate * se + (1 - week_rate) * (1 - sp)
    half = labels // 2
    for _ in range(runs):
        old = rows_of(rows_say, 200, rng)
        good = int(rng.binomial(half, week_rate * se / q)), int(rng.binomial(half, week_rate * (1 - se) / (1 - q)))
        counts = AuditCounts(half, good[0], half, good[1], int(rng.binomial(4_000, q)), 4_000)
        fresh = AuditedJudge.from_counts(counts, DRAWS)
        tonight = int(rng.binomial(n, rate * se + (1 - rate) * (1 - sp)))
        out["contradicted"] += contradicted(fresh, old)
        by_rows, by_audit = rogan_gladen(tonight, n, old).interval, rogan_gladen(tonight, n, fresh).interval
        out["rows"] += by_rows is not None and by_rows[0] <= rate <= by_rows[1]
        out["usable"] += by_audit is not None
        out["audit"] += by_audit is not None and by_audit[0] <= rate <= by_audit[1]
    found = {key: value / runs for key, value in out.items()}
    return {**found, "audit": out["audit"] / max(out["usable"], 1.0)}


def drift(
    m: int, noisy: float, runs: int, nights: int, seed: int, flips: float = 0.0, wander: float = 0.0
) -> dict[str, float]:
    """Alarms a night, and two nights running, of a judge whose `noisy` share of rows are coin tosses.

    Args:
        flips: share of verdicts that drift turns round.
        wander: standard deviation of a shift of all logits, anew each night; the reference is of five nights.
    """
    rng = np.random.default_rng(seed)
    alarms = running = 0
    for _ in range(runs):
        logit = np.where(rng.random(m) < 0.7, 6.0, -6.0)
        logit[rng.random(m) < noisy] = 0.0

        def night(logit: np.ndarray = logit, turned: float = 0.0) -> np.ndarray:
            chance = 1 / (1 + np.exp(-(logit + wander * rng.standard_normal())))
            return (rng.random(m) < chance) ^ (rng.random(m) < turned)

        passes = sum(night().astype(int) for _ in range(5))
        before = False
        for _ in range(nights):
            now = rounds_moved(passes, [5] * m, night(turned=flips)).alarm
            alarms, running = alarms + now, running + (now and before)
            before = now
    return {"alarms": alarms / runs / nights, "running": running / runs / max(nights - 1, 1)}
