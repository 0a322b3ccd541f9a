"""Has the judge moved? A count rule that knows the judge's own noise.

The accepted reference is the majority of five fresh judgements a row; its x0 disagreements among n0
judgements are the judge's own noise. Tonight's flips against it follow a beta-binomial under "no drift"
(posterior predictive of a Beta(1, 1) prior), so the alarm stands at the smallest count c with
P(flips >= c) <= alarm / evaluators. A fixed flip rate cannot work: at 5 % of 100 rows it never fires for a
quiet judge and raises .081 false alarms a night for one with 3 % noise.
"""

from __future__ import annotations

import numpy as np
from scipy import special


def tail(flips: int, rows: int, a: float, b: float) -> float:
    """P(X >= flips) for X ~ BetaBinomial(rows, a, b)."""
    if flips <= 0:
        return 1.0
    k = np.arange(flips, rows + 1)
    log = (
        special.gammaln(rows + 1) - special.gammaln(k + 1) - special.gammaln(rows - k + 1)
        + special.betaln(k + a, rows - k + b) - special.betaln(a, b)
    )  # fmt: skip
    return float(min(1.0, np.exp(log).sum()))


def alarm_count(noise: int, judgements: int, rows: int, alarm: float = 0.01, evaluators: int = 1) -> int:
    """Flips at which the alarm stands: `1 + BetaBinomial.isf(alarm / evaluators)`.

    Args:
        noise: x0, disagreements with the majority when the reference was accepted.
        judgements: n0, judgements made then.
        rows: sentinel rows judged tonight that the reference knows.
        alarm: false alarms a night over all evaluators.
        evaluators: evaluators watched.
    """
    level = alarm / max(evaluators, 1)
    a, b = noise + 1, judgements - noise + 1
    for count in range(rows + 2):
        if tail(count, rows, a, b) <= level:
            return count
    return rows + 1
