"""The 2x2 table of a judge against people, and what it says.

Cohen (1960) kappa, its interval by Dirichlet(counts + 1/2) draws on the four cells: the multinomial
bootstrap draws [1, 1] where no disagreement was seen, and Fleiss's standard error is 0 there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragbench_dagster.calibration.stats.intervals import Floats, Interval, wilson

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
