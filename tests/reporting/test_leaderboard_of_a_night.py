"""Ranks: shared where systems cannot be told apart; conditions on every row."""

import numpy as np
import pytest

from ragbench_dagster.reporting.gate.guards import guards
from ragbench_dagster.reporting.leaderboard import leaderboard_table, rank
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.scores import build_scores
from ragbench_dagster.reporting.summary import summarise

N = 500


@pytest.fixture
def ranked(maker):
    def run(metrics, **scores):
        made = maker("metrics: [faithfulness, 'hit_rate@5', 'mrr@10']\n", n=N)
        day = made.night({name: {metrics: values} for name, values in scores.items()})
        made.calibrated(["faithfulness"])
        summarise(made.ws, day)
        return rank(made.ws, day)

    return run


def ranks(found):
    return {row["system"]: row["rank"] for row in found["rows"] if row["metric"] != "answered"}


def rates(seed, rate):
    return (np.random.default_rng(seed).random(N) < rate).astype(float)


def test_systems_that_cannot_be_told_apart_share_a_rank(ranked):
    found = ranked("hit_rate@5", one=rates(1, 0.8), two=rates(2, 0.8), low=rates(3, 0.4))
    assert ranks(found) == {"one": 1, "two": 1, "low": 3}
    notes = {row["system"]: row["note"] for row in found["rows"]}
    assert notes["one"] == "cannot be told apart from two"
    assert {(p["better"], p["worse"]) for p in found["pairs"]} == {("one", "low"), ("two", "low")}


def test_identical_systems_share_the_first_rank(ranked):
    same = rates(1, 0.7)
    assert set(ranks(ranked("mrr@10", one=same, two=same)).values()) == {1}


def test_a_system_without_scores_has_no_rank(ranked):
    found = ranked("faithfulness", one=rates(1, 0.8), none=np.array(["error"] * N, dtype=object))
    row = next(r for r in found["rows"] if (r["system"], r["metric"]) == ("none", "faithfulness"))
    assert (row["rank"], row["value"], row["note"]) == (None, None, "no scored answer")


def test_every_row_carries_its_conditions(ranked):
    found = ranked("faithfulness", one=rates(1, 0.8))
    row = next(r for r in found["rows"] if r["metric"] == "faithfulness")
    assert (row["judge"], row["template"], row["version"], row["day"], row["n"]) == (
        "fake judge",
        "t",
        "v1",
        "2026-11-20",
        N,
    )
    assert row["release"].startswith("2026-11-16-")
    table = leaderboard_table(found)
    assert len(table["rows"][0]) == len(table["columns"])


def test_graded_metrics_are_ranked_by_paired_means(ranked):
    rng = np.random.default_rng(4)
    base = rng.choice([0.0, 0.25, 0.5, 1.0], N)
    found = ranked("mrr@10", good=np.clip(base + 0.1, 0, 1), bad=base)
    assert ranks(found) == {"good": 1, "bad": 2}


def test_chance_puts_identical_systems_apart_in_few_nights(maker):
    """Holm over the pairs keeps the chance of any false order at 5 % a metric."""
    from ragbench_dagster.stats.paired import compare_counts
    from ragbench_dagster.stats.power import holm

    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(400):
        p = []
        for _ in range(6):
            gains, losses, _ = rng.multinomial(N, [0.05, 0.05, 0.9])
            one, other = (compare_counts(int(a), int(b), N).p_loss for a, b in ((gains, losses), (losses, gains)))
            p.append(min(1.0, 2 * min(one, other)))
        wrong += min(holm(p)) <= 0.05
    assert wrong / 400 <= 0.05


def test_rows_made_under_other_conditions_are_not_ranked_with_tonights(maker):
    made = maker("metrics: [faithfulness, 'hit_rate@5']\n", n=N)
    old = made.make_release("2026-11-09", query=[f"older {i}" for i in range(N)])
    scores = {"faithfulness": rates(1, 0.8), "hit_rate@5": rates(2, 0.8)}
    day = made.night({"answered_for_another_release": scores}, release=old)
    made.night({"judged_by_another": scores}, keys="another judge")
    made.night(
        {"tonight": scores},
        systems=dict.fromkeys(["answered_for_another_release", "judged_by_another", "tonight"], "v"),
    )
    build_scores(made.ws, day, ["answered_for_another_release", "judged_by_another", "tonight"])
    made.calibrated(["faithfulness"])
    found = rank(made.ws, day)
    ranked = {(r["metric"], r["system"]) for r in found["rows"] if r["rank"] is not None and r["metric"] != "answered"}
    assert ranked == {("faithfulness", "tonight"), ("hit_rate@5", "tonight"), ("hit_rate@5", "judged_by_another")}
    notes = {(r["metric"], r["system"]): r["note"] for r in found["rows"]}
    assert "judged by another judge" in notes["faithfulness", "judged_by_another"]
    assert "answered for release 2026-11-09" in notes["hit_rate@5", "answered_for_another_release"]
    kinds = {(c.kind, c.system) for c in guards(Night.open(made.ws, day)) if c.kind == "stale"}
    assert kinds == {("stale", "answered_for_another_release"), ("stale", "judged_by_another")}
