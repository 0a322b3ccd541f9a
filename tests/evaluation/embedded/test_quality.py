"""How well the embedded judge agrees with people: areas under the ROC curve on human-labelled sets (issue 2)."""

import json
from pathlib import Path

import pytest
from sklearn.metrics import roc_auc_score

from ragbench_dagster.evaluation.judge_runner import stage_judge
from ragbench_dagster.settings import Judge

FLOORS = [
    ("faithfulness", "calib_mtrag", 0.93),
    ("faithfulness", "calib_begin_wow", 0.93),
    ("relevancy", "calib_feedbackqa", 0.73),
    ("correctness", "calib_evouna", 0.94),
    ("correctness", "calib_nq301", 0.82),
    ("faithfulness", "calib_summedits", 0.50),
]


@pytest.mark.parametrize(("metric", "name", "floor"), FLOORS)
def test_area_under_the_roc_curve(metric: str, name: str, floor: float, shared: Path) -> None:
    text = (shared / "data" / name / "rows.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    rows = [row for row in rows if row["human"].get(metric) is not None]
    judged = list(stage_judge(iter(rows), metric, Judge()))
    scored = [row for row in judged if row["status"] == "scored"]
    assert len(scored) >= 0.95 * len(rows)
    area = roc_auc_score([row["human"][metric] for row in scored], [row["score"] for row in scored])
    assert area >= floor


def test_one_word_that_people_changed_is_found_more_often_than_chance(shared: Path) -> None:
    """On summedits a claim whose number was exchanged: flagged far more often in wrong summaries than in right ones."""
    text = (shared / "data" / "calib_summedits" / "rows.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    flagged: dict[int, list[bool]] = {0: [], 1: []}
    for row in stage_judge(iter(rows), "faithfulness", Judge()):
        flagged[row["human"]["faithfulness"]].append("a number" in row["feedback"])
    share = {label: sum(found) / len(found) for label, found in flagged.items()}
    assert share[0] > 2 * share[1]
