"""Simulated nights for the gate: paired 0/1 results of metrics and slices, decided by the gate itself."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from scipy import stats

from ragbench_dagster.reporting.gate.decide import judge_tests
from ragbench_dagster.reporting.gate.limits import fill_change
from ragbench_dagster.reporting.gate.tests import GateResult, GateTest
from ragbench_dagster.stats.clustering import ClusteredChange, clustered_change
from ragbench_dagster.stats.paired import Change, compare_counts


def single(change: Change) -> ClusteredChange:
    """A change of independent questions."""
    n = change.n
    return ClusteredChange(
        change.value, change.interval, n, float(n), change.gains, change.losses, change.p_loss, change.spread,
        change.binary, n, float(n), 1.0,
    )  # fmt: skip


def margin_test(
    gains: int, losses: int, n: int, margin: float, name: str = "m", part: str = "overall", primary=True
) -> GateTest:
    test = GateTest("s", name, part, "margin", -margin, baseline="night", primary=primary and part == "overall")
    fill_change(test, single(compare_counts(gains, losses, n)))
    return test


def decide(tests: list[GateTest]) -> GateResult:
    return judge_tests(tests, [], [], 10_000, advise=False)


def discordant(rng: np.random.Generator, shape: tuple[int, ...], psi: float, loss: float, rho: float) -> np.ndarray:
    """-1, 0 or 1 for each row and metric: a share `psi` differs, the mean is -loss; metrics share a latent factor."""
    rows, metrics = shape
    common = rng.standard_normal((rows, 1))
    latent = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.standard_normal((rows, metrics))
    up, down = (psi - loss) / 2, (psi + loss) / 2
    normal = NormalDist()
    return np.where(latent < normal.inv_cdf(down), -1, np.where(latent > normal.inv_cdf(1 - up), 1, 0))


def identical_night(
    rng: np.random.Generator, n: int, psi: float, rho: float, metrics: int = 20, slices: int = 9, margin: float = 0.0
) -> GateResult:
    """Identical systems: 20 metrics, overall and nine slices each (10 x 20 = 200 tests)."""
    change = discordant(rng, (n, metrics), psi, 0.0, rho)
    part = rng.integers(0, slices, n)
    tests = []
    for metric in range(metrics):
        for name in range(-1, slices):
            own = change[:, metric] if name < 0 else change[part == name, metric]
            label = "overall" if name < 0 else str(name)
            gains, losses = int((own > 0).sum()), int((own < 0).sum())
            tests.append(margin_test(gains, losses, len(own), margin, f"m{metric}", label))
    return decide(tests)


def loss_night(
    rng: np.random.Generator, n: int, psi: float, loss: float, margin: float, others: int = 199
) -> GateResult:
    """One primary metric loses `loss`; `others` tests do not."""
    down = (psi + loss) / 2
    gains, losses, _ = rng.multinomial(n, [psi - down, down, 1 - psi])
    tests = [margin_test(int(gains), int(losses), n, margin)]
    quiet = rng.multinomial(n, [psi / 2, psi / 2, 1 - psi], others)
    for i, (up, low, _) in enumerate(quiet):
        tests.append(margin_test(int(up), int(low), n, margin, f"q{i}", primary=False))
    return decide(tests)


def skewed_pass(rng: np.random.Generator, n: int, margin: float) -> bool:
    """Graded scores whose losses are few and large, true mean change exactly -margin: may it pass?"""
    change = np.where(rng.random(n) < margin / 0.5, -0.5, 0.0) + rng.normal(0, 0.01, n)
    found = clustered_change(np.zeros(n), change, None, binary=False)
    assert found is not None
    test = GateTest("s", "m", "overall", "margin", -margin, baseline="night", primary=True)
    fill_change(test, found)
    return decide([test]).verdict == "pass"


def exact_power(n: int, psi: float, loss: float, tests: int, margin: float) -> float:
    """Chance that one test among `tests` fails: exact McNemar at .05 / tests, and the estimate at the margin."""
    total = 0.0
    for discordants in range(n + 1):
        weight = stats.binom.pmf(discordants, n, psi)
        if weight < 1e-9:
            continue
        losses = np.arange(discordants + 1)
        p = stats.binom.sf(losses - 1, discordants, 0.5)
        failing = (p <= 0.05 / tests) & (2 * losses - discordants >= margin * n - 1e-9)
        total += weight * stats.binom.pmf(losses, discordants, (psi + loss) / 2 / psi)[failing].sum()
    return float(total)
