"""The 2x2 table of a judge against people, and what it says.

Cohen (1960) kappa, its interval by Dirichlet(counts + 1/2) draws on the four cells: the multinomial
bootstrap draws [1, 1] where no disagreement was seen, and Fleiss's standard error is 0 there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from scipy import special

from ragbench_dagster.stats.intervals import Z95, Floats, Interval, wilson

SEED = 20_260_101
DRAWS = 20_000
KAPPA_MIN = 5  # rows of the smaller human class below which kappa says nothing
KAPPA_WARN = 10


@dataclass(frozen=True, slots=True)
class Table:
    """Counts of (human, judge): tp = both 1, fp = judge alone, fn = human alone, tn = both 0."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0

    @classmethod
    def of(cls, human: Floats, judge: Floats) -> Table:
        h, j = np.asarray(human) > 0.5, np.asarray(judge) > 0.5
        return cls(int((h & j).sum()), int((~h & j).sum()), int((h & ~j).sum()), int((~h & ~j).sum()))

    @property
    def n(self) -> int:
        return self.tp + self.fp + self.fn + self.tn

    @property
    def positives(self) -> int:
        return self.tp + self.fn

    @property
    def negatives(self) -> int:
        return self.fp + self.tn

    @property
    def smaller_class(self) -> int:
        return min(self.positives, self.negatives)

    def as_dict(self) -> dict[str, int]:
        return {"tp": self.tp, "fp": self.fp, "fn": self.fn, "tn": self.tn}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def accuracy(t: Table) -> float | None:
    return _share(t.tp + t.tn, t.n)


def sensitivity(t: Table) -> float | None:
    """Share of humanly good rows that the judge passes; None without such rows."""
    return _share(t.tp, t.positives)


def specificity(t: Table) -> float | None:
    """Share of humanly bad rows that the judge fails; None without such rows."""
    return _share(t.tn, t.negatives)


def balanced_accuracy(t: Table) -> float | None:
    se, sp = sensitivity(t), specificity(t)
    return None if se is None or sp is None else (se + sp) / 2


