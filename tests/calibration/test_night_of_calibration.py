"""judge_calibration[D]: what closes the gate, what is judged afresh, and what a rerun leaves untouched."""

import json

import pytest

from ragbench_dagster.calibration.calibrate import agreement_rows, calibrate, drift_line
from ragbench_dagster.calibration.probes import load_probes
from ragbench_dagster.calibration.sentinel import accept_reference, reference_path, rounds_line
from ragbench_dagster.errors import UserError
from tests.support.calibration_judge import METRIC, FakeJudge, install, workspace

DAY = "2026-11-26"  # a Thursday; its week's Monday is the 23rd


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("FAKE_KEY", "k")


@pytest.fixture
def judge(monkeypatch):
    fake = FakeJudge()
    install(monkeypatch, fake)
    return fake


def kinds(found):
    return [entry["kind"] for entry in found["metrics"][METRIC]["closed"]]


def test_a_judge_that_agrees_with_people_is_usable(tmp_path, judge):
    found = calibrate(workspace(tmp_path, 60, 60, wrong=4), DAY)
    metric = found["metrics"][METRIC]
    assert metric["table"] == {"tp": 60, "fp": 4, "fn": 0, "tn": 56}
    assert metric["usable"]
    assert metric["closed"] == []
    assert agreement_rows(found)[0][:2] == [METRIC, 120]


def test_a_judge_that_disagrees_with_people_is_closed(tmp_path, judge):
    assert kinds(calibrate(workspace(tmp_path, 60, 60, wrong=50), DAY)) == ["disagrees"]


@pytest.mark.parametrize(("good", "bad"), [(60, 0), (0, 60), (60, 4), (0, 0)])
def test_a_judge_without_both_classes_is_unchecked_and_kappa_is_null(tmp_path, judge, good, bad):
    found = calibrate(workspace(tmp_path, good, bad), DAY)
    assert kinds(found) == ["unchecked"]
    assert found["metrics"][METRIC]["kappa"] is None


def test_an_undated_model_floats(tmp_path, judge):
    ws = workspace(tmp_path, 60, 60)
    floating = ws.settings.judge.model_copy(update={"model": "latest"})
    ws = type(ws)(ws.root, ws.settings.model_copy(update={"judge": floating}))
    assert kinds(calibrate(ws, DAY)) == ["floating"]


def test_without_a_key_there_is_one_reason_and_no_figure_is_invented(tmp_path, judge, monkeypatch):
    monkeypatch.delenv("FAKE_KEY")
    judge.status = "error"
    found = calibrate(workspace(tmp_path, 60, 60), DAY)
    assert found["metrics"][METRIC]["closed"] == [{"kind": "key", "reason": "no judge key in this run"}]
    assert found["metrics"][METRIC]["accuracy"] is None


def test_a_night_in_the_ledger_needs_no_key(tmp_path, judge, monkeypatch):
    monkeypatch.delenv("FAKE_KEY")
    assert kinds(calibrate(workspace(tmp_path, 60, 60), DAY)) == []


def test_a_sentinel_without_verdicts_closes(tmp_path, judge):
    judge.status = "unparsable"
    assert "sentinel" in kinds(calibrate(workspace(tmp_path, 60, 60), DAY))


def test_the_sentinel_is_judged_every_night_and_the_rest_once_a_week(tmp_path, judge):
    ws = workspace(tmp_path, 60, 60, "calibration: {sentinel: 30}\n")
    calibrate(ws, DAY)
    probes = len(load_probes(METRIC))
    assert judge.rounds.count(DAY) == 30
    assert judge.rounds.count("week 2026-11-23") == 90 + probes
    first = calibrate(ws, DAY)["metrics"][METRIC]["sentinel"]["verdicts"]
    assert first.keys() == calibrate(ws, "2026-11-27")["metrics"][METRIC]["sentinel"]["verdicts"].keys()


def test_a_night_made_again_leaves_the_same_bytes(tmp_path, judge):
    ws = workspace(tmp_path, 60, 60)
    calibrate(ws, DAY)
    path = ws.night(DAY) / "calibration.json"
    before = path.read_bytes()
    calibrate(ws, DAY)
    assert path.read_bytes() == before


def test_drift_without_a_reference_is_not_set_up_and_closes_nothing(tmp_path, judge):
    found = calibrate(workspace(tmp_path, 60, 60), DAY)
    assert found["metrics"][METRIC]["drift"]["state"] == "not set up"
    assert drift_line(found) == (False, "Drift is not set up: no accepted reference (ragbench calibrate --accept).")


