"""Simulated months for the grid of linked baselines: weekly releases, redrawn answers, a small loss each night."""

from __future__ import annotations

import numpy as np

from ragbench_dagster.stats.change import Chain, chain_linked
from ragbench_dagster.stats.paired import compare

REDRAWN = 0.05  # share of answers that a night draws anew


def month(n: int, margin: float, loss: float, churn: float, nights: int, rng: np.random.Generator) -> dict[str, float]:
    """One world: the first night that the accepted night's rule fails (0: none), what was lost by then, the last night's
    cover, and whether the night before as the judge would ever have failed.
    """
    quality = dict.fromkeys(range(n), 0.0)
    for key in quality:
        quality[key] = float(rng.random() < 0.85)
    answers = {str(key): value for key, value in quality.items()}
    anchors, previous, fresh = [dict(answers)], dict(answers), n
    truth, out = 0.0, {"failed": 0.0, "lost": 0.0, "covers": 0.0, "last_fails": 0.0}
    for night in range(1, nights + 1):
        if night % 7 == 0:
            keys = list(answers)
            for key in rng.permutation(len(keys))[: round(churn * n)]:
                del answers[keys[key]]
            while len(answers) < n:
                answers[str(fresh)] = float(rng.random() < 0.85 - loss * night)
                fresh += 1
        right = [key for key, value in answers.items() if value > 0.5]
        for key in right:
            if rng.random() < loss / max(len(right) / n, 1e-9):
                answers[key] = 0.0
        truth -= loss
        tonight = _redrawn(answers, rng)
        if night % 7 == 0:
            anchors.append(tonight)
        found = chain_linked(anchors, tonight)
        assert isinstance(found, Chain)
        if not out["failed"] and found.value <= -margin and found.p_loss <= 0.05:
            out |= {"failed": float(night), "lost": -truth / margin}
        # what is redrawn does not share in the loss
        out["covers"] = float(found.interval[0] <= (1 - REDRAWN) * truth <= found.interval[1])
        shared = sorted(previous.keys() & tonight.keys())
        step = compare(*(np.array([x[key] for key in shared]) for x in (previous, tonight)), True)
        out["last_fails"] = max(out["last_fails"], float(step.value <= -margin and step.p_loss <= 0.05))
        previous = tonight
    return out


def _redrawn(answers: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
    """Tonight's answers: 5 % of them by chance the other way or back."""
    turned = rng.random(len(answers)) < REDRAWN
    chance = rng.random(len(answers)) < 0.85
    return {key: float(chance[i]) if turned[i] else value for i, (key, value) in enumerate(answers.items())}


def months(
    n: int, margin: float, loss: float, runs: int, seed: int, churn: float = 1 / 13, nights: int = 30
) -> dict[str, float]:
    """Means over worlds; `failed` is the share that failed at all, `lost` the median loss in margins by then."""
    rng = np.random.default_rng(seed)
    found = [month(n, margin, loss, churn, nights, rng) for _ in range(runs)]
    lost = [one["lost"] for one in found if one["failed"]]
    return {
        "failed": sum(one["failed"] > 0 for one in found) / runs,
        "lost": float(np.median(lost)) if lost else 0.0,
        "covers": sum(one["covers"] for one in found) / runs,
        "last_fails": sum(one["last_fails"] for one in found) / runs,
    }
