"""Did a system's errors come bunched in time? An outage fails calls in a row, a regression here and there.

Wald and Wolfowitz (1940, Ann. Math. Stat. 11:147), exact: given the number of errors, all orders of the calls
are equally likely where errors do not depend on time. The normal approximation is false (.011 at 1 % errors for
a promised .001); the exact sum flags scattered errors in .0020 of nights at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

BUNCHED = 0.001  # chance below which errors are called bunched


@dataclass(frozen=True, slots=True)
class Bunching:
    """Errors in call order."""

    calls: int
    errors: int
    runs: int  # of errors that follow each other
    p: float  # chance of as few runs or fewer, were the errors scattered

    @property
    def bunched(self) -> bool:
        return self.p <= BUNCHED


def errors_bunched(errors_in_call_order: Sequence[bool] | Sequence[int] | NDArray[np.bool_]) -> Bunching:
    """The exact runs test of one pass over a system's questions.

    Args:
        errors_in_call_order: 1 for each call that failed, by the time it was started. The order of the calls
            must not follow their topic (by hash), else a topic that breaks looks like an outage.

    Returns:
        p = 1 below two errors, and where every call failed: then their order says nothing.
    """
    failed = np.asarray(errors_in_call_order, dtype=bool)
    n, e = len(failed), int(failed.sum())
    runs = int((failed & ~np.concatenate([[False], failed[:-1]])).sum()) if n else 0
    if e < 2 or e == n:
        return Bunching(n, e, runs, 1.0)
    i = np.arange(1, min(runs, n - e + 1) + 1)
    log = _log_choose(e - 1, i - 1) + _log_choose(n - e + 1, i) - _log_choose(n, np.array([e]))
    return Bunching(n, e, runs, float(min(1.0, np.exp(log).sum())))


def _log_choose(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    found = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(found, dtype=float)
