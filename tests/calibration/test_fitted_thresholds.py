"""Thresholds for judges that score: fitted without peeking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.calibration.calibrate import calibrate
from ragbench_dagster.records import Verdict
from ragbench_dagster.stats.agreement_tables import best_threshold, cross_fitted
from ragbench_dagster.store import digest
from tests.support.calibration_judge import METRIC, FakeJudge, install, workspace


def balanced(human, scores, threshold):
    passing = scores >= threshold
    return passing[human == 1].mean() + (~passing)[human == 0].mean()


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=60))
def test_no_other_threshold_is_better(rows):
    human, scores = np.array(rows, dtype=float).T
    best = best_threshold(human, scores)
    if len(set(human)) < 2:
        assert best is None
        return
    every = [balanced(human, scores, t) for t in np.arange(-6, 7, 0.5)]
    assert balanced(human, scores, best) == pytest.approx(max(every))


def test_on_noise_peeking_looks_good_and_cross_fitting_does_not():
    rng = np.random.default_rng(3)
    peeked, honest = [], []
    for _ in range(60):
        human, scores = (rng.random(60) < 0.5).astype(float), rng.normal(0, 1, 60)
        peeked.append(balanced(human, scores, best_threshold(human, scores)) / 2)
        verdicts = cross_fitted(human, scores, [str(i) for i in range(60)])
        honest.append((verdicts[human == 1].mean() + (1 - verdicts)[human == 0].mean()) / 2)
    assert np.mean(peeked) > 0.57
    assert np.mean(honest) == pytest.approx(0.5, abs=0.03)


def test_folds_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(4)
    human, scores = (rng.random(50) < 0.5).astype(float), rng.normal(0, 1, 50)
    ids = [f"r{i}" for i in range(50)]
    order = rng.permutation(50)
    shuffled = cross_fitted(human[order], scores[order], [ids[i] for i in order])
    assert (cross_fitted(human, scores, ids)[order] == shuffled).all()


class Scorer(FakeJudge):
    """Scores by log probabilities: noise for all, plus a shift for good answers."""

    shift = 0.0

    def verdict(self, item, round):
        noise = np.random.default_rng(int(digest(item.example_id)[:12], 16)).normal(0, 1)
        score = noise + self.shift * ("good" in item.response) - 3
        return Verdict("scored", score, score >= 0, served_model="m", attempts=1)


@pytest.fixture
def scored(tmp_path, monkeypatch):
    def run(shift):
        monkeypatch.setenv("FAKE_KEY", "k")
        judge = Scorer()
        judge.shift = shift
        install(monkeypatch, judge)
        ws = workspace(tmp_path, 80, 80)
        settings = ws.settings.judge.model_copy(update={"read": "logprobs"})
        ws = type(ws)(ws.root, ws.settings.model_copy(update={"judge": settings}))
        return calibrate(ws, "2026-11-26")["metrics"][METRIC]

    return run


def test_a_judge_that_says_no_to_everything_is_saved_by_a_fitted_threshold(scored):
    """All its scores lie below 0: by text its balanced accuracy is .5."""
    found = scored(3.0)
    assert found["threshold_source"] == "fitted"
    assert -2.5 < found["threshold"] < -0.5
    assert found["balanced_accuracy"] > 0.85


def test_the_reported_agreement_never_saw_its_own_row(scored):
    found = scored(0.0)
    assert found["balanced_accuracy"] == pytest.approx(0.5, abs=0.12)
    assert found["table"] == found["cross_fitted"]["table"]
