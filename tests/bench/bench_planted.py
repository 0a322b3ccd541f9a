"""The gate on planted truths, the full grid: minutes. Run: pytest tests/bench/bench_planted.py -s"""

import numpy as np
import pytest

from tests.support import decision_worlds as worlds


def rate(night, verdict, runs):
    return sum(night().verdict == verdict for _ in range(runs)) / runs


@pytest.mark.parametrize("broken", [1, 3, 8])
@pytest.mark.parametrize("noise", [0.0, 0.03, 0.06])
def test_broken_head(broken, noise):
    rng = np.random.default_rng(11)
    found = rate(lambda: worlds.head_broken(rng, broken, "both", noise), "fail", 200)
    passed = rate(lambda: worlds.head_broken(rng, broken, "question", noise), "pass", 200)
    print(f"head broken {broken}, answer noise {noise}: fail {found:.3f} (both), pass {passed:.3f} (question)")
    # one question of a seventh of all requests that is itself right only 94 times in 100 is found a little less often
    assert found >= (0.9 if (broken, noise) == (1, 0.06) else 0.95)
    assert passed <= 0.05


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.06, 0.12])
def test_unchanged_head(noise):
    rng = np.random.default_rng(12)
    found = rate(lambda: worlds.head_broken(rng, 0, "request", noise), "fail", 400)
    print(f"unchanged head, answer noise {noise}: false fail {found:.3f}")
    assert found <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(("se", "sp"), [(0.98, 0.95), (0.9, 0.75), (0.95, 0.6)])
@pytest.mark.parametrize("n", [700, 2000, 5000])
@pytest.mark.parametrize("labels", [100, 200])
def test_judged_loss_at_the_margin(se, sp, n, labels):
    rng = np.random.default_rng(13)
    found = rate(lambda: worlds.judged_loss(rng, n, 0.03, se, sp, labels), "pass", 2000)
    power = rate(lambda: worlds.judged_loss(rng, n, 0.0, se, sp, labels), "pass", 200)
    print(f"judge ({se}, {sp}), {labels} labels, n {n}: false pass {found:.4f}, pass at no loss {power:.2f}")
    assert found <= (0.035 if (labels, se) == (100, 0.95) else 0.03) + 2 * np.sqrt(0.03 * 0.97 / 2000)


@pytest.mark.parametrize(
    ("clusters", "size", "icc"), [(200, 5, 0.25), (200, 5, 0.5), (200, 5, 1.0), (100, 2, 1.0), (1000, 1, 0.0)]
)
def test_identical_systems_in_clusters(clusters, size, icc):
    rng = np.random.default_rng(14)
    found = rate(lambda: worlds.clustered_identical(rng, clusters, size, icc), "fail", 200)
    print(f"{clusters} clusters of {size}, icc {icc}, 220 tests: false fail {found:.3f}")
    assert found <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("loss", [0.002, 0.005])
def test_slow_loss(loss):
    rng = np.random.default_rng(15)
    found = [worlds.slow_loss(rng, loss) for _ in range(50)]
    nights = sorted(night or 99 for night, _ in found)
    print(f"loss {loss} a night: median night {nights[25]}, 90 % by night {nights[44]}")
    assert np.mean([night is not None for night, _ in found]) >= 0.9


def test_no_loss_over_a_month():
    rng = np.random.default_rng(16)
    found = np.mean([worlds.slow_loss(rng, 0.0)[0] is not None for _ in range(60)])
    print(f"unchanged system, month of nights against one accepted night: any fail {found:.3f}")
    assert found <= 0.15
