"""Margins against a baseline: another system, a night, the last night that passed."""

import numpy as np
import pytest

from ragbench_dagster.reporting.gate.decide import decide

N = 1000
HEAD = "metrics: ['hit_rate@5', faithfulness]\nsystems: {prod: {kind: logged}, other: {kind: logged}}\n"


def results(seed, rate=0.8, n=N):
    return (np.random.default_rng(seed).random(n) < rate).astype(float)


def worse(values, losses, gains=0):
    """`losses` ones become zeros and `gains` zeros ones."""
    out = values.copy()
    out[np.flatnonzero(values == 1)[:losses]] = 0
    out[np.flatnonzero(values == 0)[:gains]] = 1
    return out


@pytest.fixture
def against_system(maker):
    def run(new, margin=0.03):
        made = maker(
            HEAD + f"thresholds: {{'hit_rate@5': {{margin: {margin}, baseline: other}}}}\ngate: {{systems: [prod]}}\n",
            n=N,
        )
        old = results(1)
        day = made.night({"prod": {"hit_rate@5": new(old)}, "other": {"hit_rate@5": old}})
        made.calibrated(["faithfulness"])
        return decide(made.ws, day)

    return run


def test_an_unchanged_system_passes(against_system):
    assert against_system(lambda old: old).verdict == "pass"


def test_a_large_loss_fails(against_system):
    found = against_system(lambda old: worse(old, 80, 20))
    assert found.verdict == "fail"
    assert found.reasons[0].startswith("prod: hit_rate@5 fell by 6 points (")
    assert "3 were allowed against system other" in found.reasons[0]


def test_a_proven_but_harmless_loss_does_not_fail(against_system):
    """A loss of 1.5 points, certain beyond doubt, within a margin of 3: not a fail (definition F2)."""
    found = against_system(lambda old: worse(old, 15, 0))
    (overall,) = [r for r in found.rows if r.part == "overall"]
    assert overall.p < 0.001
    assert found.verdict != "fail"


def test_an_unclear_loss_is_inconclusive_with_the_smallest_effect(against_system):
    found = against_system(lambda old: worse(old, 60, 40))
    assert found.verdict == "inconclusive"
    assert "the smallest loss this many would have shown in 3 of 4 nights" in found.reasons[0]


def test_the_baseline_system_is_not_compared_with_itself(maker):
    made = maker(HEAD + "thresholds: {'hit_rate@5': {min: 0.5, margin: 0.03, baseline: other}}\n", n=N)
    day = made.night({"prod": {"hit_rate@5": results(1)}, "other": {"hit_rate@5": results(1)}})
    made.calibrated(["faithfulness"])
    kinds = {(r.system, r.kind) for r in decide(made.ws, day).rows if r.part == "overall"}
    assert kinds == {("prod", "floor"), ("prod", "margin"), ("other", "floor")}


def nights(maker, thresholds, n=N, **more):
    return maker(HEAD + thresholds + "gate: {systems: [prod]}\n", n=n, **more)


def one(made, day, values, metric="hit_rate@5", **more):
    made.night({"prod": {metric: values}}, day=day, **more)
    made.calibrated(["faithfulness"], day=day, **more.get("judge", {}))
    return decide(made.ws, day)


def test_the_first_night_is_decided_by_its_floors_and_later_ones_by_the_margin_too(maker):
    made = nights(maker, "thresholds: {'hit_rate@5': {min: 0.5, margin: 0.03}}\n")
    old = results(2)
    first = one(made, "2026-11-18", old)
    assert first.verdict == "pass"
    assert "no night is accepted yet: the floors decide until one is" in first.notes[0]
    assert one(made, "2026-11-19", old).rows[0].kind in ("floor", "margin")
    bad = one(made, "2026-11-20", worse(old, 90, 10))
    assert bad.verdict == "fail"
    assert "since the accepted night 2026-11-18" in bad.reasons[0]
    again = one(made, "2026-11-21", old)  # the failed night is no baseline
    assert again.verdict == "pass"
    assert {r.baseline for r in again.rows if r.kind == "margin"} == {"the accepted night 2026-11-18"}


def test_a_margin_alone_cannot_be_the_first_test(maker):
    made = nights(maker, "thresholds: {'hit_rate@5': {margin: 0.03}}\n")
    found = one(made, "2026-11-18", results(2))
    assert found.verdict == "inconclusive"
    assert any("no night is accepted yet" in r and "ragbench accept" in r for r in found.reasons)


def test_a_night_named_as_baseline_must_be_there(maker):
    made = nights(maker, "thresholds: {'hit_rate@5': {min: 0.5, margin: 0.03, baseline: '2026-10-01'}}\n")
    found = one(made, "2026-11-18", results(2))
    assert found.verdict == "inconclusive"
    assert "night 2026-10-01 has no results of prod in the store" in found.reasons[0]


def test_only_shared_examples_with_equal_labels_are_compared(maker):
    """New examples fail all, and a third got new labels: neither is the system's loss."""
    made = nights(maker, "thresholds: {'hit_rate@5': {min: 0.1, margin: 0.03}}\n")
    old = results(3)
    one(made, "2026-11-18", old)
    relabelled = [[f"d{i}"] if i % 3 else [f"new{i}"] for i in range(N)]
    release = made.make_release("2026-11-19", expected_doc_ids=relabelled)
    new = np.where(np.arange(N) % 3 == 0, 0.0, old)
    found = one(made, "2026-11-20", new, release=release)
    (margin,) = [r for r in found.rows if r.kind == "margin" and r.part == "overall"]
    assert margin.n == N - len(range(0, N, 3))
    assert margin.value == 0
    assert found.verdict == "pass"


def test_verdicts_of_two_judges_are_not_compared(maker):
    made = nights(maker, "thresholds: {faithfulness: {min: 0.3, margin: 0.03, baseline: last_passed}}\n")
    old = results(4)
    first = one(made, "2026-11-18", old, metric="faithfulness")
    assert first.verdict == "pass"
    made.night({"prod": {"faithfulness": worse(old, 200)}}, day="2026-11-19", keys="other")
    identity = {"judge": "another", "evaluator": "e", "version": "1", "template_hash": "t", "hash": "other"}
    made.calibrated(["faithfulness"], day="2026-11-19", identity=identity)
    changed = decide(made.ws, "2026-11-19")
    assert changed.verdict == "inconclusive"
    assert any("the judge or its template changed since night 2026-11-18" in r for r in changed.reasons)
    made.calibrated(["faithfulness"], day="2026-11-19", identity=identity, drift={"state": "steady", "causes": []})
    accepted = decide(made.ws, "2026-11-19")
    assert accepted.verdict == "pass"
    assert any("the accepted judge starts anew" in n for n in accepted.notes)


def test_graded_scores_are_compared_by_their_paired_means(maker):
    made = maker(
        "metrics: ['mrr@10']\nsystems: {prod: {kind: logged}, other: {kind: logged}}\ngate: {systems: [prod]}\n"
        "thresholds: {'mrr@10': {margin: 0.03, baseline: other}}\n",
        n=N,
    )
    rng = np.random.default_rng(5)
    old = rng.choice([0, 0.25, 0.5, 1.0], N)
    day = made.night({"prod": {"mrr@10": np.clip(old - 0.1 * (rng.random(N) < 0.9), 0, 1)}, "other": {"mrr@10": old}})
    found = decide(made.ws, day)
    assert found.verdict == "fail"
    assert found.rows[0].value == pytest.approx(-0.067, abs=0.01)
