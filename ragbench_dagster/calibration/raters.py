"""How far people agree with each other: a judge cannot be asked for more.

Each row with several raters contributes all its ordered pairs with a total weight of one, so the table of
rater against rater is symmetric and its kappa is the chance-corrected agreement of two raters drawn at
random (Scott 1955; Fleiss 1971 for any number of raters). The interval comes from Dirichlet draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragbench_dagster.calibration.rows import CalibrationRow
from ragbench_dagster.calibration.stats.tables import kappa_interval, kappa_of


def human_agreement(rows: Sequence[CalibrationRow], metric: str) -> dict[str, Any] | None:
    """Agreement of people on `metric`; None where no row has two raters or more (grades: no kappa here)."""
    votes = [np.array(r.raters[metric]) for r in rows if len(r.raters.get(metric, ())) > 1]
    votes = [v for v in votes if set(v.tolist()) <= {0.0, 1.0}]
    if not votes:
        return None
    both_good = mixed = both_bad = 0.0
    for v in votes:
        size, good = len(v), float(v.sum())
        pairs = size * (size - 1)
        both_good += good * (good - 1) / pairs
        both_bad += (size - good) * (size - good - 1) / pairs
        mixed += 2 * good * (size - good) / pairs
    cells = (both_good, mixed / 2, mixed / 2, both_bad)
    kappa = float(kappa_of(*(np.array(c) for c in cells)))
    return {
        "rows": len(votes),
        "agreement": (both_good + both_bad) / len(votes),
        "kappa": kappa if np.isfinite(kappa) else None,
        "ci": kappa_interval(cells) if np.isfinite(kappa) else None,
    }
