"""The most asked questions that broke: facts, no test, said first on every night.

A release can keep its share per question and lose the few questions that a third of all requests ask.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ragbench_dagster.calibration.stats.request_share import broken_head
from ragbench_dagster.number_words import percent
from ragbench_dagster.reporting.baseline import Baselines, Pairs
from ragbench_dagster.settings import Threshold

MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Broken:
    """The most asked questions of one system and metric that were right in the baseline and are wrong tonight."""

    system: str
    metric: str
    baseline: str
    looked_at: int  # the most asked questions
    examples: list[str]  # ids, the most asked first
    shares: list[float]  # of requests
    net: float  # share of requests lost among the most asked, those that turned right counted against it

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def share(self) -> float:
        return sum(self.shares)

    @property
    def line(self) -> str:
        named = ", ".join(self.examples[:MOST_NAMED])
        more = len(self.examples) - MOST_NAMED
        named += f" and {more} more" if more > 0 else ""
        was, count = ("was", "question") if len(self.examples) == 1 else ("were", "questions")
        return (
            f"{self.system}: {self.metric}: {len(self.examples)} of the {self.looked_at} most asked {count} {was} right "
            f"on {self.baseline} and {'is' if was == 'was' else 'are'} wrong tonight: together {percent(self.share)} of "
            f"requests: {named}"
        )


def broken_questions(baselines: Baselines, systems: list[str], thresholds: dict[str, Threshold]) -> list[Broken]:
    """What broke among the most asked, for each system and metric with a threshold; the gravest first."""
    found = []
    for (system, metric), scores in baselines.night.scores.items():
        threshold = thresholds.get(metric)
        if system not in systems or threshold is None:
            continue
        baseline, _ = baselines.find(system, threshold.baseline)
        if baseline is None or baselines.differs(baseline, metric):
            continue
        pairs = baselines.pairs(baseline, scores)
        if pairs is not None and pairs.n:
            broken = _broken(pairs, system, metric, baseline.name)
            if broken.examples:
                found.append(broken)
    return sorted(found, key=lambda b: (-b.share, b.system, b.metric))


def _broken(pairs: Pairs, system: str, metric: str, baseline: str) -> Broken:
    before, after = pairs.before.per_request[pairs.old], pairs.after.per_request[pairs.new]
    weight = pairs.after.weight[pairs.new]
    lost, won = broken_head(before, after, weight), broken_head(after, before, weight)
    # where every question is asked alike there are no most asked ones
    heavy = weight > weight.mean()
    rows, back = lost.rows[heavy[lost.rows]], won.rows[heavy[won.rows]]
    shares = weight / weight.sum()
    ids = pairs.after.ids[pairs.new]
    return Broken(
        system, metric, baseline, lost.head, [str(i) for i in ids[rows]], np.round(shares[rows], 9).tolist(),
        float(shares[rows].sum() - shares[back].sum()),
    )  # fmt: skip
