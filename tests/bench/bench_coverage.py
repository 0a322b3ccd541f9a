"""The full coverage grids, 4,000 repeats a cell: minutes. Run: pytest tests/bench/bench_coverage.py -s"""

import pytest

from tests.support import coverage_grid as grid

RUNS = 4_000
SEED = 20_261_129


@pytest.mark.parametrize("n", grid.SIZES)
@pytest.mark.parametrize("rate", grid.RATES)
@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("kind", grid.WEIGHTS)
def test_share_of_weighted_rows(kind, moving, rate, n):
    if kind == "equal" and moving:
        pytest.skip("equal weights cannot move with the rate")
    covered, size = grid.raw_share(kind, rate, n, moving, RUNS, SEED)
    print(f"share {kind} moving={moving} rate={rate} n={n}: {covered:.4f} (Kish n {size:.0f})")
    if size >= 30:
        assert covered >= grid.least(RUNS)


@pytest.mark.parametrize("n", grid.SIZES)
@pytest.mark.parametrize("rate", grid.RATES)
@pytest.mark.parametrize("judge", [*grid.JUDGES, (0.98, 0.95)])
@pytest.mark.parametrize("kind", ["equal", "one_five", "log_normal"])
def test_corrected_by_labels_on_the_same_answers(kind, judge, rate, n):
    covered, width = grid.labelled_answers(kind, rate, n, judge, RUNS, SEED)
    print(f"labels {kind} judge={judge} rate={rate} n={n}: {covered:.4f}, width {width:.3f}")
    assert covered >= grid.least(RUNS)


@pytest.mark.parametrize("n", grid.SIZES)
@pytest.mark.parametrize("rate", grid.RATES)
@pytest.mark.parametrize("judge", [*grid.JUDGES, (0.98, 0.95)])
@pytest.mark.parametrize("classes", [(100, 100), (180, 20)])
@pytest.mark.parametrize("kind", ["equal", "one_five", "log_normal"])
def test_corrected_by_a_calibration_set(kind, classes, judge, rate, n):
    covered, width, refused = grid.calibration_set(kind, rate, n, judge, RUNS, SEED, classes)
    print(
        f"set {kind} {classes} judge={judge} rate={rate} n={n}: {covered:.4f}, width {width:.3f}, refused {refused:.3f}"
    )
    assert covered >= grid.least(RUNS)
