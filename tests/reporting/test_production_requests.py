"""Production is measured on its own requests: no bias where a topic breaks within the week, nothing judged twice."""

import datetime as dt

import numpy as np
import pyarrow.compute as pc
import pytest

from ragbench_dagster.dataset.canonical import form_of
from ragbench_dagster.dataset.release import pointer_file
from ragbench_dagster.evaluation.answers import answer_release
from ragbench_dagster.evaluation.pipeline import judge_night, night_release, score_retrieval_night, write_manifest
from ragbench_dagster.records import SCRUBBED
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.leaderboard import rank
from ragbench_dagster.reporting.report import write_report
from ragbench_dagster.reporting.reproduce import reproduce_night
from ragbench_dagster.reporting.scores import build_scores
from ragbench_dagster.reporting.summary import summarise, summary_for_json, summary_tables
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace, read_table, rows_table, write_json, write_table
from tests.support.night_maker import NightMaker

DAY, N = "2026-11-20", 40
SETTINGS = (
    "systems: {{logged: {{kind: logged, max_requests: {most}}}}}\nmetrics: [correctness, 'hit_rate@1', 'mrr@5']\n"
    "scrub: {{ner: 'off'}}\ndataset: {{min_examples: 10}}\n"
)


class Week:
    """Seven days of logs: every labelled question each day, topic b wrong until the last day, 40 unlabelled ones."""

    def __init__(self, root, most=2000):
        self.maker = NightMaker(root, SETTINGS.format(most=most), N)
        forms = [form_of(f"question {i}") for i in range(N)]
        assert forms == [f"question {i}" for i in range(N)]
        write_json(pointer_file(self.maker.ws, "2026-11-16"), {"release": self.maker.release})
        for ago in range(7):
            day = dt.date(2026, 11, 20) - dt.timedelta(days=ago)
            rows = [self._row(day, i, right=i % 2 == 0 or ago == 0) for i in range(N)]
            rows += [self._row(day, 1000 + i, right=True) for i in range(N)]
            rows += [{**self._row(day, 2000, right=True), "response": None, "source_nodes": None}]
            rows += [{**self._row(day, 3000, right=True), "follow_up": True}]
            rows.sort(key=lambda row: row["request_key"])
            write_table(self.maker.ws.traffic(day.isoformat()) / "scrubbed.parquet", rows_table(rows, SCRUBBED))
            write_json(self.maker.ws.traffic(day.isoformat()) / "privacy.json", {"left_over": {}, "rows": len(rows)})
        self.ws = Workspace(root, parse_settings(SETTINGS.format(most=most)))

    def _row(self, day, number, right):
        node = {"node_id": f"d{number}" if right else "d99999", "score": 1.0, "text": "text"}
        return {
            "request_key": f"{day}-{number:05d}", "day": day, "query": f"Question {number}?", "history": [],
            "timestamp": dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC),
            "response": f"answer {number}" if right else "I do not know.", "source_nodes": [node],
            "category": "ab"[number % 2], "weight": 10.0, "follow_up": False, "question": True,
        }  # fmt: skip

    def night(self):
        ws = self.ws
        self.answered = answer_release(ws, DAY, "logged", night_release(ws, DAY))
        score_retrieval_night(ws, DAY, "logged")
        self.judged = judge_night(ws, DAY, "logged")
        write_manifest(ws, DAY)
        build_scores(ws, DAY, ["logged"])
        summary = summarise(ws, DAY)
        self.ranks = rank(ws, DAY)
        decide(ws, DAY)
        return summary["systems"]["logged"]


TRUTH = (20 * 7 + 20) / (40 * 7)  # of the requests of labelled questions


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    made = Week(tmp_path_factory.mktemp("week"))
    made.found = made.night()
    return made


def test_the_share_is_that_of_the_weeks_requests_with_their_own_answers(week):
    """The latest answer of each question is right: by examples production looked perfect."""
    assert week.found["metrics"]["hit_rate@1"]["overall"]["value"] == 1.0
    own = week.found["requests"]
    assert (own["first"], own["last"], own["sampled"], own["unanswered"]) == ("2026-11-14", "2026-11-20", 567, 7)
    for metric in ("hit_rate@1", "correctness", "mrr@5"):
        row = own["metrics"][metric]
        assert row["value"] == pytest.approx(TRUTH)
        assert (row["sampled"], row["requests"], row["coverage"]) == (280, 2800.0, 1.0)
        assert row["low"] < TRUTH < row["high"]
        assert row["traffic"] == pytest.approx(0.5)


