"""Margins since an accepted night: who accepts, what follows it over releases, and what breaks the comparison."""

import numpy as np
import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.baselines import accept_night, acceptances, needed_nights
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.reproduce import keep_until
from ragbench_dagster.reporting.summary import summarise
from ragbench_dagster.results import GateDecision

N = 1000
HEAD = "metrics: ['hit_rate@5', faithfulness]\nsystems: {prod: {kind: logged}}\n"
FLOOR_AND_MARGIN = "thresholds: {'hit_rate@5': {min: 0.5, margin: 0.03}}\n"


def results(seed, rate=0.9, n=N):
    return (np.random.default_rng(seed).random(n) < rate).astype(float)


def worse(values, losses):
    out = values.copy()
    out[np.flatnonzero(values == 1)[:: max(1, int(values.sum()) // max(losses, 1))][:losses]] = 0
    return out


def one(made, day, values, metric="hit_rate@5", **more):
    made.night({"prod": {metric: values}}, day=day, **more)
    made.calibrated(["faithfulness"], day=day)
    return decide(made.ws, day)


def margin_row(found, part="overall"):
    (row,) = [r for r in found.rows if r.kind == "margin" and r.part == part and r.metric == "hit_rate@5"]
    return row


def test_the_first_night_that_passes_its_floors_is_accepted_and_no_later_one(maker):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    assert one(made, "2026-11-17", results(1, 0.2)).verdict == "fail"
    assert acceptances(made.ws) == []
    for day in ("2026-11-18", "2026-11-19"):
        assert one(made, day, results(1)).verdict == "pass"
    (entry,) = acceptances(made.ws)
    assert (entry.night, entry.automatic, entry.when) == ("2026-11-18", True, None)
    assert made.ws.result("2026-11-19", GateDecision).accepted == "2026-11-18"


def test_the_accepted_night_run_again_with_the_same_version_renews_and_is_never_lost(maker):
    """Deciding again under a stricter threshold emptied the list, and the next night was accepted: losses forgiven."""
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    one(made, "2026-11-18", results(1))
    first = acceptances(made.ws)
    one(made, "2026-11-18", results(2))
    (renewed,) = acceptances(made.ws)
    assert renewed.night == first[0].night
    assert renewed.scores != first[0].scores
    one(made, "2026-11-18", results(2, 0.2))
    assert acceptances(made.ws) == [renewed]


def test_another_version_on_the_accepted_night_is_not_accepted_in_its_place(maker):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    one(made, "2026-11-18", results(1))
    (first,) = acceptances(made.ws)
    one(made, "2026-11-18", results(2), systems={"prod": "v2"})
    assert acceptances(made.ws) == [first]
    found = one(made, "2026-11-19", results(2))
    assert any("was run again with other results" in reason for reason in found.reasons)


def test_a_persons_acceptance_stands_until_a_person_changes_it(maker):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    one(made, "2026-11-18", results(1))
    one(made, "2026-11-19", results(1))
    accept_night(made.ws, "2026-11-19", "Ada", "release 7")
    one(made, "2026-11-18", results(1, 0.2))
    assert [e.night for e in acceptances(made.ws)] == ["2026-11-18", "2026-11-19"]
    assert margin_row(one(made, "2026-11-20", results(1))).baseline == "the accepted night 2026-11-19"


@pytest.mark.parametrize(("by", "why", "named"), [("", "x", "--by"), ("Ada", " ", "--why")])
def test_an_acceptance_needs_a_name_and_a_reason(maker, by, why, named):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    one(made, "2026-11-18", results(1))
    with pytest.raises(UserError, match=named):
        accept_night(made.ws, "2026-11-18", by, why)
    with pytest.raises(UserError, match="no such night"):
        accept_night(made.ws, "2026-11-01", "Ada", "x")


def test_with_margins_alone_a_person_accepts_and_then_the_margin_decides(maker):
    made = maker(HEAD + "thresholds: {'hit_rate@5': {margin: 0.03}}\n", n=N)
    first = one(made, "2026-11-18", results(1))
    assert first.verdict == "inconclusive"
    assert any("ragbench accept NIGHT" in line for line in first.reasons)
    accept_night(made.ws, "2026-11-18", "Ada", "before the release")
    assert one(made, "2026-11-19", results(1)).verdict == "pass"
    assert one(made, "2026-11-20", worse(results(1), 90)).verdict == "fail"


def test_a_small_loss_every_night_fails_where_each_night_looks_like_the_one_before(maker):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    values = results(1)
    verdicts = []
    for night in range(10):
        verdicts.append(one(made, f"2026-11-{10 + night}", worse(values, 6 * night)).verdict)
    assert verdicts[0] == "pass"
    assert verdicts[9] == "fail"
    reasons = made.ws.result("2026-11-19", GateDecision).reasons
    assert any("since the accepted night 2026-11-10" in r and "fell by 5.4 points" in r for r in reasons)


def test_against_the_last_passing_night_the_loss_since_the_accepted_one_stands_beside_it(maker):
    made = maker(HEAD + "thresholds: {'hit_rate@5': {min: 0.5, margin: 0.03, baseline: last_passed}}\n", n=N)
    for night in range(6):
        found = one(made, f"2026-11-{10 + night}", worse(results(1), 5 * night))
        assert found.verdict == "pass"
    assert any("since the accepted night 2026-11-10: -2.5 points" in note for note in found.notes)


def replaced(made, start, count, day):
    """A release in which `count` examples from `start` are new ones."""
    made.ids = [f"{name}x" if start <= i < start + count else name for i, name in enumerate(made.ids)]
    return made.make_release(day)


def test_the_accepted_night_is_followed_over_later_releases(maker):
    """Each release's first night is its anchor; a loss at the turn of a release and one within it add up."""
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    truth = dict(zip(made.ids, results(1), strict=True))
    assert one(made, "2026-11-13", np.array([truth[i] for i in made.ids])).verdict == "pass"
    release = replaced(made, 0, 100, "2026-11-16")
    rng = np.random.default_rng(3)
    for name in made.ids:
        truth.setdefault(name, float(rng.random() < 0.9))
    lost = worse(np.array([truth[i] for i in made.ids]), 20)
    anchor = one(made, "2026-11-17", lost, release=release)
    row = margin_row(anchor)
    assert (row.releases, row.baseline) == (1, "the accepted night 2026-11-13")
    later = margin_row(one(made, "2026-11-18", worse(lost, 30), release=release))
    assert later.value == pytest.approx(row.value - 0.030, abs=1e-9)
    assert one(made, "2026-11-19", worse(lost, 60), release=release).verdict == "fail"
    assert needed_nights(made.ws) == {"2026-11-13", "2026-11-17"}
    summary = summarise(made.ws, "2026-11-18")["systems"]["prod"]["metrics"]["hit_rate@5"]["overall"]
    assert summary["delta"]["value"] == pytest.approx(later.value)


def test_releases_that_share_too_little_ask_for_a_new_acceptance(maker):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    one(made, "2026-11-13", results(1))
    release = replaced(made, 0, N - 10, "2026-11-16")
    found = one(made, "2026-11-17", results(1), release=release)
    assert found.verdict == "inconclusive"
    assert any("share only 10 of its questions, 20 are needed; accept a night anew" in r for r in found.reasons)


def test_an_accepted_night_that_was_run_again_with_other_results_is_no_measure(maker):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    one(made, "2026-11-18", results(1))
    accept_night(made.ws, "2026-11-18", "Ada", "x")
    made.night({"prod": {"hit_rate@5": results(2)}}, day="2026-11-18")
    found = one(made, "2026-11-19", results(1))
    assert found.verdict == "inconclusive"
    assert any("2026-11-18 was run again with other results; accept a night anew" in r for r in found.reasons)


def test_a_changed_judge_asks_for_a_new_acceptance(maker):
    made = maker(HEAD + "thresholds: {faithfulness: {min: 0.3, margin: 0.1}}\n", n=N)
    one(made, "2026-11-18", results(1), metric="faithfulness")
    made.night({"prod": {"faithfulness": results(1)}}, day="2026-11-19", keys="other")
    identity = {"judge": "another", "evaluator": "e", "version": "1", "template_hash": "t", "hash": "other"}
    made.calibrated(["faithfulness"], day="2026-11-19", identity=identity)
    found = decide(made.ws, "2026-11-19")
    assert found.verdict == "inconclusive"
    assert any("the judge or its template changed" in r and "ragbench accept" in r for r in found.reasons)


def test_a_sampled_night_is_measured_against_the_same_examples_of_the_accepted_full_night(maker):
    """`run --sample 100` in a pull request: margins were never tested."""
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    values = results(1)
    one(made, "2026-11-18", values)
    full = made.ws
    made.ws = full.sampled(100)
    keep = np.arange(N) % 10 == 0
    sampled = np.where(keep, worse(values, 400), np.nan).astype(object)
    sampled[~keep] = None
    made.night({"prod": {"hit_rate@5": sampled}}, day="2026-11-18", sample=100)
    made.calibrated(["faithfulness"], day="2026-11-18")
    found = decide(made.ws, "2026-11-18")
    row = margin_row(found)
    assert (row.n, row.baseline) == (100, "the accepted night 2026-11-18")
    assert found.verdict == "fail"
    assert [e.night for e in acceptances(full)] == ["2026-11-18"]


def test_an_old_night_is_decided_again_as_its_acceptances_then_were(maker, tmp_path):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    for day in ("2026-11-17", "2026-11-18", "2026-11-19"):
        one(made, day, results(1))
    accept_night(made.ws, "2026-11-18", "Ada", "x")
    shadow = type(made.ws)(tmp_path / "shadow", made.ws.settings)
    shadow.store.mkdir(parents=True)
    keep_until(made.ws, shadow, "2026-11-17")
    assert [e.night for e in acceptances(shadow)] == ["2026-11-17"]


def test_no_clock_in_what_the_gate_accepts_by_itself(maker):
    made = maker(HEAD + FLOOR_AND_MARGIN, n=N)
    one(made, "2026-11-18", results(1))
    before = (made.ws.store / "accepted.json").read_bytes()
    one(made, "2026-11-18", results(1))
    assert (made.ws.store / "accepted.json").read_bytes() == before
    assert Night.open(made.ws, "2026-11-18").systems == ["prod"]
