"""The gate's word, situation by situation (design 11)."""

import numpy as np
import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.summary import summarise
from ragbench_dagster.results import GateDecision
from ragbench_dagster.store import write_json

METRICS = "metrics: [faithfulness, 'hit_rate@5', 'mrr@10']\nsystems: {logged: {kind: logged}}\n"


def shares(n, passing):
    """`passing` ones, then zeros, spread evenly over the examples."""
    values = np.zeros(n)
    values[np.round(np.linspace(0, n - 1, passing)).astype(int)] = 1
    return values


TWO = "systems: {{{}: {{kind: logged}}, {}: {{kind: logged}}}}\n"


@pytest.fixture
def decided(maker):
    """Settings and scores of one night -> (result, maker)."""

    def run(thresholds, faithfulness=0.95, hits=0.9, mrr=None, n=400, closed=(), calibrated=True, **night):
        made = maker(METRICS + thresholds, n=n)
        given = {
            "faithfulness": shares(n, round(n * faithfulness)) if isinstance(faithfulness, float) else faithfulness,
            "hit_rate@5": shares(n, round(n * hits)) if isinstance(hits, float) else hits,
            "mrr@10": np.full(n, 0.7) if mrr is None else mrr,
        }
        day = made.night({"logged": given}, **night)
        if calibrated:
            made.calibrated(["faithfulness"], closed=list(closed))
        return decide(made.ws, day), made

    return run


def closed(kind, reason="reason"):
    return {"kind": kind, "reason": reason}


def test_every_primary_bound_above_its_floor_passes(decided):
    found, made = decided("thresholds: {faithfulness: {min: 0.85}, 'hit_rate@5': {min: 0.80}}\n")
    assert (found.verdict, found.exit_code) == ("pass", 0)
    assert found.reasons == ["all 2 primary tests clear their limits"]
    assert made.ws.result("2026-11-20", GateDecision).verdict == "pass"


def test_a_rate_proven_below_its_floor_fails_with_figures_in_the_reason(decided):
    found, _ = decided("thresholds: {'hit_rate@5': {min: 0.95}}\n", hits=0.80)
    assert (found.verdict, found.exit_code) == ("fail", 1)
    assert "logged: hit_rate@5 is 0.800 [" in found.reasons[0]
    assert "at least 0.950 is asked" in found.reasons[0]


def test_a_rate_near_its_floor_is_inconclusive_and_says_how_many_examples_would_do(decided):
    found, _ = decided("thresholds: {'hit_rate@5': {min: 0.88}}\n", hits=0.90)
    assert (found.verdict, found.exit_code) == ("inconclusive", 3)
    assert "examples would show it" in found.reasons[0]
    assert "would have shown in 3 of 4 nights is" in found.reasons[0]
    assert found.rows[0].needed > 400


def test_without_thresholds_there_is_nothing_to_pass(decided):
    found, _ = decided("thresholds: {}\n")
    assert found.verdict == "inconclusive"
    assert "no primary test: set thresholds in ragbench.yaml" in found.reasons[0]


def test_too_few_examples_can_fail_but_never_pass(decided):
    good, _ = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n", n=100)
    bad, _ = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n", n=100, hits=0.1)
    assert (good.verdict, bad.verdict) == ("inconclusive", "fail")
    assert "only 100 examples, 200 are needed" in good.reasons[0]


def test_a_sampled_gate_says_in_advance_that_it_cannot_pass(decided):
    found, _ = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n", n=100, sample=100)
    assert "a sampled gate on 100 examples can only fail or be inconclusive" in found.reasons[0]


@pytest.mark.parametrize("kind", ["floating", "drifted", "warning", "disagrees", "key"])
def test_a_judge_that_went_wrong_is_never_green_though_only_retrieval_has_thresholds(decided, kind):
    found, _ = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n", closed=[closed(kind, "the judge went wrong")])
    assert found.verdict == "inconclusive"
    assert found.reasons == ["faithfulness: the judge went wrong"]


@pytest.mark.parametrize("kind", ["floating", "drifted", "disagrees", "key", "unchecked", "probes", "sentinel"])
def test_retrieval_still_fails_while_the_judge_is_closed(decided, kind):
    text = "thresholds: {faithfulness: {min: 0.5}, 'hit_rate@5': {min: 0.95}}\n"
    found, _ = decided(text, hits=0.7, faithfulness=0.1, closed=[closed(kind)])
    assert found.verdict == "fail"
    assert "hit_rate@5" in found.reasons[0]
    tested = {r.metric for r in found.rows if r.p is not None}
    assert tested == {"hit_rate@5"}  # a closed judge cannot fail its metric either


