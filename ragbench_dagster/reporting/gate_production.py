"""Floors on production: the requests of its last seven days, each with the answer its user got.

They are another population than the release's examples: no margin compares them with an engine or another night.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.calibration.stats.correction import rogan_gladen
from ragbench_dagster.calibration.stats.intervals import Floats
from ragbench_dagster.calibration.stats.logged_share import LoggedShare, logged_share
from ragbench_dagster.calibration.stats.request_share import judge_noise_n, request_floor_p
from ragbench_dagster.records import COUNTED
from ragbench_dagster.reporting.correct import Corrector
from ragbench_dagster.reporting.gate_floors import LEAST_PART, clear, tail_p
from ragbench_dagster.reporting.gate_rows import Test
from ragbench_dagster.reporting.night import Night
from ragbench_dagster.settings import Threshold
from ragbench_dagster.store import read_table, table_metadata

NO_MARGIN = (
    "production's answers are those of its own week's requests: no margin compares them; set a floor (min), or run the "
    "version as an engine or by http"
)


def is_production(night: Night, system: str) -> bool:
    """True for a system whose figures are those of the logged requests."""
    facts = table_metadata(night.ws.night(night.day, system) / "requests.parquet")
    return (night.folder / "requests.parquet").exists() and b"first" in facts


def production_tests(blank: Test, night: Night, threshold: Threshold, corrector: Corrector | None) -> Iterator[Test]:
    """The tests of one threshold on production.

    Args:
        blank: an empty test of the whole.
    """
    table = _requests(night, blank.system, blank.metric)
    whole = blank.copy(per="request")
    if threshold.min is not None:
        yield _floor(whole.copy(kind="floor", limit=threshold.min), table, corrector)
    if threshold.max is not None:
        yield _floor(whole.copy(kind="ceiling", limit=threshold.max), table, corrector)
    for part, floor in sorted(threshold.slices.items()):
        own = table.filter(pc.equal(table["category"], part))
        yield _floor(whole.copy(kind="floor", limit=floor, part=part, primary=False), own, corrector)
    if threshold.margin is not None:
        yield blank.copy(kind="margin", limit=-threshold.margin, primary=False, reason=NO_MARGIN)


def _requests(night: Night, system: str, metric: str) -> pa.Table:
    table = read_table(night.folder / "requests.parquet")
    found = table.filter(pc.and_(pc.equal(table["system"], system), pc.equal(table["metric"], metric)))
    return found.filter(pc.is_in(found["status"], pa.array(COUNTED)))


def _floor(test: Test, table: pa.Table, fix: Corrector | None) -> Test:
    test.n = table.num_rows
    values, weights = (table[name].to_numpy(zero_copy_only=False).astype(float) for name in ("value", "weight"))
    askers = np.unique(np.asarray(table["asker"].to_pylist(), dtype=str), return_inverse=True)[1].astype(np.int64)
    share = logged_share(values, weights, askers) if test.n else None
    if share is None:
        test.reason = "no logged answer of the last seven days was scored"
        return test
    if test.part != "overall" and test.n < LEAST_PART:
        test.reason = f"only {test.n} scored requests, {LEAST_PART} are needed"
    test.clusters, test.independent = share.clusters, share.n
    if fix is not None:
        _corrected(test, share, _judgements(table, weights), fix)
    else:
        test.value, (test.low, test.high) = share.value, share.interval
        test.p = request_floor_p(share.value, share.n, test.limit, ceiling=test.kind == "ceiling")
        clear(test, -1.0 if test.kind == "ceiling" else 1.0)
    if test.reason is not None:
        test.p = test.clears = None
    return test


def _judgements(table: pa.Table, weights: Floats) -> tuple[Floats, Floats]:
    """Sampled requests and weight of each distinct (question, answer): the judge errs on it once, for all of them."""
    keys = np.asarray([key or str(row) for row, key in enumerate(table["key"].to_pylist())], dtype=str)
    place = np.unique(keys, return_inverse=True)[1]
    return np.bincount(place).astype(float), np.bincount(place, weights).astype(float)


def _corrected(test: Test, share: LoggedShare, judgements: tuple[Floats, Floats], fix: Corrector) -> None:
    judge = fix.judge
    if judge is None or judge.point is None or fix.refusal:
        test.value, test.reason = share.value, f"judge not usable: {fix.refusal}"
        return
    counts, weights = judgements
    spread = share.value * (1 - share.value)
    noise = judge_noise_n(counts, share.value, *judge.point, weights)
    n = spread / (spread / share.n + noise.variance) if spread > 0 else min(share.n, noise.n)
    found = rogan_gladen(share.value * n, n, judge, checked=True)
    if found.interval is None or found.draws is None:
        test.value, test.reason = share.value, f"judge not usable: {found.reason}"
        return
    test.basis, test.judge, test.independent = found.method, fix.strength, n
    test.value, (test.low, test.high) = found.value, found.interval
    test.p = tail_p(found.draws, test.limit, -1.0 if test.kind == "ceiling" else 1.0)
    test.spread = float(found.draws.std()) * float(np.sqrt(test.n))
    clear(test, -1.0 if test.kind == "ceiling" else 1.0)
