"""Simulated traffic for the grids of per-request figures: Zipf questions, windows of requests, bursts, judges.

Each function returns shares of runs; seeds are given. A world has questions with traffic shares s; a window holds
`requests` of them, of which a tenth is sampled; tonight's answers to all questions are facts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.correction import JudgeDraws, rogan_gladen
from ragbench_dagster.stats.paired import mcnemar_loss
from ragbench_dagster.stats.power import holm
from ragbench_dagster.stats.request_share import ASKS, HEAVY_SHARE, judge_noise_n, request_change, request_share

RATE = 0.1  # of the requests that are sampled
WORLDS = {"zipf 1.0": (1.0, 800, 5_000), "zipf 0.8": (0.8, 3_000, 8_000), "zipf 1.2": (1.2, 4_000, 20_000)}
HEADS = ("alike", "better", "worse")


@dataclass(frozen=True)
class World:
    """Traffic shares of the questions, falling, and the requests of a window."""

    share: np.ndarray
    requests: int

    @classmethod
    def of(cls, name: str) -> World:
        exponent, questions, requests = WORLDS[name]
        share = np.arange(1, questions + 1.0) ** -exponent
        return cls(share / share.sum(), requests)

    def quality(self, head: str, rate: float, rng: np.random.Generator) -> np.ndarray:
        """The chance of each question to be answered right; that of the head may be better or worse."""
        rank = np.linspace(0, 1, len(self.share)) ** 0.3
        lean = {"alike": 0.0, "better": 0.25, "worse": -0.25}[head]
        return np.clip(rate + lean * (0.5 - rank) + rng.normal(0, 0.05, len(self.share)), 0.02, 0.98)

    def window(self, rng: np.random.Generator) -> np.ndarray:
        """Requests of each question in one window."""
        return rng.multinomial(self.requests, self.share)

    def bursty(self, rng: np.random.Generator, days: int = 90, burst: float = 0.3) -> np.ndarray:
        """The same, but `burst` of a day's requests ask one question that the day is about."""
        counts = rng.multinomial(round(self.requests * (1 - burst)), self.share)
        topics = rng.choice(len(self.share), days, p=self.share)
        np.add.at(counts, topics, round(self.requests * burst / days))
        return counts