def test_a_first_drift_alarm_bars_pass_and_a_loss_fails_in_spite_of_it(decided):
    text = "thresholds: {faithfulness: {min: 0.5}}\n"
    warned, _ = decided(text, closed=[closed("warning", "the judge may have drifted")])
    assert warned.verdict == "inconclusive"
    assert warned.reasons == ["faithfulness: the judge may have drifted"]
    lost, _ = decided(text, faithfulness=0.1, closed=[closed("warning")])
    assert lost.verdict == "fail"
    shut, _ = decided(text, faithfulness=0.1, closed=[closed("drifted")])
    assert shut.verdict == "inconclusive"


@pytest.mark.parametrize("kind", ["unchecked", "probes", "sentinel"])
def test_an_unchecked_judge_matters_only_where_a_threshold_uses_it(decided, kind):
    unused, _ = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n", closed=[closed(kind)])
    used, _ = decided("thresholds: {faithfulness: {min: 0.5}, 'hit_rate@5': {min: 0.5}}\n", closed=[closed(kind)])
    assert (unused.verdict, used.verdict) == ("pass", "inconclusive")
    assert unused.notes == ["faithfulness: reason"]


def test_a_night_without_calibration_is_unchecked(decided):
    found, _ = decided("thresholds: {faithfulness: {min: 0.5}}\n", calibrated=False)
    assert found.verdict == "inconclusive"
    assert "faithfulness: the judge was not calibrated tonight" in found.reasons


def test_low_coverage_closes_the_metric_and_says_what_was_lost(decided):
    values = np.array([1.0] * 320 + ["unparsable"] * 50 + ["refused"] * 30, dtype=object)
    found, _ = decided("thresholds: {faithfulness: {min: 0.5}}\n", faithfulness=values)
    assert found.verdict == "inconclusive"
    assert found.reasons == ["logged faithfulness: only 80 % scored, 90 % are needed (30 refused, 50 unparsable)"]


def test_what_does_not_apply_is_not_lost_coverage(decided):
    values = np.array([1.0] * 285 + [0.0] * 15 + [None] * 100, dtype=object)
    assert decided("thresholds: {faithfulness: {min: 0.5}}\n", faithfulness=values)[0].verdict == "pass"


def test_no_scored_answer_is_inconclusive_and_never_zero(decided):
    found, _ = decided("thresholds: {faithfulness: {min: 0.5}}\n", faithfulness=np.array(["error"] * 400, dtype=object))
    assert found.verdict == "inconclusive"
    assert found.rows[0].value is None


def test_a_metric_that_applies_to_no_system_is_named(decided):
    found, _ = decided("thresholds: {'mrr@10': {min: 0.5}}\n", mrr=np.array([None] * 400, dtype=object))
    assert found.reasons[0] == "mrr@10: no system has an answer that it applies to"


def test_a_system_of_the_gate_without_answers_is_missing(maker):
    made = maker(
        "metrics: ['hit_rate@5']\nthresholds: {'hit_rate@5': {min: 0.5}}\ngate: {systems: [logged, prod]}\n"
        + TWO.format("logged", "prod")
    )
    day = made.night({"logged": {"hit_rate@5": np.ones(300)}})
    found = decide(made.ws, day)
    assert found.verdict == "inconclusive"
    assert "prod: no answers tonight" in found.reasons[0]


def test_the_verdict_is_the_worst_over_the_systems(maker):
    made = maker(
        "metrics: ['hit_rate@5']\nthresholds: {'hit_rate@5': {min: 0.6}}\ngate: {systems: [good, bad]}\n"
        + TWO.format("good", "bad")
    )
    day = made.night({"good": {"hit_rate@5": np.ones(300)}, "bad": {"hit_rate@5": shares(300, 90)}})
    found = decide(made.ws, day)
    assert found.verdict == "fail"
    assert found.reasons[0].startswith("bad: hit_rate@5")


