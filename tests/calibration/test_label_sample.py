"""Drawing tonight's answers for people to label, and using what they wrote."""

import json

import numpy as np
import pytest

from ragbench_dagster.calibration.label_sample import label_sample
from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.summary import summarise
from tests.support.night_maker import NightMaker


@pytest.fixture
def made(tmp_path):
    maker = NightMaker(tmp_path, "metrics: [faithfulness]\n", 300)
    rng = np.random.default_rng(1)
    maker.day = maker.night({"s": {"faithfulness": (rng.random(300) < 0.8).astype(float)}})
    maker.calibrated(["faithfulness"])
    return maker


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_the_sample_is_random_fixed_and_grows(made):
    first = lines(label_sample(made.ws, made.day, "s", ["faithfulness"], 50))
    assert [row["human"] for row in first] == [{"faithfulness": None}] * 50
    places = [made.ids.index(row["sample"]["example_id"]) for row in first]
    assert 100 < np.mean(places) < 200
    more = lines(label_sample(made.ws, made.day, "s", ["faithfulness"], 80))
    assert more[:50] == first
    assert len(more) == 80


def test_labels_that_people_wrote_stay_and_are_used(made):
    path = label_sample(made.ws, made.day, "s", ["faithfulness"], 60)
    rows = lines(path)
    for place, row in enumerate(rows):
        row["human"]["faithfulness"] = place % 5 > 0
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert lines(label_sample(made.ws, made.day, "s", ["faithfulness"], 60)) == rows
    found = summarise(made.ws, made.day)["systems"]["s"]["metrics"]["faithfulness"]["overall"]
    assert found["corrected"]["method"] in ("labels", "humans_only")
    assert "60 of tonight's" in found["corrected"]["reason"] or "people's labels" in found["corrected"]["reason"]
    assert found["per_request"]["corrected"]["value"] is not None


@pytest.mark.parametrize(
    ("system", "metric", "message"),
    [("gone", "faithfulness", "no answers of the system"), ("s", "mrr@10", "no judged metric")],
)
def test_what_cannot_be_drawn_is_one_line(made, system, metric, message):
    with pytest.raises(UserError, match=message):
        label_sample(made.ws, made.day, system, [metric])