def test_accepting_needs_a_name_and_a_reason_and_records_them(tmp_path, judge):
    ws = workspace(tmp_path, 60, 60)
    with pytest.raises(UserError, match="who accepts the judge and why"):
        accept_reference(ws, "", "because")
    accept_reference(ws, "Ada", "first judge", when="2026-11-25T10:00:00+00:00")
    assert judge.calls == 5 * 120
    found = calibrate(ws, DAY)
    assert found["reference"] == {"who": "Ada", "why": "first judge", "when": "2026-11-25T10:00:00+00:00"}
    assert found["metrics"][METRIC]["drift"]["state"] == "steady"


def test_a_first_alarm_warns_and_a_second_one_running_closes_the_gate(tmp_path, judge):
    ws = workspace(tmp_path, 100, 100)
    accept_reference(ws, "Ada", "first", when="t")
    judge.flipped = 0.10
    first = calibrate(ws, DAY)
    drift = first["metrics"][METRIC]["drift"]
    assert (kinds(first), drift["state"]) == (["warning"], "warning")
    assert first["metrics"][METRIC]["usable"]
    assert drift["odd"] >= drift["alarm_at"]
    drifted, line = drift_line(first)
    assert not drifted
    assert "one more such night closes the gate" in line
    assert f"{drift['odd']} of 200 sentinel verdicts are the odd one out of six; chance explains" in line

    second = calibrate(ws, "2026-11-27")
    assert (kinds(second), second["metrics"][METRIC]["drift"]["state"]) == (["drifted"], "drifted")
    drifted, line = drift_line(second)
    assert drifted
    assert "the night before alarmed too" in line
    assert "\n" not in line
    assert kinds(calibrate(ws, DAY)) == ["warning"]  # made again, a night reads the nights before it alone


def test_a_steady_night_between_two_alarms_keeps_the_gate_open(tmp_path, judge):
    ws = workspace(tmp_path, 100, 100)
    accept_reference(ws, "Ada", "first", when="t")
    states = []
    for day, flipped in ((24, 0.1), (25, 0.0), (26, 0.1)):
        judge.flipped = flipped
        states.append(calibrate(ws, f"2026-11-{day}")["metrics"][METRIC]["drift"]["state"])
    assert states == ["warning", "steady", "warning"]


def test_an_alarm_against_another_reference_is_not_the_first_of_two(tmp_path, judge):
    ws = workspace(tmp_path, 100, 100)
    accept_reference(ws, "Ada", "first", when="t")
    judge.flipped = 0.1
    calibrate(ws, DAY)
    judge.flipped = 0.0
    accept_reference(ws, "Ada", "it was a hiccup", when="u")  # one night that alarmed, four rounds judged now
    judge.flipped = 0.3
    assert calibrate(ws, "2026-11-27")["metrics"][METRIC]["drift"]["state"] == "warning"


def test_accepting_takes_the_rounds_of_the_last_five_nights_and_pays_nothing(tmp_path, judge):
    judge.noise = 0.02
    ws = workspace(tmp_path, 60, 60)
    days = [f"2026-11-{d}" for d in range(20, 27)]
    nights = [calibrate(ws, day)["metrics"][METRIC]["sentinel"]["verdicts"] for day in days]
    before = judge.calls
    found = accept_reference(ws, "Ada", "after a week", when="t")
    assert judge.calls == before
    reference = found["metrics"][METRIC]
    assert reference["rounds"] == days[:1:-1]
    for key, (passes, rounds) in reference["votes"].items():
        assert (passes, rounds) == (sum(night[key] for night in nights[2:]), 5)
    assert rounds_line(found) == "5 rounds, of 5 nights."


def test_accepting_after_two_nights_judges_three_rounds_and_says_so(tmp_path, judge):
    ws = workspace(tmp_path, 60, 60)
    for day in ("2026-11-24", "2026-11-25"):
        calibrate(ws, day)
    before = judge.calls
    found = accept_reference(ws, "Ada", "early", when="t")
    assert judge.calls - before == 3 * 120
    assert found["metrics"][METRIC]["rounds"] == ["2026-11-25", "2026-11-24", "judged t 1", "judged t 2", "judged t 3"]
    assert rounds_line(found).startswith("5 rounds: 2 of earlier nights, 3 judged now. Accept again after five nights")


def test_accepting_a_judge_that_moved_takes_only_the_nights_since(tmp_path, judge):
    ws = workspace(tmp_path, 100, 100)
    for day in range(18, 23):
        calibrate(ws, f"2026-11-{day}")
    accept_reference(ws, "Ada", "first", when="t")
    judge.flipped = 0.1
    for day in (23, 24):
        calibrate(ws, f"2026-11-{day}")
    found = accept_reference(ws, "Ada", "the new one agrees better", when="u")
    assert found["metrics"][METRIC]["rounds"][:2] == ["2026-11-24", "2026-11-23"]
    assert calibrate(ws, "2026-11-25")["metrics"][METRIC]["drift"]["state"] == "steady"
    judge.flipped = 0.0
    assert calibrate(ws, "2026-11-26")["metrics"][METRIC]["drift"]["state"] == "warning"  # back is a move too


