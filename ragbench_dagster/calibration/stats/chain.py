"""The change since an accepted night, linked over the releases between it and tonight.

A margin against the night before lets a small loss a night add up. Against one accepted night it cannot, but
releases change: each later release is tied in by its first night, as an index number's chain. A link is the mean
change over the questions that two successive anchors share; the last segment is tonight against its release's
own anchor. The variance is that of each question's summed influence (by cluster where clusters are given). A
steady loss fails in 9 of 10 worlds by the time it has summed to 1.3 to 1.5 margins; identical systems in .02 to
.07 a month or quarter. After a quarter the links have widened: a new night should be accepted.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ragbench_dagster.calibration.stats.intervals import Z95, Interval, student

LEAST_SHARED = 20  # questions that two anchors must share


@dataclass(frozen=True, slots=True)
class Link:
    """The change from one anchor to the next, or from the last to tonight."""

    value: float
    shared: int  # questions on both sides


@dataclass(frozen=True, slots=True)
class Chain:
    """The change since the accepted night."""

    value: float
    variance: float
    interval: Interval
    p_loss: float  # one-sided, H0: no loss
    links: tuple[Link, ...]  # the last one is tonight's segment
    questions: int  # distinct questions shared on the way
    clusters: int

    @property
    def releases(self) -> int:
        """Releases after the accepted one that were linked."""
        return len(self.links) - 1

    @property
    def guarded(self) -> Interval:
        """The interval that a margin is tested with.

        Where few questions differ the plain one is too sure (a true loss of the whole margin passed .05 to .06 of
        nights at n = 200): each end is moved out as a score interval of the smallest link would be, by z^2 / n.
        """
        edge = Z95**2 / _smallest(self)
        low, high = (float(np.hypot(end - self.value, edge)) for end in self.interval)
        return max(-1.0, self.value - low), min(1.0, self.value + high)

    @property
    def guarded_p(self) -> float:
        """The p of "no loss" with one question's weight against it, as an exact sign test of few losses has."""
        if self.variance <= 1e-24:
            return self.p_loss
        one = 1 / _smallest(self)
        return max(self.p_loss, float(special.ndtr((self.value + one) / np.sqrt(self.variance))))


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """A link that shares too few questions: another night has to be accepted."""

    position: int  # 0: from the accepted night; the last: tonight's segment
    shared: int
    needed: int


def _smallest(chain: Chain) -> int:
    return min(min(link.shared for link in chain.links), chain.clusters)


def chain_linked(
    anchors: Sequence[Mapping[str, float]],
    tonight: Mapping[str, float],
    clusters: Mapping[str, Hashable] | None = None,
    least: int = LEAST_SHARED,
) -> Chain | BrokenLink:
    """The change from the first anchor to tonight.

    Args:
        anchors: value of each question on the accepted night, then on the first night of each later release.
        tonight: value of each question tonight, of the last anchor's release.
        clusters: cluster of a question, by id; those it lacks stand alone.
        least: questions that each link must share.

    Raises:
        ValueError: no anchor.
    """
    if not anchors:
        raise ValueError("a chain needs the accepted night")
    links: list[Link] = []
    influence: dict[str, float] = {}
    for position, (old, new) in enumerate(zip(anchors, [*anchors[1:], tonight], strict=True)):
        shared = sorted(old.keys() & new.keys())
        if len(shared) < max(least, 1):
            return BrokenLink(position, len(shared), max(least, 1))
        d = np.array([new[key] - old[key] for key in shared])
        mean = float(d.mean())
        links.append(Link(mean, len(shared)))
        for key, term in zip(shared, ((d - mean) / len(shared)).tolist(), strict=True):
            influence[key] = influence.get(key, 0.0) + term
    sums: dict[Hashable, float] = {}
    for key, term in influence.items():
        # a question without a cluster is one of its own, apart from any cluster of that name
        own = ("cluster", clusters[key]) if clusters is not None and key in clusters else ("question", key)
        sums[own] = sums.get(own, 0.0) + term
    return _chain(links, np.array(list(sums.values())), len(influence))


def _chain(links: list[Link], sums: np.ndarray, questions: int) -> Chain:
    value = sum(link.value for link in links)
    variance = float(sums @ sums)
    k = len(sums)
    if variance <= 1e-24:  # no question differs from its link's mean: the rule of three, by link
        least = min(min(link.shared for link in links), k)
        half = min(1.0, 3.0 / least)
        p = 1.0 if value > -1e-12 else 0.5**least
        return Chain(value, variance, (value - half, value + half), p, tuple(links), questions, k)
    error = float(np.sqrt(variance))
    z = Z95 if k == questions else student(k - 1)
    p = float(special.ndtr(value / error) if k == questions else special.stdtr(max(k - 1, 1), value / error))
    return Chain(value, variance, (value - z * error, value + z * error), p, tuple(links), questions, k)
