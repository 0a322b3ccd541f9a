"""Per request: which share of the requests people sent asks a question that is answered right, and its change.

The sampled requests are the sample, not the questions: sampling draws requests, so `c` requests of a question
of total weight `w` estimate how often it was asked (Hansen, Hurwitz 1943; Cochran 1977, 3.2), and tonight's
value `y` of a question is a known fact once it is in the sample. The number of questions and the Kish n of
their weights do not matter. On three Zipf worlds the interval covers .944 to .972 and is 2.3 to 12 times
narrower than the one on Kish's n of questions.

It does not hold where questions were sub-sampled after the release (`--sample N`): there use
`clustering.clustered_estimate` with weights. Requests that come in bursts of one day are worth fewer than
their number; see docs/statistics.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragbench_dagster.stats.clustering import Clusters, all_single, clustered_estimate
from ragbench_dagster.stats.intervals import Floats, Interval, student, wilson
from ragbench_dagster.stats.paired import tango

HEAVY_SHARE = 0.005  # share of requests from which a question is asked several times: 10 to 27 questions
ASKS = 5  # how often a heavy question is asked every night
HEAD = 50  # the most asked questions that the list of facts looks at
STAYS_RIGHT, TURNS_WRONG = 0.8, 0.2  # 4 and 1 of 5 asks


@dataclass(frozen=True, slots=True)
class JudgeNoise:
    """What a judge's errors add: it errs on a question once, for all requests that ask it."""

    together: float  # S2: chance that two sampled requests ask the same question
    passing: float  # theta: the true share behind the judged one
    variance: float  # added to the variance of the judged share
    n: float  # effective requests of the judged share, for the Rogan-Gladen draws


@dataclass(frozen=True, slots=True)
class RequestShare:
    """A share (or graded mean) per request."""

    value: float
    variance: float  # of the sampled requests, with the judge's noise where it was given
    n: float  # effective requests
    interval: Interval
    requests: float  # sampled requests
    questions: int


def request_share(
    y: Floats, w: Floats, c: Floats, finite: bool = False, judge_noise: JudgeNoise | None = None
) -> RequestShare | None:
    """Share of the window's requests whose question is answered right; None without a question.

    Args:
        y: value of each question, 0 to 1.
        w: summed weight of its sampled requests.
        c: number of its sampled requests, at least 1.
        finite: an interval for the window alone, exact where every request was sampled; as default it also
            covers the traffic that the window came from.
        judge_noise: of `judge_noise_n`, where `y` is a judge's verdict.
    """
    if len(y) == 0 or float(w.sum()) <= 0:
        return None
    total = float(w.sum())
    p = float(w @ y / total)
    size = w**2 / c
    drawn = size * (1 - c / w) if finite else size
    variance = float(np.maximum(drawn, 0.0) @ ((y - p) ** 2) / total**2)
    most = total**2 / float(size.sum())
    if variance <= 0 or not 0 < p < 1:
        n = most
    elif finite:
        n = p * (1 - p) / variance
    else:
        n = min(float(c.sum()), p * (1 - p) / variance)
    if judge_noise is not None:
        spread = p * (1 - p)
        variance += judge_noise.variance
        n = spread / (spread / n + judge_noise.variance) if spread > 0 else min(n, judge_noise.n)
    interval = wilson(p * n, n)
    assert interval is not None
    return RequestShare(p, variance, n, interval, float(c.sum()), len(y))


def request_floor_p(share: float, n: float, floor: float, ceiling: bool = False) -> float:
    """One-sided p of H0 "the share is at least `floor`" (at most, for a ceiling), from `n` effective requests."""
    spread = floor * (1 - floor) / n if n > 0 else 0.0
    gap = floor - share if ceiling else share - floor
    if spread <= 0:  # a floor of 0 or a ceiling of 1 cannot be missed; a floor of 1 is missed by any failure
        return 1.0 if gap >= 0 else 0.0
    return float(special.ndtr(gap / np.sqrt(spread)))


