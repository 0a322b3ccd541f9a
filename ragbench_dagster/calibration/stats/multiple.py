"""Holm (1979, Scand. J. Statist. 6:65): step-down adjustment for several tests."""

from __future__ import annotations

import numpy as np

from ragbench_dagster.calibration.stats.intervals import Floats


def holm(p_values: list[float] | Floats) -> list[float]:
    """Adjusted p-values in the given order; each at most 1."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, steps)
    return [float(x) for x in adjusted]