def kappa_of(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Cohen's kappa of each table; 0/0 (everybody says the same) is NaN here and None outside."""
    n = tp + fp + fn + tn
    agree = (tp + tn) / n
    chance = ((tp + fn) * (tp + fp) + (fp + tn) * (fn + tn)) / n**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(1 - chance > 1e-12, (agree - chance) / (1 - chance), np.nan)


def kappa(t: Table) -> float | None:
    """Cohen's kappa, or None where it is undefined."""
    if t.n == 0:
        return None
    value = float(kappa_of(*(np.array(float(c)) for c in (t.tp, t.fp, t.fn, t.tn))))
    return value if np.isfinite(value) else None


def kappa_interval(counts: tuple[float, float, float, float], draws: int = DRAWS) -> Interval:
    """2.5 % and 97.5 % quantiles of kappa over Dirichlet(counts + 1/2) draws (seeded)."""
    rng = np.random.default_rng(SEED)
    cells = rng.dirichlet(np.asarray(counts, dtype=float) + 0.5, draws)
    values = kappa_of(*cells.T)
    low, high = np.quantile(values[np.isfinite(values)], [0.025, 0.975])
    return float(low), float(high)


def kappa_reason(t: Table) -> str | None:
    """Why kappa cannot be relied on, with the remedy; None where it can."""
    if t.n == 0:
        return "no row has both a human label and a verdict; label some answers"
    if t.positives == 0 or t.negatives == 0:
        which = "bad" if t.negatives == 0 else "good"
        return f"people labelled no {which} answer, so nothing shows whether the judge can tell; label some"
    if t.smaller_class < KAPPA_MIN:
        which = "bad" if t.negatives < t.positives else "good"
        return f"only {t.smaller_class} answers that people call {which}, at least {KAPPA_MIN} are needed; label more"
    return None


def balanced_interval(t: Table, draws: int = DRAWS) -> Interval | None:
    """Interval of the balanced accuracy from Jeffreys draws of sensitivity and specificity."""
    if t.positives == 0 or t.negatives == 0:
        return None
    rng = np.random.default_rng(SEED)
    se = rng.beta(t.tp + 0.5, t.fn + 0.5, draws)
    sp = rng.beta(t.tn + 0.5, t.fp + 0.5, draws)
    low, high = np.quantile((se + sp) / 2, [0.025, 0.975])
    return float(low), float(high)


def describe(t: Table) -> dict[str, object]:
    """All figures of a table with their intervals, ready for JSON. Undefined figures are None."""
    reason = kappa_reason(t)
    return {
        "n": t.n,
        "table": t.as_dict(),
        "accuracy": accuracy(t),
        "balanced_accuracy": balanced_accuracy(t),
        "sensitivity": sensitivity(t),
        "specificity": specificity(t),
        "kappa": kappa(t),
        "reason": reason,
        "ci": {
            "accuracy": wilson(t.tp + t.tn, t.n),
            "balanced_accuracy": balanced_interval(t),
            "sensitivity": wilson(t.tp, t.positives),
            "specificity": wilson(t.tn, t.negatives),
            "kappa": None if reason else kappa_interval((t.tp, t.fp, t.fn, t.tn)),
        },
    }


# Graded scores against people: Spearman, weighted kappa, area under the ROC curve, fitted thresholds.
#
# Area with DeLong's variance (DeLong, DeLong, Clarke-Pearson 1988, Biometrics 44:837) on the logit scale;
# Spearman with Fisher's z and the Bonett-Wright variance (2000, Psychometrika 65:23); Cohen (1968) weighted
# kappa with squared weights. The threshold is cross-fitted: each row is judged by a threshold that never saw it.

Figure = tuple[float | None, Interval | None]


def ranks(values: Floats) -> Floats:
    """Ranks from 1, ties at their middle."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle = (last - counts + 1 + last) / 2
    return np.asarray(middle[inverse], dtype=float)


def spearman(one: Floats, other: Floats) -> Figure:
    """Rank correlation; None where one side is constant or there are fewer than 3 rows."""
    n = len(one)
    if n < 3:
        return None, None
    a, b = ranks(one), ranks(other)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    if size <= 0:
        return None, None
    value = float(np.clip(a @ b / size, -1, 1))
    if n < 5 or abs(value) >= 1:
        return value, None
    half = Z95 * float(np.sqrt((1 + value * value / 2) / (n - 3)))
    centre = float(np.arctanh(value))
    return value, (float(np.tanh(centre - half)), float(np.tanh(centre + half)))


def roc_auc(human: Floats, scores: Floats) -> Figure:
    """Chance that a good answer scores above a bad one, ties half; None without both classes."""
    good, bad = scores[human > 0.5], scores[human <= 0.5]
    m, n = len(good), len(bad)
    if m == 0 or n == 0:
        return None, None
    everything = ranks(np.concatenate([good, bad]))
    place_good = (everything[:m] - ranks(good)) / n
    place_bad = 1 - (everything[m:] - ranks(bad)) / m
    value = float(place_good.mean())
    if m < 2 or n < 2:
        return value, None
    variance = float(place_good.var(ddof=1) / m + place_bad.var(ddof=1) / n)
    if not 0 < value < 1 or variance <= 0:
        return value, None
    half = Z95 * float(np.sqrt(variance)) / (value * (1 - value))
    centre = float(special.logit(value))
    return value, (float(special.expit(centre - half)), float(special.expit(centre + half)))


def describe_ranks(human: Floats, scores: Floats) -> dict[str, Figure]:
    return {"roc_auc": roc_auc(human, scores), "spearman": spearman(human, scores)}


def weighted_kappa(one: Floats, other: Floats) -> float | None:
    """Cohen's kappa with squared weights on two graded ratings of one scale; None where undefined."""
    if len(one) == 0:
        return None
    seen = float(((one - other) ** 2).mean())
    chance = float(one.var() + other.var() + (one.mean() - other.mean()) ** 2)
    return None if chance <= 1e-12 else 1 - seen / chance


def weighted_kappa_interval(one: Floats, other: Floats, draws: int = 4_000) -> Interval | None:
    """Interval of the weighted kappa by Bayesian bootstrap (Dirichlet row weights with 1/2 a row pair seen)."""
    pairs, counts = np.unique(np.column_stack([one, other]), axis=0, return_counts=True)
    grades = np.unique(pairs)
    cells = [(a, b) for a in grades for b in grades]
    known = {(a, b): c for (a, b), c in zip(pairs.tolist(), counts.tolist(), strict=True)}
    prior = 2.0 / len(cells)  # two rows in all, as 1/2 on each of four cells
    alpha = np.array([known.get((float(a), float(b)), 0) + prior for a, b in cells])
    if len(grades) < 2:
        return None
    weights = np.random.default_rng(SEED).dirichlet(alpha, draws)
    a, b = np.array(cells, dtype=float).T
    mean_a, mean_b = weights @ a, weights @ b
    chance = weights @ a**2 - mean_a**2 + weights @ b**2 - mean_b**2 + (mean_a - mean_b) ** 2
    values = 1 - (weights @ (a - b) ** 2) / chance
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def best_threshold(human: Floats, scores: Floats) -> float | None:
    """The threshold (a score at or above it passes) with the best balanced accuracy; None without both classes.

    Among equals the one nearest to the middle of the candidates is taken; it lies halfway between two scores.
    """
    good = human > 0.5
    if good.all() or not good.any():
        return None
    values = np.unique(scores)
    cuts = np.concatenate([[values[0]], (values[1:] + values[:-1]) / 2])
    passing_good = len(scores[good]) - np.searchsorted(np.sort(scores[good]), cuts, side="left")
    failing_bad = np.searchsorted(np.sort(scores[~good]), cuts, side="left")
    balanced = passing_good / good.sum() + failing_bad / (~good).sum()
    best = np.flatnonzero(balanced >= balanced.max() - 1e-12)
    return float(cuts[best[len(best) // 2]])


def cross_fitted(human: Floats, scores: Floats, ids: list[str], folds: int = 5) -> Floats | None:
    """Verdicts (0/1) of thresholds that never saw their row; None where a fold lacks a class.

    Args:
        ids: row ids; the folds are made of their hashes, so that they do not depend on the order.
    """
    order = sorted(range(len(ids)), key=lambda i: hashlib.sha256(ids[i].encode("utf-8")).digest())
    fold = np.empty(len(ids), dtype=int)
    fold[order] = np.arange(len(ids)) % folds
    verdicts = np.empty(len(ids))
    for part in range(folds):
        own = fold == part
        threshold = best_threshold(human[~own], scores[~own])
        if threshold is None:
            return None
        verdicts[own] = scores[own] >= threshold
    return verdicts