def test_it_is_said_in_words_wherever_figures_stand(week):
    words = week.found["requests"]["metrics"]["correctness"]["words"]
    assert words.startswith("production, 14-20 Nov: 57 % [")
    assert (
        "of requests answered right, as the judge sees it (280 of 2,800 requests sampled; it applies to 50 %" in words
    )
    shown = summary_for_json(week.ws, DAY)["systems"]["logged"]
    assert shown["correctness"]["words"] == words
    assert shown["hit_rate@1"]["value"] == pytest.approx(TRUTH)
    tables = {t["title"]: t["rows"] for t in summary_tables(week.ws, DAY)}
    assert ["logged", "correctness", words] in tables["Production, by the logged answers of its own requests"]
    assert "Scores" not in tables  # per example it is for comparisons and labels alone
    page = write_report(week.ws, DAY).read_text("utf-8")
    assert words.replace("&", "&amp;") in page
    row = next(r for r in week.ranks["rows"] if r["metric"] == "hit_rate@1")
    assert (row["rank"], row["value"]) == (None, pytest.approx(TRUTH))


def test_no_text_is_stored_and_equal_answers_are_judged_once(week):
    folder = week.ws.night(DAY)
    table = read_table(folder / "requests.parquet")
    assert "question 1" not in str(table.to_pylist()).lower()
    judged = table.filter(pc.and_(pc.equal(table["metric"], "correctness"), pc.is_valid(table["key"])))
    # 40 right answers, and 20 questions that were also answered wrongly; each on several days
    scored = judged.filter(pc.equal(judged["status"], "scored"))
    assert len(set(scored["key"].to_pylist())) == 60
    assert scored.num_rows == 280


def test_the_night_again_is_the_same_bytes_and_reproduces(week):
    files = {p: p.read_bytes() for p in week.ws.night(DAY).rglob("*.parquet")}
    week.night()
    assert week.judged.calls == 0
    assert {p: p.read_bytes() for p in week.ws.night(DAY).rglob("*.parquet")} == files
    assert reproduce_night(week.ws, DAY)["same"]


def test_more_requests_than_are_judged_are_thinned_evenly_and_stand_for_as_many(tmp_path):
    made = Week(tmp_path, most=140)
    made.night()
    table = read_table(made.ws.night(DAY, "logged") / "requests.parquet")
    assert table.num_rows == 140
    assert sum(table["weight"].to_pylist()) == pytest.approx(5600)
    days = np.unique(table["day"].to_pylist(), return_counts=True)[1]
    assert days.tolist() == [20] * 7
    own = table.group_by("category").aggregate([("weight", "sum")])["weight_sum"].to_pylist()
    assert own == pytest.approx([2800, 2800])


def gated(week, thresholds):
    """The gate's word on the week with other thresholds; nothing is run again."""
    text = SETTINGS.format(most=2000) + f"thresholds: {thresholds}\n"
    return decide(Workspace(week.ws.root, parse_settings(text)), DAY)


def test_a_floor_on_production_decides_on_its_requests(week):
    """By its latest answers production reads 1.0 and cleared any floor; its users got .571."""
    found = gated(week, "{'hit_rate@1': {min: 0.7, slices: {b: 0.7}}}")
    assert found.verdict == "fail"
    rows = {r.part: r for r in found.rows}
    shown = week.found["requests"]["metrics"]["hit_rate@1"]
    assert (rows["overall"].value, rows["overall"].low, rows["overall"].high) == pytest.approx(
        (TRUTH, shown["low"], shown["high"])
    )
    assert rows["overall"].per == "request"
    assert rows["b"].value == pytest.approx(20 / 140)
    assert found.reasons[0].startswith("logged: hit_rate@1 in b per request is 0.143 [")
    assert gated(week, "{'hit_rate@1': {min: 0.45}}").verdict == "pass"


def test_no_margin_compares_production_and_it_says_so(week):
    found = gated(week, "{'hit_rate@1': {min: 0.45, margin: 0.05}}")
    assert found.verdict == "pass"
    assert any("no margin compares them" in note for note in found.notes)


def test_a_judged_floor_on_production_needs_a_judge_that_can_be_corrected_for(week):
    found = gated(week, "{correctness: {min: 0.2}}")
    assert found.verdict == "inconclusive"
    week.maker.calibrated(["correctness"], day=DAY)
    try:
        (row,) = [r for r in gated(week, "{correctness: {min: 0.2}}").rows if r.metric == "correctness"]
        assert row.basis == "calibration"
        assert row.low < TRUTH < row.high
        assert row.independent < week.found["requests"]["metrics"]["correctness"]["n_effective"]
    finally:
        (week.ws.night(DAY) / "calibration.json").unlink()