def judge_noise_n(
    c: Floats, q: float, se: float, sp: float, w: Floats | None = None, labelled: NDArray[np.bool_] | None = None
) -> JudgeNoise:
    """What the judge's errors do to a share per request.

    Args:
        c: sampled requests of each question.
        q: judged share per request.
        se, sp: the judge's sensitivity and specificity; se + sp > 1.
        w: summed weights, where they are not in proportion to `c`.
        labelled: questions whose value is people's: they carry no error of the judge.
    """
    m = float(c.sum())
    if m <= 1:
        together = 0.0
    else:
        each = c * (c - 1) / m**2 if w is None else (w / w.sum()) ** 2 * (1 - 1 / c)
        together = float(each.sum() if labelled is None else each[~labelled].sum()) * m / (m - 1)
    passing = float(np.clip((q + sp - 1) / (se + sp - 1), 0.0, 1.0))
    variance = together * (passing * se * (1 - se) + (1 - passing) * sp * (1 - sp))
    spread = q * (1 - q)
    return JudgeNoise(together, passing, variance, spread / (spread / m + variance) if spread > 0 else m)


@dataclass(frozen=True, slots=True)
class RequestChange:
    """A change per request, new minus old; positive is a gain."""

    value: float
    variance: float
    n: float  # effective requests
    interval: Interval
    p_loss: float  # one-sided, H0: no loss, for one test alone
    p_joint: float  # the same for use among many tests (Holm)
    gains: float  # share of requests that gained
    losses: float
    from_answers: float  # the part of the variance that is answers changing from ask to ask


def heavy_questions(w: Floats) -> NDArray[np.bool_]:
    """The questions that are asked `ASKS` times every night where a margin is per request."""
    return w >= HEAVY_SHARE * float(w.sum())


def request_change(
    a: Floats,
    b: Floats,
    w: Floats,
    c: Floats,
    heavy: NDArray[np.bool_] | None = None,
    asks: int = ASKS,
    noise: bool = True,
) -> RequestChange | None:
    """The change per request from the baseline's values `a` to tonight's `b`; None without a question.

    Args:
        a, b: values of the shared questions; of heavy ones the means of their asks.
        w, c: summed weight and number of the sampled requests of each.
        heavy: questions that were asked `asks` times on both nights.
        noise: False for what cannot change by itself, such as retrieval from a fixed index: then the
            requests alone are the sample.
    """
    if len(a) == 0 or float(w.sum()) <= 0:
        return None
    total = float(w.sum())
    share, d = w / total, b - a
    value = float(share @ d)
    gains, losses = float(share @ np.maximum(d, 0)), float(share @ np.maximum(-d, 0))
    sampled = float((w**2 / c) @ ((d - value) ** 2) / total**2)
    answers = float(share**2 @ _answer_noise(a, b, heavy, asks)) if noise else 0.0
    variance = sampled + answers
    spread = float(share @ d**2) - value * value
    most = total**2 / float((w**2 / c).sum())
    n = min(most, spread / variance) if variance > 0 and spread > 0 else most
    interval = tango(gains * n, losses * n, n)
    assert interval is not None
    if variance > 0:
        p = float(special.ndtr(value / np.sqrt(variance)))
    else:  # no request differs, or all by the same: then the sign test's .5^n stands
        p = 1.0 if value >= 0 else 0.5**most
    joint = p
    if noise and heavy is not None and asks > 1:
        joint = max(p, _joint_p(share, a, b, heavy, asks, value, sampled))
    return RequestChange(value, variance, n, interval, p, joint, gains, losses, answers)


def _joint_p(
    share: Floats, a: Floats, b: Floats, heavy: NDArray[np.bool_], asks: int, value: float, sampled: float
) -> float:
    """p of a loss whose tail holds at the small levels of many tests.

    A heavy question with 5 of 5 right on one night and 0 of 5 on the other shows no noise at all, and yet a coin
    does that in 1 of 512 nights. So the noise of heavy questions that changed is taken with half a right and half a
    wrong ask added, and Student's t with 2 (asks - 1) degrees of freedom for each (Satterthwaite 1946). With the
    plain variance .0016 of nights had p <= .05/220 at Zipf 1.2; with this none of 48,000 had.
    """
    changed = heavy & (a != b)
    added = (a * asks + 0.5) / (asks + 1), (b * asks + 0.5) / (asks + 1)
    plain = _answer_noise(a, b, heavy, asks)
    few = np.where(changed, share**2 * np.maximum(_answer_noise(*added, heavy, asks), plain), 0.0)
    rest = sampled + float(share**2 @ np.where(changed, 0.0, plain))
    variance = rest + float(few.sum())
    if variance <= 0:
        return 1.0 if value >= 0 else 0.0
    df = variance**2 / (float(few @ few) / (2 * (asks - 1)) + rest**2 / len(a))
    return float(special.stdtr(df, value / np.sqrt(variance)))