def sampled(counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Which questions are in the sample, and by how many of their requests."""
    drawn = rng.multivariate_hypergeometric(counts, round(RATE * counts.sum()), method="marginals")
    return np.flatnonzero(drawn), drawn[drawn > 0].astype(float)


def share_covers(name: str, head: str, runs: int, seed: int, bursty: bool = False) -> tuple[float, float, float]:
    """Coverage of the window's share, of the traffic's, and the mean width."""
    rng, world = np.random.default_rng(seed), World.of(name)
    window = traffic = width = 0.0
    for _ in range(runs):
        y = (rng.random(len(world.share)) < world.quality(head, 0.8, rng)).astype(float)
        counts = world.bursty(rng) if bursty else world.window(rng)
        rows, c = sampled(counts, rng)
        found = request_share(y[rows], c / RATE, c)
        assert found is not None
        low, high = found.interval
        window += low <= counts @ y / counts.sum() <= high
        traffic += low <= world.share @ y <= high
        width += high - low
    return window / runs, traffic / runs, width / runs


def judged_share_covers(name: str, judge: tuple[float, float], runs: int, seed: int, labels: int = 200) -> float:
    """Coverage of the corrected share per request, 7 of 10 labels on good answers."""
    rng, world, (se, sp) = np.random.default_rng(seed), World.of(name), judge
    good, bad = round(0.7 * labels), round(0.3 * labels)
    hits = 0
    for _ in range(runs):
        truth = rng.random(len(world.share)) < 0.8
        verdict = rng.random(len(truth)) < np.where(truth, se, 1 - sp)
        rows, c = sampled(world.window(rng), rng)
        tp, tn = rng.binomial(good, se), rng.binomial(bad, sp)
        draws = JudgeDraws.of(Table(tp, bad - tn, good - tp, tn), 2_000)
        raw = request_share(verdict[rows].astype(float), c / RATE, c)
        assert raw is not None
        assert draws.point is not None
        n = judge_noise_n(c, raw.value, *draws.point).n
        interval = rogan_gladen(raw.value * n, n, draws, checked=True).interval
        hits += interval is not None and interval[0] <= world.share @ truth <= interval[1]
    return hits / runs


def change(
    rng: np.random.Generator, world: World, before: np.ndarray, after: np.ndarray, several: bool = True
) -> tuple[object, float]:
    """One change per request between two nights whose answers are redrawn, and its truth."""
    counts = world.window(rng)
    rows, c = sampled(counts, rng)
    w = c / RATE
    heavy = w >= HEAVY_SHARE * w.sum() if several else np.zeros(len(rows), dtype=bool)
    asks = np.where(heavy, ASKS, 1)
    a, b = (rng.binomial(asks, quality[rows]) / asks for quality in (before, after))
    return request_change(a, b, w, c, heavy, ASKS), float(world.share @ (after - before))


def change_decisions(
    name: str, loss: float, noisy: float, margin: float, runs: int, seed: int, level: float = 0.05
) -> dict[str, float]:
    """Shares of runs: covered, passed the margin, falsely passed one of the true loss, failed (at `level`).

    Args:
        loss: true loss, spread over all questions.
        noisy: share of questions whose answers change from ask to ask (right with chance .5).
    """
    rng, world = np.random.default_rng(seed), World.of(name)
    out = dict.fromkeys(("covers", "passes", "false_pass", "fails"), 0.0)
    for _ in range(runs):
        n = len(world.share)
        before = np.where(rng.random(n) < noisy, 0.5, (rng.random(n) < 0.85).astype(float))
        # a right question is lost with a chance that makes the loss per request exact
        right = before > 0.5
        lost = right & (rng.random(n) < loss / max(float(world.share @ right), 1e-9))
        after = np.where(lost, 0.0, before)
        found, truth = change(rng, world, before, after)
        out["covers"] += found.interval[0] <= truth <= found.interval[1]
        out["passes"] += found.interval[0] > -margin
        out["false_pass"] += found.interval[0] > truth
        out["fails"] += found.p_loss <= level and found.value <= -margin
    return {key: value / runs for key, value in out.items()}


def broken_head(name: str, top: int, margin: float, runs: int, seed: int) -> float:
    """Share of nights that fail where the `top` most asked questions are always wrong."""
    rng, world = np.random.default_rng(seed), World.of(name)
    fails = 0
    for _ in range(runs):
        before = (rng.random(len(world.share)) < 0.9).astype(float)
        before[:top] = 1.0
        after = before.copy()
        after[:top] = 0.0
        found, _ = change(rng, world, before, after)
        fails += found.p_loss <= 0.05 and found.value <= -margin
    return fails / runs


def identical_p_values(name: str, noisy: float, runs: int, seed: int) -> np.ndarray:
    """p-values of "no loss" of identical systems whose answers are redrawn: for one test alone, and among many."""
    rng, world = np.random.default_rng(seed), World.of(name)
    found = []
    for _ in range(runs):
        n = len(world.share)
        quality = np.where(rng.random(n) < noisy, rng.choice([0.3, 0.5, 0.8], n), (rng.random(n) < 0.85).astype(float))
        one = change(rng, world, quality, quality)[0]
        found.append((one.p_loss, one.p_joint))
    return np.array(found).T


def joint_night(name: str, noisy: float, metrics: int, slices: int, rng: np.random.Generator) -> float:
    """Smallest Holm-adjusted p of identical systems: each metric per question, overall and by slice, and per request."""
    world = World.of(name)
    counts = world.window(rng)
    rows, c = sampled(counts, rng)
    w = c / RATE
    heavy = w >= HEAVY_SHARE * w.sum()
    asks = np.where(heavy, ASKS, 1)
    part = rng.integers(0, slices, len(rows))
    found = []
    for _ in range(metrics):
        n = len(rows)
        quality = np.where(rng.random(n) < noisy, rng.choice([0.3, 0.5, 0.8], n), (rng.random(n) < 0.85).astype(float))
        a, b = (rng.binomial(asks, quality) / asks for _ in "ab")
        # per question the first ask counts: one of the asks, drawn as right as they were
        one, two = ((rng.random(n) < x).astype(float) for x in (a, b))
        for own in (np.ones(n, dtype=bool), *(part == k for k in range(slices))):
            gains, losses = int((two > one)[own].sum()), int((two < one)[own].sum())
            found.append(mcnemar_loss(gains, losses))
        found.append(request_change(a, b, w, c, heavy, ASKS).p_joint)
    return min(holm(found))


def joint_false_fails(name: str, noisy: float, runs: int, seed: int, metrics: int = 20, slices: int = 9) -> float:
    """Share of nights with a proven loss where there is none, over all tests of the night."""
    rng = np.random.default_rng(seed)
    return sum(joint_night(name, noisy, metrics, slices, rng) <= 0.05 for _ in range(runs)) / runs