@pytest.mark.parametrize("before", [None, 0.9])
def test_a_metric_that_a_system_has_lost_is_not_waved_through_and_one_it_never_had_is(maker, before):
    """A system that returns no passages any more has lost its index: the other one's hits must not pass for it."""
    made = maker(
        "metrics: ['hit_rate@5']\nthresholds: {'hit_rate@5': {min: 0.6}}\ngate: {systems: [finds, silent]}\n"
        + TWO.format("finds", "silent")
    )
    nothing = np.array([None] * 300, dtype=object)
    earlier = nothing if before is None else shares(300, int(before * 300))
    for day, silent in (("2026-11-17", earlier), ("2026-11-18", nothing), ("2026-11-19", nothing)):
        made.night({"finds": {"hit_rate@5": np.ones(300)}, "silent": {"hit_rate@5": silent}}, day=day)
        summarise(made.ws, day)
    found = decide(made.ws, "2026-11-19")
    assert found.verdict == ("pass" if before is None else "inconclusive")
    told = any("silent: hit_rate@5" in r and "scored on 2026-11-17, applies to no answer" in r for r in found.reasons)
    assert told == (before is not None)


def test_a_changed_release_cannot_be_trusted(decided):
    found, made = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n")
    assert found.verdict == "pass"
    path = made.ws.release(made.release) / "examples.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    again = decide(made.ws, "2026-11-20")
    assert again.verdict == "inconclusive"
    assert "the release cannot be trusted" in again.reasons[0]


def test_personal_data_left_in_the_window_closes_although_no_check_ran(decided):
    found, made = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n")
    write_json(made.ws.traffic("2026-11-10") / "privacy.json", {"left_over": {"EMAIL_ADDRESS": 2}})
    again = decide(made.ws, "2026-11-20")
    assert (found.verdict, again.verdict) == ("pass", "inconclusive")
    assert again.reasons == ["personal data is left after scrubbing: 2026-11-10: 2"]
    (made.ws.traffic("2026-11-10") / "privacy.json").unlink()
    (made.ws.traffic("2026-11-10") / "scrubbed.parquet").touch()
    assert decide(made.ws, "2026-11-20").reasons == ["personal data is left after scrubbing: 2026-11-10: not searched"]


def test_scrubbing_below_its_floor_closes(decided):
    _, made = decided("thresholds: {'hit_rate@5': {min: 0.5}}\n")
    write_json(made.ws.night("2026-11-20") / "scrub_quality.json", {"below_floor": ["PERSON 0.70 < 0.80"]})
    assert "scrubbing is below its floor: PERSON" in decide(made.ws, "2026-11-20").reasons[0]


def test_a_failing_slice_fails_and_a_thin_one_need_not_pass(decided):
    n = 400
    hits = np.array([1.0 if i % 2 == 0 else float(i % 4 == 1) for i in range(n)])  # category b: half
    found, _ = decided("thresholds: {'hit_rate@5': {min: 0.6, slices: {b: 0.8}}}\n", hits=hits, n=n)
    assert found.verdict == "fail"
    assert "hit_rate@5 in b is 0.500 [" in found.reasons[0]
    quiet, _ = decided("thresholds: {'hit_rate@5': {min: 0.6, slices: {a: 0.99, nowhere: 0.5}}}\n", hits=hits, n=n)
    assert quiet.verdict == "pass"


def test_a_warning_never_changes_the_verdict(decided):
    text = "thresholds: {'hit_rate@5': {min: 0.5}, 'mrr@10': {min: 0.9, severity: warn}}\n"
    found, _ = decided(text, mrr=np.linspace(0.1, 0.7, 400))
    assert found.verdict == "pass"
    assert found.notes[0].startswith("warning: logged: mrr@10")


def test_a_guard_can_fail_and_need_not_pass(decided):
    text = "thresholds: {'hit_rate@5': {min: 0.5}, 'mrr@10': {min: %s, role: guard}}\n"
    near, _ = decided(text % 0.4, mrr=np.linspace(0.1, 0.7, 400))
    far, _ = decided(text % 0.9, mrr=np.linspace(0.1, 0.7, 400))
    assert (near.verdict, far.verdict) == ("pass", "fail")


@pytest.mark.parametrize(("p95", "verdict"), [(1000, "pass"), (9000, "fail")])
def test_latency_percentile(decided, p95, verdict):
    times = list(np.linspace(10, p95, 400))
    found, _ = decided("thresholds: {latency_p95_ms: {max: 4000}}\n", latency=times)
    assert found.verdict == verdict


def test_few_answers_cannot_show_a_99th_percentile_and_the_gate_says_how_many_would(decided):
    found, _ = decided("thresholds: {latency_p99_ms: {max: 4000}}\n", n=250, latency=10.0)
    assert found.verdict == "inconclusive"
    assert found.rows[0].needed == 368  # smallest n with 1 - .99^n >= .975


