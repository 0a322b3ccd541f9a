"""A change of a mean between two nights, split exactly into judge, system and dataset.

T = mean_B - mean_A = judge + system + dataset. On the shared examples S, with
v_i = (w_i^A / W_S^A + w_i^B / W_S^B) / 2, shared = sum v (f_B - f_A) and dataset = T - shared. The judge's
part comes from the sentinel: pi d1 + (1 - pi) d0, with d1 and d0 the mean change of verdict on rows that
people call good and bad, and pi the true pass rate of night A on S (Rogan and Gladen 1978). The order is
fixed: the judge first (at night A's mix), then the system (on tonight's judge's scale), the dataset last.
Compare Kitagawa (1955, JASA 50:1168) for splits of a difference of means.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragbench_dagster.stats.intervals import Z95, Floats, Interval, student


@dataclass(frozen=True, slots=True)
class Sentinel:
    """Rows judged on both nights: people's label, night A's verdict, night B's verdict (0 or 1)."""

    human: Floats
    before: Floats
    after: Floats


@dataclass(frozen=True, slots=True)
class Part:
    value: float
    variance: float

    @property
    def interval(self) -> Interval:
        half = Z95 * float(np.sqrt(max(self.variance, 0.0)))
        return self.value - half, self.value + half

    def as_dict(self) -> dict[str, float]:
        low, high = self.interval
        return {"value": self.value, "low": low, "high": high}


@dataclass(frozen=True, slots=True)
class Split:
    """total = judge + system + dataset; shared = judge + system is what the gate decides on."""

    total: float
    shared: Part
    judge: Part
    system: Part
    dataset: Part
    n_shared: int
    fresh: float  # share of shared rows judged afresh: only they can carry the judge's drift

    def as_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "shared": self.shared.as_dict(),
            "judge": self.judge.as_dict(),
            "system": self.system.as_dict(),
            "dataset": self.dataset.as_dict(),
            "n_shared": self.n_shared,
            "judged_afresh": self.fresh,
        }


def split_change(
    before: Floats,
    after: Floats,
    shared_before: NDArray[np.int64],
    shared_after: NDArray[np.int64],
    sentinel: Sentinel | None,
    fresh: float = 1.0,
    weights_before: Floats | None = None,
    weights_after: Floats | None = None,
) -> Split:
    """Split `mean(after) - mean(before)`.

    Args:
        before, after: all scored values of night A and B.
        shared_before, shared_after: positions of the shared examples in both, in the same order.
        sentinel: None where no judge is involved: the judge's part is 0.
        fresh: share of the shared rows that were judged afresh on night B.
        weights_before, weights_after: traffic weights; None for equal.
    """
    wa = np.ones(len(before)) if weights_before is None else weights_before
    wb = np.ones(len(after)) if weights_after is None else weights_after
    mean_a, mean_b = float(wa @ before) / float(wa.sum()), float(wb @ after) / float(wb.sum())
    own_a, own_b = wa[shared_before], wb[shared_after]
    v = (own_a / own_a.sum() + own_b / own_b.sum()) / 2
    difference = after[shared_after] - before[shared_before]
    value = float(v @ difference)
    k = 1 / float(v @ v)
    spread = k / (k - 1) * float(v**2 @ (difference - value) ** 2) if k > 1 else 0.0
    shared = Part(value, spread)

    at_b = wb / wb.sum() * (after - mean_b)
    at_a = -wa / wa.sum() * (before - mean_a)
    at_b[shared_after] += at_a[shared_before] - v * (difference - value)
    rest = at_a.copy()
    rest[shared_before] = 0.0
    influence = float(at_b @ at_b) + float(rest @ rest)
    total = mean_b - mean_a
    dataset = Part(total - value, influence)

    judge = Part(0.0, 0.0)
    if sentinel is not None:
        passing = float(v @ before[shared_before])
        judge = _judge_part(sentinel, passing, k, fresh)
    system = Part(value - judge.value, shared.variance + judge.variance)
    return Split(total, shared, judge, system, dataset, len(shared_before), fresh)


def _judge_part(s: Sentinel, passing: float, n: float, fresh: float) -> Part:
    good = s.human > 0.5
    m1, m0 = int(good.sum()), int((~good).sum())
    d1 = float((s.after - s.before)[good].mean()) if m1 else 0.0
    d0 = float((s.after - s.before)[~good].mean()) if m0 else 0.0
    se = (float(s.before[good].sum()) + 0.5) / (m1 + 1)
    sp = (float((1 - s.before)[~good].sum()) + 0.5) / (m0 + 1)
    youden = se + sp - 1
    if m1 == 0 or m0 == 0 or youden <= 0.05:
        pi, var_pi = passing, passing * (1 - passing) / n
    else:
        pi = float(np.clip((passing + sp - 1) / youden, 0, 1))
        var_pi = passing * (1 - passing) / n + pi**2 * se * (1 - se) / m1 + (1 - pi) ** 2 * sp * (1 - sp) / m0
        var_pi = min(var_pi / youden**2, 0.25)
    variance = pi**2 * _flip_variance(s, good) + (1 - pi) ** 2 * _flip_variance(s, ~good)
    variance += (d1 - d0) ** 2 * var_pi
    return Part(fresh * (pi * d1 + (1 - pi) * d0), fresh**2 * variance)


def _flip_variance(s: Sentinel, rows: NDArray[np.bool_]) -> float:
    """Variance of the mean change of verdict, from the flips with 1/2 added each way."""
    m = int(rows.sum())
    if m == 0:
        return 0.25
    change = (s.after - s.before)[rows]
    up, down, size = float((change > 0).sum()) + 0.5, float((change < 0).sum()) + 0.5, m + 1.0
    mean = (up - down) / size
    return ((up + down) / size - mean**2) / size


# The change since an accepted night, linked over the releases between it and tonight.
#
# A margin against the night before lets a small loss a night add up. Against one accepted night it cannot, but
# releases change: each later release is tied in by its first night, as an index number's chain. A link is the mean
# change over the questions that two successive anchors share; the last segment is tonight against its release's
# own anchor. The variance is that of each question's summed influence (by cluster where clusters are given). A
# steady loss fails in 9 of 10 worlds by the time it has summed to 1.3 to 1.5 margins; identical systems in .02 to
# .07 a month or quarter. After a quarter the links have widened: a new night should be accepted.

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