def _answer_noise(a: Floats, b: Floats, heavy: NDArray[np.bool_] | None, asks: int) -> Floats:
    """Variance of each question's difference by answers that change from ask to ask.

    What was asked once shows it only in its difference; what was asked `asks` times in the spread of its asks.
    """
    once = (b - a) ** 2
    if heavy is None or asks < 2:
        return once
    spread = asks / (asks - 1) * (a * (1 - a) + b * (1 - b))
    return np.where(heavy, spread / asks, once)


@dataclass(frozen=True, slots=True)
class BrokenHead:
    """The most asked questions that were right in the baseline and are wrong tonight: facts, no test."""

    rows: NDArray[np.int64]  # positions, the most asked first
    shares: Floats  # of requests
    head: int  # how many of the most asked were looked at

    @property
    def share(self) -> float:
        """Share of requests that ask one of them."""
        return float(self.shares.sum())


def broken_head(before: Floats, after: Floats, w: Floats, head: int = HEAD) -> BrokenHead:
    """The questions among the `head` most asked that broke.

    Args:
        before, after: values of the shared questions (means of the asks of heavy ones).
        w: their weights.
    """
    order = np.argsort(-w, kind="stable")[:head]
    broke = (before[order] >= STAYS_RIGHT - 1e-9) & (after[order] <= TURNS_WRONG + 1e-9)
    rows = order[broke]
    return BrokenHead(rows, w[rows] / float(w.sum()), len(order))


# What production answered: the share of logged requests whose own answer was right.
#
# The rows are the sampled requests of the last days, each with the answer its user got and the weight w = n / kept
# of its day and category (Horvitz, Thompson 1952). The variance of what was not sampled is
# sum w (w - 1) (y - p)^2 / W^2. Window weights of distinct questions with their latest answer, which this
# replaces, are off by +.035 to +.157 where a topic breaks within the week.


@dataclass(frozen=True, slots=True)
class LoggedShare:
    """A share of the logged requests of some days."""

    value: float
    variance: float
    n: float  # effective requests; exceeds the rows where most requests were sampled
    interval: Interval
    sampled: int  # requests that were judged
    requests: float  # that they stand for
    clusters: int  # users or conversations


def logged_share(y: Floats, w: Floats, clusters: Clusters | None = None) -> LoggedShare | None:
    """Share of requests that were answered right; None without a request.

    Args:
        y: value of each sampled request's own answer.
        w: requests it stands for, at least 1.
        clusters: user or conversation of each request, where one asks several times.
    """
    if len(y) == 0:
        return None
    total = float(w.sum())
    p = float(w @ y / total)
    variance = float((w * np.maximum(w - 1, 0.0)) @ ((y - p) ** 2) / total**2)
    if bool((w <= 1).all()):  # every request was sampled: nothing is estimated
        return LoggedShare(p, 0.0, float(len(y)), (p, p), len(y), total, _clusters(clusters, len(y)))
    known = 0 < p < 1 and variance > 0
    n = p * (1 - p) / variance if known else total**2 / float(w @ w)
    if clusters is None or all_single(clusters):
        interval = wilson(p * n, n)
        assert interval is not None
        return LoggedShare(p, variance, n, interval, len(y), total, _clusters(clusters, len(y)))
    together = clustered_estimate(y, clusters, w, binary=True)
    n = min(n, together.n_effective)
    z = student(together.clusters_effective - 1)
    interval = wilson(p * n, n, z) if np.isfinite(z) else (0.0, 1.0)
    assert interval is not None
    return LoggedShare(p, max(variance, together.variance), n, interval, len(y), total, together.clusters)


def _clusters(clusters: Clusters | None, n: int) -> int:
    return n if clusters is None else len(np.unique(clusters))