def test_cost_per_question(decided):
    found, _ = decided("thresholds: {cost_per_question_usd: {max: 0.01}}\n")
    assert found.verdict == "pass"


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ("{recall@5: {min: 0.5}}", "recall@5 is not among metrics"),
        ("{latency_p95_ms: {min: 5}}", "latency_p95_ms needs max"),
        ("{'hit_rate@5': {}}", "hit_rate@5 needs min, max, margin or slices"),
    ],
)
def test_a_threshold_on_nothing_is_one_line_before_the_night(decided, thresholds, message):
    with pytest.raises(UserError, match=rf"^ragbench\.yaml: thresholds: {message}"):
        decided(f"thresholds: {thresholds}\n")


def test_the_same_night_gives_the_same_bytes(decided):
    _, made = decided("thresholds: {faithfulness: {min: 0.85}}\n")
    summarise(made.ws, "2026-11-20")
    paths = [made.ws.night("2026-11-20") / name for name in ("gate.json", "summary.json", "summary.parquet")]
    before = [p.read_bytes() for p in paths]
    summarise(made.ws, "2026-11-20")
    decide(made.ws, "2026-11-20")
    assert [p.read_bytes() for p in paths] == before


def test_a_metric_may_ask_for_more_coverage_than_the_gate(decided):
    values = np.array([1.0] * 360 + [0.0] * 20 + ["unparsable"] * 20, dtype=object)
    lax, _ = decided("thresholds: {faithfulness: {min: 0.5}}\n", faithfulness=values)
    strict, _ = decided("thresholds: {faithfulness: {min: 0.5, coverage: 0.99}}\n", faithfulness=values)
    assert (lax.verdict, strict.verdict) == ("pass", "inconclusive")


def test_a_forks_pull_request_without_a_key_has_one_reason_and_retrieval_still_decides(maker):
    """Field case ci-fork-pull-request: inconclusive, exit code 3, never green by silence."""
    text = "metrics: [faithfulness, relevancy, 'hit_rate@5']\nsystems: {logged: {kind: logged}}\n"
    for passing, verdict in ((0.9, "inconclusive"), (0.3, "fail")):
        made = maker(text + "thresholds: {faithfulness: {min: 0.5}, relevancy: {min: 0.5}, 'hit_rate@5': {min: 0.6}}\n")
        lost = np.array(["error"] * 300, dtype=object)
        scores = {"faithfulness": lost, "relevancy": lost, "hit_rate@5": shares(300, round(300 * passing))}
        day = made.night({"logged": scores})
        made.calibrated(["faithfulness", "relevancy"], closed=[closed("key", "no judge key in this run")])
        found = decide(made.ws, day)
        assert found.verdict == verdict
        assert found.reasons[-1] == "faithfulness, relevancy: no judge key in this run"


def test_the_default_floor_of_answered_is_cleared_by_a_system_that_answers_everything(maker):
    """612 of 612 answered, about 279 things: it read as 154 independent questions and closed the gate for ever."""
    made = maker(
        "metrics: ['hit_rate@5']\nthresholds: {'hit_rate@5': {min: 0.5}}\nsystems: {s: {kind: logged}}\n", n=300
    )
    release = made.make_release(expected_doc_ids=[[f"d{i // 4}"] for i in range(300)])
    day = made.night({"s": {"hit_rate@5": np.ones(300), "answered": np.ones(300)}}, release=release)
    found = decide(made.ws, day)
    assert found.verdict == "pass"
    (row,) = [r for r in found.rows if r.metric == "answered" and r.kind == "floor"]
    assert row.verdict == "pass"


def test_a_graded_head_that_broke_is_said_first_too(maker):
    """The eight most asked questions fell from 1 to 0 on mrr@10: no line, and it passed."""
    made = maker(
        "metrics: ['mrr@10']\nthresholds: {'mrr@10': {min: 0.3, margin: 0.05}}\nsystems: {s: {kind: logged}}\n", n=400
    )
    made.weights = np.r_[np.full(8, 300.0), np.full(392, 10.0)]
    release = made.make_release()
    graded = np.tile([1.0, 0.5, 0.25, 1.0], 100)
    graded[:8] = 1.0
    made.night({"s": {"mrr@10": graded}}, day="2026-11-19", release=release)
    assert decide(made.ws, "2026-11-19").verdict == "pass"
    made.night({"s": {"mrr@10": np.r_[np.zeros(8), graded[8:]]}}, day="2026-11-20", release=release)
    found = decide(made.ws, "2026-11-20")
    assert "8 of the 50 most asked questions were right" in found.reasons[0]
    assert found.verdict == "inconclusive"
