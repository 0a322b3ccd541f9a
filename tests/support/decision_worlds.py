"""Worlds with a planted truth, a night each, and what the gate says of them. Shared by quick tests and the grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragbench_dagster.reporting.gate.decide import judge_tests
from ragbench_dagster.reporting.gate.limits import fill_chain
from ragbench_dagster.reporting.gate.tests import GateResult, GateTest
from ragbench_dagster.settings import Threshold
from ragbench_dagster.stats.change import Chain, chain_linked
from ragbench_dagster.stats.request_share import heavy_questions
from tests.support import simulated_nights as sim

Rng = np.random.Generator


def traffic(rng: Rng, questions: int, zipf: float, requests: int = 20_000, rate: float = 0.1) -> dict[str, Any]:
    """Weights and counts of the sampled questions of a Zipf traffic."""
    shares = 1 / np.arange(1, questions + 1) ** zipf
    asked = rng.multinomial(requests, shares / shares.sum())
    count = rng.binomial(asked, rate)
    count = count[count > 0]
    return {"count": count.astype(float), "weight": count / rate}


def asked_again(rng: Rng, rate: np.ndarray, world: dict[str, Any], asks: int = 5) -> dict[str, Any]:
    """Answers of one night: heavy questions several times, their mean counts per request."""
    heavy = heavy_questions(world["weight"])
    first = (rng.random(len(rate)) < rate).astype(float)
    mean = np.where(heavy, (first + rng.binomial(asks - 1, rate)) / asks, first)
    return {"values": first, "per_request": mean, "asks": np.where(heavy, asks, 1).astype(np.int64), **world}


def head_broken(rng: Rng, broken: int, per: Any, noise: float = 0.0, margin: float = 0.03) -> GateResult:
    """The `broken` most asked of the questions are always wrong tonight."""
    world = traffic(rng, 700, 1.0)
    n = len(world["weight"])
    right = (rng.random(n) < 0.93).astype(float)
    right[np.argsort(-world["weight"])[:broken]] = 1.0
    rate = np.abs(right - noise)
    tonight = rate.copy()
    tonight[np.argsort(-world["weight"])[:broken]] = 0.0
    before, after = (sim.scores(**asked_again(rng, r, world)) for r in (rate, tonight))
    return sim.decided(before, after, Threshold(margin=margin, per=per))


def failing_engine(rng: Rng, n: int = 700, lost: int = 66) -> GateResult:
    """An engine raises on its hardest questions: its hits among the others are as before."""
    right = (rng.random(n) < 0.888).astype(float)
    hardest = np.argsort(right + rng.random(n) * 0.5)[:lost]
    status = np.full(n, "scored", dtype=object)
    status[hardest] = "failed"
    hits = np.where(status == "failed", 0.0, right)
    tests, _ = sim.against(sim.scores(right), sim.scores(hits, status=status), Threshold(margin=0.03))
    answered = np.where(status == "failed", 0.0, 1.0)
    floor = sim.floored(sim.scores(answered, metric="answered"), 0.98)
    floor.own_level = True
    return judge_tests([*tests, floor], [], [], 10_000, advise=False)


def judged_loss(
    rng: Rng, n: int, loss: float, se: float, sp: float, labels: int = 200, changed: float = 0.3
) -> GateResult:
    """A true loss under a judge that errs alike on both nights; unchanged answers keep their verdict."""
    truth = (rng.random(n) < 0.85).astype(float)
    moved = rng.random(n) < changed
    tonight = truth.copy()
    drop = loss / changed
    flips = 0.1
    up = (1 - truth) * moved * (rng.random(n) < flips)
    down = truth * moved * (rng.random(n) < (drop + flips * 0.15) / 0.85)
    tonight = truth + up - down
    old = sim.judged(rng, truth, se, sp)
    new = np.where(moved, sim.judged(rng, tonight, se, sp), old)
    judge = sim.labelled_judge(rng, se, sp, labels // 2, labels // 2)
    return sim.decided(sim.scores(old, "faithfulness"), sim.scores(new, "faithfulness"), Threshold(margin=0.03), judge)


def clustered_identical(
    rng: Rng, clusters: int, size: int, icc: float, metrics: int = 20, psi: float = 0.1, parts: int = 10
) -> GateResult:
    """Identical noisy systems whose questions come in clusters: 20 metrics, overall and ten categories."""
    n = clusters * size
    cluster = np.repeat(np.arange(clusters), size)
    part = np.array([f"c{i}" for i in rng.integers(0, parts, clusters)], dtype=object)[cluster]
    tests: list[GateTest] = []
    for _ in range(metrics):
        shared = rng.random(n) < icc
        own = rng.choice([-1.0, 0.0, 1.0], n, p=[psi / 2, 1 - psi, psi / 2])
        common = rng.choice([-1.0, 0.0, 1.0], clusters, p=[psi / 2, 1 - psi, psi / 2])[cluster]
        d = np.where(shared, common, own)
        before = np.where(d < 0, 1.0, np.where(d > 0, 0.0, (rng.random(n) < 0.8).astype(float)))
        after = before + d
        more = {"cluster": cluster, "category": part}
        found, _ = sim.against(sim.scores(before, **more), sim.scores(after, **more), Threshold(margin=0.0))
        tests += found
    return judge_tests(tests, [], [], 10_000, advise=False)


def slow_loss(rng: Rng, loss: float, nights: int = 30, n: int = 2000, margin: float = 0.03, redrawn: float = 0.05):
    """A small loss every night, 1/13 of the questions replaced each week: the first night that fails, and what is lost.

    Returns:
        (night or None, true cumulated loss then)
    """
    rate = {str(i): 0.9 for i in range(n)}
    value = {k: float(rng.random() < r) for k, r in rate.items()}
    anchors, born = [dict(value)], n
    for night in range(1, nights + 1):
        if night % 7 == 0:
            for k in list(value)[: n // 13]:
                del value[k]
                value[str(born)] = float(rng.random() < 0.9 - loss * night)
                born += 1
        for k in value:
            if rng.random() < redrawn:
                value[k] = float(rng.random() < 0.9 - loss * night)
            elif value[k] and rng.random() < loss / 0.9 * (1 - redrawn):
                value[k] = 0.0
        if night % 7 == 0:
            anchors.append(dict(value))
        chain = chain_linked(anchors, value)
        assert isinstance(chain, Chain)
        test = GateTest("s", "hit_rate@5", "overall", "margin", -margin, primary=True, baseline="the accepted night")
        fill_chain(test, chain)
        if judge_tests([test], [], [], 10_000, advise=False).verdict == "fail":
            return night, loss * night
    return None, loss * nights


def judged_requests(rng: Rng, loss: float, se: float, sp: float, margin: float, changed: float = 0.3) -> GateResult:
    """A true loss per request under a judge that says the same of all five asks of a question."""
    world = traffic(rng, 700, 1.0)
    n, share = len(world["weight"]), world["weight"] / world["weight"].sum()
    truth = (rng.random(n) < 0.85).astype(float)
    moved = rng.random(n) < changed
    tonight = truth.copy()
    order = rng.permutation(np.flatnonzero(truth > 0.5))
    lost = order[np.cumsum(share[order]) <= loss]
    tonight[lost] = 0.0
    moved[lost] = True
    old = sim.judged(rng, truth, se, sp)
    new = np.where(moved, sim.judged(rng, tonight, se, sp), old)
    keys = np.array([f"k{i}" for i in range(n)], dtype=object)
    other = np.where(moved, np.array([f"new{i}" for i in range(n)], dtype=object), keys)
    asks = np.where(heavy_questions(world["weight"]), 5, 1).astype(np.int64)
    before = sim.scores(old, "faithfulness", keys=keys, asks=asks, **world)
    after = sim.scores(new, "faithfulness", keys=other, asks=asks, **world)
    true_margin = float(share[lost].sum()) if loss else margin
    return sim.decided(before, after, Threshold(margin=true_margin, per="request"), sim.labelled_judge(rng, se, sp))


def failures_under_a_weak_judge(rng: Rng, n: int, se: float, sp: float, failing: float, good: float, margin: float):
    """Answers turn into failures at questions of which the share `good` was answered right; nothing else changes."""
    truth = (rng.random(n) < 0.85).astype(float)
    lost = rng.random(n) < failing
    truth[lost] = (rng.random(int(lost.sum())) < good).astype(float)
    old = sim.judged(rng, truth, se, sp)
    status = np.where(lost, "failed", "scored").astype(object)
    before, after = sim.scores(old, "faithfulness"), sim.scores(np.where(lost, 0.0, old), "faithfulness", status=status)
    return sim.decided(before, after, Threshold(margin=margin), sim.labelled_judge(rng, se, sp, 500, 500))
