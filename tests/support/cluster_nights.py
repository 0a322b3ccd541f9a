"""Simulated questions that come in clusters, for the grids of clustered figures. Seeds are given.

A cluster's questions succeed with a chance of their own, drawn from a beta distribution with the wanted
intra-cluster correlation; at 1 they all share one fate.
"""

from __future__ import annotations

import numpy as np

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.clustering import clustered_change, clustered_estimate, floor_p
from ragbench_dagster.stats.correction import JudgeDraws, rogan_gladen

# questions a passage on feedbackqa: 2,871 on 952, most alone, a few of dozens
REAL = (1,) * 42 + (2,) * 22 + (3,) * 13 + (4,) * 8 + (5,) * 5 + (6,) * 3 + (8,) * 3 + (12,) * 2 + (18, 30)
SIZES = {"single": (1,), "twos": (2,), "fives": (5,), "1 to 20": tuple(range(1, 21)), "real": REAL}


def clusters_of(kind: str, k: int, rng: np.random.Generator) -> np.ndarray:
    return np.repeat(np.arange(k), rng.choice(SIZES[kind], k))


def fates(clusters: np.ndarray, rate: float, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Chance of each question to succeed."""
    k = int(clusters.max()) + 1
    if correlation <= 0:
        return np.full(len(clusters), rate)
    if correlation >= 1:
        return (rng.random(k) < rate)[clusters].astype(float)
    strength = (1 - correlation) / correlation
    return rng.beta(rate * strength, (1 - rate) * strength, k)[clusters]


def share(
    kind: str, k: int, rate: float, correlation: float, runs: int, seed: int, weighted: bool = False
) -> dict[str, float]:
    """Coverage of a share, how often its low end exceeds the truth, and how often a floor at the truth fails."""
    rng = np.random.default_rng(seed)
    out = dict.fromkeys(("covers", "above", "fails"), 0.0)
    for _ in range(runs):
        cl = clusters_of(kind, k, rng)
        y = (rng.random(len(cl)) < fates(cl, rate, correlation, rng)).astype(float)
        w = rng.lognormal(0, 1, len(cl)) if weighted else None
        low, high = clustered_estimate(y, cl, w, True).interval
        out["covers"] += low <= rate <= high
        out["above"] += low > rate
        out["fails"] += not weighted and floor_p(y, rate, cl) <= 0.05
    return {key: value / runs for key, value in out.items()}


def graded(kind: str, k: int, correlation: float, runs: int, seed: int) -> dict[str, float]:
    """Coverage of a graded mean of skewed scores, and how often a floor at the truth fails."""
    rng = np.random.default_rng(seed)
    out = dict.fromkeys(("covers", "above", "fails"), 0.0)
    truth = 0.8
    for _ in range(runs):
        cl = clusters_of(kind, k, rng)
        y = np.clip(rng.beta(4, 1, len(cl)), 0, 1) if correlation <= 0 else None
        if y is None:
            mean = fates(cl, truth, correlation, rng)
            y = rng.beta(6 * mean + 1e-6, 6 * (1 - mean) + 1e-6)
        low, high = clustered_estimate(y, cl, None, False).interval
        out["covers"] += low <= truth <= high
        out["above"] += low > truth
        out["fails"] += floor_p(y, truth, cl, binary=False) <= 0.05
    return {key: value / runs for key, value in out.items()}


def changes(
    kind: str, k: int, psi: float, loss: float, correlation: float, runs: int, seed: int, key: str = "true"
) -> dict[str, float]:
    """Coverage of a change, false pass of a margin that is lost in full, and "no loss" rejected at .05.

    Args:
        psi: share of pairs that differ.
        loss: true loss.
        correlation: 1 where a cluster's pairs all change alike.
        key: the cluster key that is used; "split": a third of the questions leave their cluster, "joined": besides,
            each tenth cluster is joined to another; "none".
    """
    rng = np.random.default_rng(seed)
    out = dict.fromkeys(("covers", "passes", "fails"), 0.0)
    chances = ((psi - loss) / 2, (psi + loss) / 2)
    for _ in range(runs):
        cl = clusters_of(kind, k, rng)
        d = correlated_changes(cl, chances, correlation, rng)
        base = np.where(d < 0, 1.0, np.where(d > 0, 0.0, 1.0))
        found = clustered_change(base, base + d, used_key(cl, key, rng))
        low, high = found.interval
        out["covers"] += low <= -loss <= high
        out["passes"] += low > -loss
        out["fails"] += found.p_loss <= 0.05
    return {key: value / runs for key, value in out.items()}


def correlated_changes(
    clusters: np.ndarray, chances: tuple[float, float], correlation: float, rng: np.random.Generator
) -> np.ndarray:
    """-1, 0 or 1 for each pair; a pair takes its cluster's change with chance sqrt(correlation), else its own."""
    gain, loss = chances

    def draw(size: int) -> np.ndarray:
        u = rng.random(size)
        return np.where(u < gain, 1.0, np.where(u < gain + loss, -1.0, 0.0))

    together = draw(int(clusters.max()) + 1)[clusters]
    return np.where(rng.random(len(clusters)) < np.sqrt(correlation), together, draw(len(clusters)))


def used_key(clusters: np.ndarray, key: str, rng: np.random.Generator) -> np.ndarray | None:
    """What a cluster key makes of the true clusters."""
    if key == "none":
        return None
    used = clusters.copy()
    if key in ("split", "joined"):
        leaves = np.flatnonzero(rng.random(len(used)) < 1 / 3)
        used[leaves] = used.max() + 1 + np.arange(len(leaves))
    if key == "joined":
        ids = np.arange(used.max() + 1)
        moved = rng.random(len(ids)) < 0.1
        ids[moved] = rng.permutation(ids)[moved]
        used = ids[used]
    return used


def corrected(
    kind: str, k: int, rate: float, correlation: float, judge: tuple[float, float], runs: int, seed: int,
    labels: int = 200, audited: bool = False,
) -> dict[str, float]:  # fmt: skip
    """Corrected share on the n of C: coverage, low end above the truth, and a floor at the truth failed at .05."""
    rng, (se, sp) = np.random.default_rng(seed), judge
    good, bad = round(0.7 * labels), round(0.3 * labels)
    out = dict.fromkeys(("covers", "above", "fails", "usable"), 0.0)
    for _ in range(runs):
        cl = clusters_of(kind, k, rng)
        truth = rng.random(len(cl)) < fates(cl, rate, correlation, rng)
        verdict = (rng.random(len(cl)) < np.where(truth, se, 1 - sp)).astype(float)
        draws = _audited(rate, judge, rng) if audited else _rows(good, bad, judge, rng)
        found = clustered_estimate(verdict, cl, None, True)
        result = rogan_gladen(found.value * found.n_effective, found.n_effective, draws)
        if result.interval is None:
            continue
        out["usable"] += 1
        low, high = result.interval
        out["covers"] += low <= rate <= high
        out["above"] += low > rate
        out["fails"] += (1 + (result.draws >= rate).sum()) / (1 + len(result.draws)) <= 0.05
    usable = max(out["usable"], 1.0)
    return {key: value / (runs if key == "usable" else usable) for key, value in out.items()}


def _rows(good: int, bad: int, judge: tuple[float, float], rng: np.random.Generator) -> JudgeDraws:
    tp, tn = rng.binomial(good, judge[0]), rng.binomial(bad, judge[1])
    return JudgeDraws.of(Table(int(tp), int(bad - tn), int(good - tp), int(tn)), 2_000)


def _audited(rate: float, judge: tuple[float, float], rng: np.random.Generator) -> JudgeDraws:
    from ragbench_dagster.stats.correction import AuditCounts, AuditedJudge

    se, sp = judge
    q = rate * se + (1 - rate) * (1 - sp)
    passed, failed = rng.binomial(50, rate * se / q), rng.binomial(50, rate * (1 - se) / (1 - q))
    return AuditedJudge.from_counts(
        AuditCounts(50, int(passed), 50, int(failed), int(rng.binomial(4_000, q)), 4_000), 2_000
    )


def graded_changes(kind: str, k: int, psi: float, correlation: float, runs: int, seed: int) -> dict[str, float]:
    """The same of graded scores that change by a half on average, without a loss."""
    rng = np.random.default_rng(seed)
    out = dict.fromkeys(("covers", "above", "fails"), 0.0)
    for _ in range(runs):
        cl = clusters_of(kind, k, rng)
        d = correlated_changes(cl, (psi / 2, psi / 2), correlation, rng) * rng.uniform(0.2, 0.8, len(cl))
        found = clustered_change(np.full(len(cl), 0.5), 0.5 + d, cl, binary=False)
        low, high = found.interval
        out["covers"] += low <= 0 <= high
        out["above"] += low > 0
        out["fails"] += found.p_loss <= 0.025
    return {key: value / runs for key, value in out.items()}