def test_a_row_that_missed_rounds_counts_with_those_it_has(tmp_path, judge, monkeypatch):
    ws = workspace(tmp_path, 60, 60)
    whole = judge.verdict

    def sometimes(item, round):
        judge.status = "refused" if item.example_id[0] in "01" and "accept t 1" not in round else "scored"
        judge.status = "scored" if item.example_id[0] == "1" and "accept t 2" in round else judge.status
        return whole(item, round)

    monkeypatch.setattr(judge, "verdict", sometimes)
    votes = accept_reference(ws, "Ada", "first", when="t")["metrics"][METRIC]["votes"]
    sizes = {key[0]: rounds for key, (_, rounds) in votes.items()}
    assert "0" not in sizes  # one round tells nothing
    assert sizes.pop("1") == 2
    assert set(sizes.values()) == {5}


def test_a_reference_from_before_rounds_were_kept_asks_to_accept_anew(tmp_path, judge):
    ws = workspace(tmp_path, 60, 60)
    accept_reference(ws, "Ada", "first", when="t")
    old = json.loads(reference_path(ws).read_text())
    reference = old["metrics"][METRIC]
    reference |= {"verdicts": dict.fromkeys(reference.pop("votes"), 1), "noise": 0, "judgements": 600}
    reference_path(ws).write_text(json.dumps(old))
    drift = calibrate(ws, DAY)["metrics"][METRIC]["drift"]
    assert drift["state"] == "not set up"
    assert "lacks the rounds of each row: ragbench calibrate --accept" in drift["message"]


def test_another_served_model_closes_the_gate_though_no_verdict_moved(tmp_path, judge):
    ws = workspace(tmp_path, 60, 60)
    accept_reference(ws, "Ada", "first", when="t")
    judge.model = "model-2"
    found = calibrate(ws, DAY)
    assert kinds(found) == ["drifted"]
    assert "serves another model" in found["metrics"][METRIC]["closed"][0]["reason"]


def test_a_lost_share_of_verdicts_is_noted(tmp_path, judge, monkeypatch):
    ws = workspace(tmp_path, 60, 60)
    accept_reference(ws, "Ada", "first", when="t")
    whole = judge.verdict

    def sometimes(item, round):
        judge.status = "refused" if item.example_id[0] == "0" else "scored"
        return whole(item, round)

    monkeypatch.setattr(judge, "verdict", sometimes)
    notes = calibrate(ws, DAY)["metrics"][METRIC]["drift"]["notes"]
    assert any("sentinel rows got no verdict" in note for note in notes)


def test_a_reference_of_another_judge_is_not_used(tmp_path, judge, monkeypatch):
    ws = workspace(tmp_path, 60, 60)
    accept_reference(ws, "Ada", "first", when="t")
    text = reference_path(ws).read_text().replace('"hash": "same"', '"hash": "other"')
    reference_path(ws).write_text(text)
    assert calibrate(ws, DAY)["metrics"][METRIC]["drift"]["state"] == "not set up"


def test_a_fooled_judge_is_closed_and_named_by_the_kinds_that_fooled_it(tmp_path, judge):
    judge.fooled = {"YES"}
    found = calibrate(workspace(tmp_path, 60, 60), DAY)
    probes = found["metrics"][METRIC]["probes"]
    assert "probes" in kinds(found)
    assert probes["share"] > 0.5
    assert "base64" not in probes["kinds"]
    assert "German" in probes["kinds"]


def test_probes_that_a_content_filter_blocked_are_counted_apart(tmp_path, judge, monkeypatch):
    whole = judge.verdict

    def filtered(item, round):
        judge.status = "refused" if "threat" in item.response or "shut down" in item.response else "scored"
        return whole(item, round)

    monkeypatch.setattr(judge, "verdict", filtered)
    probes = calibrate(workspace(tmp_path, 60, 60), DAY)["metrics"][METRIC]["probes"]
    assert probes["blocked"] >= 1
    assert probes["n"] + probes["blocked"] == len([p for p in load_probes(METRIC) if p.kind != "control"])


def test_the_shipped_probes_are_of_thirty_or_more_distinct_kinds_in_several_languages():
    probes = [p for p in load_probes("faithfulness") if p.kind != "control"]
    assert len({p.kind for p in probes}) == len(probes) >= 30
    assert len({p.language for p in probes}) >= 5
    assert len({p.item.example_id for p in load_probes("relevancy")}) == len(load_probes("relevancy"))
    assert load_probes("semantic_similarity") == ()
