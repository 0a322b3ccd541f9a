"""Percentiles of times with distribution-free intervals."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragbench_dagster.reporting.latency import histogram, late_share_p, percentile, provable_excess, words
from ragbench_dagster.reporting.summary import summarise, summary_tables
from ragbench_dagster.store import read_table, write_table


def test_percentile_is_numpys():
    values = np.sort(np.random.default_rng(1).lognormal(5, 1, 333))
    for q in (50, 95, 99):
        assert percentile(values, q)[0] == pytest.approx(np.percentile(values, q))


@pytest.mark.parametrize(("q", "n"), [(50, 50), (95, 200), (99, 600)])
def test_the_interval_covers_the_true_percentile(q, n):
    rng = np.random.default_rng(2)
    truth = -np.log(1 - q / 100)  # of the exponential distribution
    hits = 0
    for _ in range(1500):
        _, low, high = percentile(np.sort(rng.exponential(1, n)), q)
        hits += (low is None or low <= truth) and (high is None or truth <= high)
    assert hits / 1500 >= 0.945


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=40), st.sampled_from([50, 95, 99]) | st.floats(0.1, 99.9))
@example([100.0, 900.0], 99)
@example([100.0], 99)
def test_a_percentile_lies_in_its_own_interval(values, q):
    """At two answers the p99's lower end was the larger of them, above the figure beside it."""
    value, low, high = percentile(np.sort(np.array(values)), q)
    assert low is None or low <= value
    assert high is None or value <= high


def test_too_few_values_have_no_upper_end():
    assert percentile(np.arange(71.0), 95)[2] is None
    assert percentile(np.arange(72.0), 95)[2] == 71.0
    assert percentile(np.array([]), 95) == (None, None, None)


def test_late_answers_are_a_binomial_count():
    stats = pytest.importorskip("scipy.stats")
    values = np.sort(np.r_[np.full(180, 10.0), np.full(20, 9000.0)])
    expected = stats.binomtest(20, 200, 0.05, alternative="greater").pvalue
    assert late_share_p(values, 95, 4000) == pytest.approx(expected, rel=1e-9)
    assert late_share_p(values, 95, 9000) == 1.0


def test_histogram_counts_every_value():
    values = np.sort(np.random.default_rng(3).lognormal(5, 1, 400))
    assert sum(histogram(values)["counts"]) == 400
    assert sum(histogram(np.zeros(5))["counts"]) == 5
    assert histogram(np.array([])) is None


@pytest.mark.parametrize(("q", "level"), [(95, 0.05), (95, 0.00025), (50, 0.05)])
def test_the_smallest_provable_excess_is_the_edge_of_the_test(q, level):
    values = np.sort(np.random.default_rng(5).lognormal(6, 0.5, 400))
    excess = provable_excess(values, q, level)
    edge = np.quantile(values, q / 100) - excess
    assert late_share_p(values, q, edge - 1e-6) <= level
    assert late_share_p(values, q, edge + 1e-6) > level


def test_nothing_can_be_proven_with_three_answers():
    assert provable_excess(np.array([1.0, 2.0, 3.0]), 50, 0.01) is None


def test_a_time_out_is_later_than_every_limit():
    values = np.r_[np.arange(1.0, 191.0), np.full(10, np.inf)]  # 5 % did not come
    assert percentile(values, 50)[0] == 100.5
    value, low, high = percentile(values, 95)
    assert (value, high) == (np.inf, np.inf)
    assert np.isfinite(low)
    assert late_share_p(values, 95, 1e9) == pytest.approx(0.5446, abs=1e-3)  # P(X >= 10), 200 at .05
    assert provable_excess(values, 95, 0.05) is None
    assert percentile(np.array([1.0, np.inf]), 0)[0] == 1.0
    assert percentile(np.array([np.inf]), 50)[0] == np.inf


def test_what_lies_beyond_the_limit_is_said_in_words_and_is_no_number(maker):
    made = maker("systems: {s: {kind: engine, engine: 'a:b'}}\nmetrics: ['hit_rate@5']\n", n=100)
    day = made.night({"s": {"hit_rate@5": ["failed"] * 10 + [1.0] * 90}})
    folder = made.ws.night(day, "s")
    answers, times = (read_table(folder / f"{name}.parquet") for name in ("responses", "timings"))
    status = ["error"] * 4 + ["timed_out"] * 6 + ["scored"] * 90
    answers = answers.set_column(1, "status", pa.array(status))
    latency = pa.array([1.0] * 4 + [None] * 6 + [100.0 + i for i in range(90)])
    limit = pa.array([None] * 4 + [30_000.0] * 6 + [None] * 90, pa.float64())
    times = times.set_column(1, "latency_ms", latency).set_column(3, "limit_ms", limit)
    write_table(folder / "responses.parquet", answers, {"release": made.release})
    write_table(folder / "timings.parquet", times)
    found = summarise(made.ws, day)["systems"]["s"]["latency"]
    assert (found["n"], found["timed_out"], found["mean_ms"]) == (96, 6, None)  # a crash is not a fast answer
    assert found["p95_ms"]["value"] is None
    assert found["p95_ms"]["over"] == ["value", "high"]
    assert words(found["p95_ms"]) == "over 30,000 ms"
    assert found["p50_ms"]["value"] == 147.5
    rows = next(t for t in summary_tables(made.ws, day) if t["title"].startswith("Latency"))["rows"]
    assert rows[0][2] == "over 30,000 ms"
