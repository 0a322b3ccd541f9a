"""The figures of a night: what is in a mean, what stays out, and what is null rather than 0."""

import datetime as dt
import json
import math

import numpy as np
import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.summary import read_summary, summarise, summary_for_json, summary_tables
from ragbench_dagster.store import read_table

METRICS = "metrics: [faithfulness, 'hit_rate@5', 'mrr@10']\n"


def overall(summary, metric, system="s"):
    return summary["systems"][system]["metrics"][metric]["overall"]


def part(summary, metric, dimension, name, system="s"):
    rows = summary["systems"][system]["metrics"][metric]["slices"]
    (row,) = [r for r in rows if (r["dimension"], r["part"]) == (dimension, name)]
    return row


def numbers(tree):
    if isinstance(tree, dict):
        for value in tree.values():
            yield from numbers(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from numbers(value)
    elif isinstance(tree, float):
        yield tree


def test_nothing_retrieved_is_zero_and_unlabelled_stays_out(maker):
    """Field case retrieval-missing-in-the-mean: one hit, one empty list, one question without labels."""
    made = maker(METRICS, n=3)
    day = made.night({"s": {"hit_rate@5": [1.0, 0.0, None]}})
    row = overall(summarise(made.ws, day), "hit_rate@5")
    assert (row["value"], row["n"], row["coverage"]) == (0.5, 2, 1.0)
    assert row["statuses"] == {"not_applicable": 1, "scored": 2}


def test_only_scored_verdicts_count_and_the_rest_is_coverage(maker):
    made = maker(METRICS, n=10)
    values = [1.0, 1.0, 0.0, "unparsable", "refused", "truncated", "error", "over_budget", None, None]
    day = made.night({"s": {"faithfulness": values}})
    row = overall(summarise(made.ws, day), "faithfulness")
    assert row["value"] == pytest.approx(2 / 3)
    assert row["coverage"] == pytest.approx(3 / 8)


def test_a_night_where_nothing_was_scored_has_nulls_and_no_nan(maker):
    made = maker(METRICS, n=20)
    day = made.night({"s": {"faithfulness": ["error"] * 20, "mrr@10": [None] * 20}}, latency=None)
    summary = summarise(made.ws, day)
    row = overall(summary, "faithfulness")
    assert (row["value"], row["low"], row["high"], row["n"], row["coverage"]) == (None, None, None, 0, 0.0)
    assert overall(summary, "mrr@10")["coverage"] is None
    text = (made.ws.night(day) / "summary.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in summary.json"))
    assert all(map(math.isfinite, numbers(summary)))
    table = read_table(made.ws.night(day) / "summary.parquet")
    assert not any(isinstance(v, float) and math.isnan(v) for row in table.to_pylist() for v in row.values())
    assert summary_tables(made.ws, day)
    assert summary_for_json(made.ws, day)["systems"]["s"]["latency_p95_ms"]["value"] is None


def test_figures_of_run_json(maker):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    made = maker(METRICS, n=200)
    day = made.night({"s": {"faithfulness": np.r_[np.ones(150), np.zeros(50)]}}, latency=list(np.arange(200.0)))
    made.calibrated(["faithfulness"], day=day)
    summarise(made.ws, day)
    found = summary_for_json(made.ws, day)
    figures = found["systems"]["s"]["faithfulness"]
    assert {k: figures[k] for k in ("value", "n", "coverage")} == {"value": 0.75, "n": 200, "coverage": 1.0}
    wilson = proportion.proportion_confint(150, 200, method="wilson")
    assert (figures["low"], figures["high"]) == pytest.approx(wilson, abs=1e-12)
    assert found["systems"]["s"]["latency_p50_ms"]["value"] == pytest.approx(99.5)
    assert found["gate"] == {"verdict": None, "reasons": []}


def test_per_request_is_the_traffic_weighted_mean(maker):
    made = maker(METRICS, n=4)
    made.weights = np.array([7.0, 1.0, 1.0, 1.0])
    day = made.night({"s": {"hit_rate@5": [1.0, 0.0, 0.0, 0.0]}})
    row = overall(summarise(made.ws, day), "hit_rate@5")
    assert row["value"] == 0.25
    assert row["per_request"]["value"] == pytest.approx(0.7)
    variance = (49 * 0.3**2 + 3 * 0.7**2) / 10**2  # one sampled request each: sum w^2 (y - p)^2 / W^2
    assert row["per_request"]["n_effective"] == pytest.approx(0.7 * 0.3 / variance)
    assert "effective requests" in row["per_request"]["note"]


def test_slices_by_category_and_by_a_column_that_the_user_names(maker):
    made = maker(METRICS + "slices: [category, label_level]\n", n=100, categories=("a", "b", "b", "b"))
    day = made.night({"s": {"hit_rate@5": [float(i % 4 == 0) for i in range(100)]}})
    summary = summarise(made.ws, day)
    assert part(summary, "hit_rate@5", "category", "a")["value"] == 1.0
    assert part(summary, "hit_rate@5", "category", "b")["n"] == 75
    assert part(summary, "hit_rate@5", "label_level", "document")["n"] == 100


