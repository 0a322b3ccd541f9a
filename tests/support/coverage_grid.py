"""Simulated nights for the coverage grids: weights, judges, labels. Seeds are fixed.

Each function returns the share of runs whose interval holds the truth. The grids are those on which the
methods were chosen; the promise is .93 in every cell with a Kish n of 30 or more.
"""

from __future__ import annotations

import numpy as np

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.correction import JudgeDraws, LabelledSample, from_labels, rogan_gladen
from ragbench_dagster.stats.intervals import effective_n, estimate, kish

PROMISE = 0.93
RATES = (0.5, 0.8, 0.97)
SIZES = (50, 200, 2000)
JUDGES = ((0.95, 0.6), (0.8, 0.8))
WEIGHTS = ("equal", "one_five", "one_twenty", "log_normal", "pareto")
DRAWS = 4_000


def least(runs: int) -> float:
    """The promise less two Monte Carlo standard errors."""
    return PROMISE - 2 * float(np.sqrt(PROMISE * (1 - PROMISE) / runs))


def weights_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "equal":
        return np.ones(n)
    if kind == "one_five":
        return rng.choice([1.0, 5.0], n)
    if kind == "one_twenty":
        return rng.choice([1.0, 20.0], n)
    if kind == "log_normal":
        return rng.lognormal(0, 1, n)
    return np.minimum(rng.pareto(1.2, n) + 1, 100.0)


def truth(kind: str, rate: float, moving: bool, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Pass probability by weight (as a function sampled on a large population) and the weighted truth."""
    w = weights_of(kind, 200_000, np.random.default_rng(99))
    p = chances(w, rate, moving)
    return w, float(w @ p) / float(w.sum())


def chances(w: np.ndarray, rate: float, moving: bool) -> np.ndarray:
    """Pass chance of each row: `rate`, or rising with the rank of its weight."""
    if not moving:
        return np.full(len(w), rate)
    logit = np.log(rate / (1 - rate)) + 0.5 * (np.log(w) - np.log(w).mean())
    return 1 / (1 + np.exp(-logit))


def raw_share(kind: str, rate: float, n: int, moving: bool, runs: int, seed: int) -> tuple[float, float]:
    """Coverage of the weighted share's interval, and the median Kish n."""
    rng = np.random.default_rng(seed)
    _, target = truth(kind, rate, moving, rng)
    hits, sizes = 0, []
    for _ in range(runs):
        w = weights_of(kind, n, rng)
        y = (rng.random(n) < chances(w, rate, moving)).astype(float)
        found = estimate(y, w, binary=True)
        hits += found.interval is not None and found.low <= target <= found.high
        sizes.append(kish(w))
    return hits / runs, float(np.median(sizes))


def judged(y: np.ndarray, judge: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
    """The judge's verdicts on rows whose human label is `y`."""
    se, sp = judge
    return np.where(y > 0.5, rng.random(len(y)) < se, rng.random(len(y)) > sp).astype(float)


def labelled_answers(
    kind: str, rate: float, n: int, judge: tuple[float, float], runs: int, seed: int, labels: int = 200
) -> tuple[float, float]:
    """Coverage of the correction from `labels` on tonight's own answers (method a), and its mean width."""
    rng = np.random.default_rng(seed)
    hits, width = 0, 0.0
    for _ in range(runs):
        w = weights_of(kind, n + labels, rng)
        y = (rng.random(n + labels) < rate).astype(float)
        verdicts = judged(y, judge, rng)
        sample = LabelledSample(verdicts[:labels], y[:labels], w[:labels])
        found = from_labels(verdicts, None if kind == "equal" else w, sample, DRAWS)
        hits += found.interval[0] <= rate <= found.interval[1]
        width += found.interval[1] - found.interval[0]
    return hits / runs, width / runs


def calibration_set(
    kind: str, rate: float, n: int, judge: tuple[float, float], runs: int, seed: int, classes=(100, 100)
) -> tuple[float, float, float]:
    """Coverage of the correction from a calibration set (method b), its mean width, the share refused."""
    rng = np.random.default_rng(seed)
    hits = refused = 0
    width = 0.0
    for _ in range(runs):
        good, bad = rng.binomial(classes[0], judge[0]), rng.binomial(classes[1], judge[1])
        draws = JudgeDraws.of(Table(tp=good, fn=classes[0] - good, tn=bad, fp=classes[1] - bad), DRAWS)
        w = weights_of(kind, n, rng)
        verdicts = judged((rng.random(n) < rate).astype(float), judge, rng)
        size = float(n) if kind == "equal" else effective_n(verdicts, w)
        found = rogan_gladen(float(w @ verdicts) / float(w.sum()) * size, size, draws)
        if found.interval is None:
            refused += 1
            continue
        hits += found.interval[0] <= rate <= found.interval[1]
        width += found.interval[1] - found.interval[0]
    kept = runs - refused
    return hits / kept, width / kept, refused / runs
