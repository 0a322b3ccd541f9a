"""Which correction a judge metric gets: labels on tonight's own answers, the calibration set, or none."""

import json

import numpy as np
import pytest

from ragbench_dagster.reporting.summary import summarise

METRICS = "metrics: [faithfulness]\n"
N = 400


@pytest.fixture
def night(maker):
    made = maker(METRICS, n=N)
    rng = np.random.default_rng(8)
    truth = (rng.random(N) < 0.8).astype(float)
    verdicts = np.where(rng.random(N) < 0.9, truth, 1 - truth)
    day = made.night({"s": {"faithfulness": verdicts}})
    made.calibrated(["faithfulness"], table={"tp": 90, "fp": 10, "fn": 10, "tn": 90})
    return made, day, truth


def label(made, truth, rows, **change):
    lines = []
    for i in rows:
        sample = {
            "release": made.release,
            "system": "s",
            "example_id": made.ids[i],
            "answer_hash": f"h{made.ids[i]}",
            **change,
        }
        lines.append(
            {"query": f"q{i}", "response": f"r{i}", "human": {"faithfulness": int(truth[i])}, "sample": sample}
        )
    folder = made.ws.calibration
    folder.mkdir(exist_ok=True)
    (folder / "tonight.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def corrected(made, day):
    metric = summarise(made.ws, day)["systems"]["s"]["metrics"]["faithfulness"]
    return metric["overall"]["corrected"], metric


def test_the_calibration_set_corrects_where_tonight_has_no_labels(night):
    made, day, truth = night
    found, _ = corrected(made, day)
    assert found["method"] == "calibration"
    assert found["low"] < truth.mean() < found["high"]


def test_a_random_sample_of_tonights_own_answers_comes_first_and_is_checked_by_ppi(night):
    made, day, truth = night
    label(made, truth, range(0, N, 2))
    found, metric = corrected(made, day)
    assert found["method"] == "labels"
    assert "200 of tonight's own answers" in found["reason"]
    assert found["low"] < truth.mean() < found["high"]
    assert metric["ppi"]["value"] == pytest.approx(found["value"], abs=5e-3)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"answer_hash": "another"}, "200 of 200 labelled answers have changed"),
        ({"release": "2026-01-01-other"}, "drawn from another release"),
    ],
)
def test_labels_of_another_night_are_not_used_as_tonights(night, change, note):
    """They would pull tonight towards the old rate and hide a regression."""
    made, day, truth = night
    label(made, truth, range(0, N, 2), **change)
    found, metric = corrected(made, day)
    assert found["method"] == "calibration"
    assert note in found["note"]
    assert metric["ppi"] is None


def test_one_changed_answer_refuses_the_sample(night):
    made, day, truth = night
    label(made, truth, range(0, N, 2))
    path = made.ws.calibration / "tonight.jsonl"
    path.write_text(path.read_text().replace('"answer_hash": "he00000"', '"answer_hash": "old"'), encoding="utf-8")
    found, _ = corrected(made, day)
    assert (found["method"], found["note"][:8]) == ("calibration", "1 of 200")


def test_labels_of_another_system_are_not_used(night):
    made, day, truth = night
    label(made, truth, range(0, N, 2), system="other")
    assert corrected(made, day)[0]["method"] == "calibration"


def test_people_alone_where_the_judge_says_nothing(maker):
    made = maker(METRICS, n=N)
    rng = np.random.default_rng(9)
    truth = (rng.random(N) < 0.8).astype(float)
    day = made.night({"s": {"faithfulness": (rng.random(N) < 0.8).astype(float)}})
    made.calibrated(["faithfulness"])
    label(made, truth, range(0, N, 2))
    found, _ = corrected(made, day)
    assert found["method"] == "humans_only"
    assert found["value"] == pytest.approx(truth[::2].mean())


def test_no_labels_at_all_says_what_is_missing(maker):
    made = maker(METRICS, n=N)
    day = made.night({"s": {"faithfulness": np.ones(N)}})
    found, _ = corrected(made, day)
    assert (found["method"], found["value"]) == ("none", None)
    assert "label some" in found["reason"]