def test_an_unknown_slice_is_one_line_that_lists_the_columns(maker):
    made = maker(METRICS + "slices: [colour]\n", n=5)
    day = made.night({"s": {"hit_rate@5": [1.0] * 5}})
    with pytest.raises(UserError, match=r"slices: the release has no column 'colour'; it has category"):
        summarise(made.ws, day)


def test_new_questions_stand_beside_known_ones(maker):
    made = maker(METRICS, n=40)
    first = [dt.date(2026, 11, 12) if i < 10 else dt.date(2026, 9, 1) for i in range(40)]
    release = made.make_release("2026-11-17", first_day=first)
    day = made.night({"s": {"hit_rate@5": [0.0] * 10 + [1.0] * 30}}, release=release)
    summary = summarise(made.ws, day)
    assert part(summary, "hit_rate@5", "age", "new")["value"] == 0.0
    assert part(summary, "hit_rate@5", "age", "known")["value"] == 1.0


def test_many_categories_are_pooled_and_none_is_lost(maker):
    made = maker(METRICS, n=120, categories=[f"c{i}" for i in range(60)])
    day = made.night({"s": {"hit_rate@5": [1.0] * 120}})
    rows = [
        r
        for r in summarise(made.ws, day)["systems"]["s"]["metrics"]["hit_rate@5"]["slices"]
        if r["dimension"] == "category"
    ]
    assert len(rows) == 51
    assert sum(r["n"] for r in rows) == 120


def test_scores_of_a_graded_metric_keep_their_scale_beside_the_passing_share(maker):
    made = maker(METRICS, n=11)
    day = made.night({"s": {"faithfulness": list(np.linspace(0, 1, 11))}})
    row = overall(summarise(made.ws, day), "faithfulness")
    assert (row["mean_score"], row["p10"], row["p50"], row["p90"]) == pytest.approx((0.5, 0.1, 0.5, 0.9))


def test_the_change_against_the_night_before_is_paired(maker):
    made = maker(METRICS, n=100)
    old = np.r_[np.ones(60), np.zeros(40)]
    made.night({"s": {"hit_rate@5": old}}, day="2026-11-19")
    new = old.copy()
    new[:10] = 0
    day = made.night({"s": {"hit_rate@5": new}})
    delta = overall(summarise(made.ws, day), "hit_rate@5")["delta"]
    assert (delta["baseline"], delta["value"], delta["gains"], delta["losses"]) == ("night 2026-11-19", -0.1, 0, 10)
    assert (delta["low"], delta["high"]) == pytest.approx(
        (-0.174365, -0.055229), abs=2e-4
    )  # Wilson of 10/100, mirrored


def test_worst_cases_are_twenty_at_most_and_hold_no_question(maker):
    made = maker(METRICS, n=100)
    day = made.night({"s": {"hit_rate@5": [0.0] * 50 + [1.0] * 50, "mrr@10": [0.5] * 100}})
    worst = summarise(made.ws, day)["systems"]["s"]["worst"]
    assert len(worst) == 20
    assert {w["metric"] for w in worst} == {"hit_rate@5"}
    assert worst[0]["feedback"] == "no expected document among the first 5"
    assert "question" not in json.dumps(worst)


def test_trend_marks_what_changed(maker):
    made = maker(METRICS, n=30)
    for day, change in (("2026-11-18", {}), ("2026-11-19", {}), ("2026-11-20", {"systems": {"s": "v2"}})):
        made.night({"s": {"faithfulness": [1.0] * 30}}, day=day, **change)
        identity = {"judge": "new" if day == "2026-11-19" else "old", "template_hash": "t", "hash": "h"}
        made.calibrated(["faithfulness"], day=day, identity=identity)
        summarise(made.ws, day)
    points = read_summary(made.ws, "2026-11-20")["trend"]["s"]["faithfulness"]
    assert [p["day"] for p in points] == ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert [p["marks"] for p in points] == [[], ["judge"], ["judge", "system"]]


def test_a_night_knows_nothing_of_later_nights(maker):
    made = maker(METRICS, n=30)
    made.night({"s": {"hit_rate@5": [1.0] * 30}}, day="2026-11-18")
    first = summarise(made.ws, "2026-11-18")
    made.night({"s": {"hit_rate@5": [0.0] * 30}}, day="2026-11-19")
    summarise(made.ws, "2026-11-19")
    assert summarise(made.ws, "2026-11-18") == first


def test_hints_name_the_place_to_look(maker):
    made = maker(METRICS, n=400, categories=("fresh", "stale"))
    values = [1.0 if i % 2 == 0 or i % 10 == 1 else 0.0 for i in range(400)]
    day = made.night({"s": {"faithfulness": values, "hit_rate@5": [1.0] * 400, "mrr@10": [0.2] * 400}})
    metrics = summarise(made.ws, day)["systems"]["s"]["metrics"]
    assert "truncated contexts" in metrics["faithfulness"]["hint"]
    assert "category stale stands out" in metrics["faithfulness"]["hint"]
    assert "re-ranker" in metrics["mrr@10"]["hint"]
    assert metrics["hit_rate@5"]["hint"] is None
