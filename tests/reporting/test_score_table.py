"""score_table[D]: joined, sorted, and with the threshold that calibration fitted."""

import numpy as np
import pyarrow.compute as pc

from ragbench_dagster.records import SCORE_TABLE
from ragbench_dagster.reporting.scores import build_scores
from ragbench_dagster.store import read_table


def test_scores_are_sorted_and_the_same_bytes_each_time(maker):
    made = maker("metrics: [faithfulness, 'hit_rate@5']\n", n=5)
    day = made.night({"b": {"faithfulness": [1.0] * 5}, "a": {"hit_rate@5": [0.0] * 5, "faithfulness": [1.0] * 5}})
    path = made.ws.night(day) / "scores.parquet"
    before = path.read_bytes()
    table = build_scores(made.ws, day, ["b", "a"])
    keys = [tuple(r[k] for k in ("system", "metric", "example_id")) for r in table.to_pylist()]
    assert keys == sorted(keys)
    assert table.schema.names == SCORE_TABLE.names
    assert path.read_bytes() == before


def test_a_fitted_threshold_decides_what_passes(maker):
    made = maker("metrics: [faithfulness]\n", n=4)
    day = made.night({"s": {"faithfulness": [-1.0, 0.2, 0.4, "error"]}})
    made.calibrated(["faithfulness"], threshold=0.3)
    build_scores(made.ws, day, ["s"])
    table = read_table(made.ws.night(day) / "scores.parquet")
    table = table.filter(pc.equal(table["metric"], "faithfulness"))
    assert table["passing"].to_pylist() == [False, False, True, None]
    assert table["value"].to_pylist() == [0.0, 0.0, 1.0, None]


def test_a_system_without_tables_adds_nothing(maker):
    made = maker("metrics: ['hit_rate@5']\n", n=3)
    day = made.night({"s": {"hit_rate@5": np.ones(3)}})
    assert set(build_scores(made.ws, day, ["s", "gone"])["system"].to_pylist()) == {"s"}
