"""10 metrics x 20 slices on 10,000 examples with all intervals: under 1 s of CPU. Run: pytest ... -s

The peer is scipy's own bootstrap of the same means, 1,000 resamples on a tenth of the cells.
"""

import time

import numpy as np

from ragbench_dagster.reporting import night_tables
from ragbench_dagster.reporting.baselines import Baselines
from ragbench_dagster.reporting.judge_correction import correctors
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.summary import metric_figures
from tests.support.night_maker import NightMaker

JUDGED = ["faithfulness", "relevancy", "correctness", "answer_relevancy", "context_relevancy"]
METRICS = [*JUDGED, "hit_rate@5", "hit_rate@10", "mrr@10", "ndcg@10", "recall@5"]
N = 10_000


def scores(rng):
    return {
        m: (rng.random(N) < 0.8).astype(float) if "@" not in m or "hit" in m else rng.choice([0, 0.2, 0.5, 1.0], N)
        for m in METRICS
    }


def test_all_intervals_in_a_second_of_cpu(tmp_path):
    from scipy import stats

    listed = ", ".join(map(repr, METRICS))
    made = NightMaker(tmp_path, f"metrics: [{listed}]\n", N, [f"c{i}" for i in range(20)])
    made.weights = np.random.default_rng(0).lognormal(0, 1, N)
    # three questions about each document: every figure is clustered
    made.release = made.make_release(expected_doc_ids=[[f"d{i // 3}"] for i in range(N)])
    rng = np.random.default_rng(1)
    for day in ("2026-11-19", "2026-11-20"):
        made.night({"s": scores(rng)}, day=day)
        made.calibrated(JUDGED, day=day)
    night = Night.open(made.ws, "2026-11-20")
    dims, fixes, baselines = night_tables.dimensions(night), correctors(night, []), Baselines(night)
    assert len(night.scores) == 11  # answered stands beside the ten
    assert len(baselines.night_before("s").night.scores) == 11

    start = time.process_time()
    rows = []
    for (system, metric), own in night.scores.items():
        found = metric_figures(night, own, dims, fixes.get((system, metric)), baselines)
        rows += [found["overall"], *found["slices"]]
    ours = time.process_time() - start
    assert len(rows) == 11 * 21
    assert all(row["low"] is not None and row["delta"]["low"] is not None for row in rows)
    assert all(row["corrected"]["low"] is not None for row in rows if row["metric"] in JUDGED)

    start = time.process_time()
    for own in night.scores.values():
        for part in ("c0", "c1"):
            stats.bootstrap((own.value[own.category == part],), np.mean, n_resamples=1000, method="percentile", rng=rng)
    peer = time.process_time() - start
    print(f"11 metrics x 21 parts x 10,000: {ours:.2f} s CPU; scipy bootstrap of 20 of the 210 means: {peer:.2f} s")
    assert ours < 1.5
