"""Floors on production: the requests of its last seven days, each with the answer its user got.

They are another population than the release's examples: no margin compares them with an engine or another night.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.metrics import metric_of
from ragbench_dagster.records import COUNTED
from ragbench_dagster.reporting.estimates import coverage
from ragbench_dagster.reporting.gate.limits import LEAST_PART, clear, tail_p
from ragbench_dagster.reporting.gate.tests import GateTest
from ragbench_dagster.reporting.judge_correction import Corrector
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.settings import Threshold
from ragbench_dagster.stats.correction import rogan_gladen
from ragbench_dagster.stats.intervals import Floats
from ragbench_dagster.stats.request_share import LoggedShare, judge_noise_n, logged_share, request_floor_p
from ragbench_dagster.store import read_table, table_metadata
from ragbench_dagster.text.format import decimal

NO_MARGIN = (
    "production's answers are those of its own week's requests: no margin compares them; set a floor (min), or run the "
    "version as an engine or by http"
)


def is_production(night: Night, system: str) -> bool:
    """True for a system whose figures are those of the logged requests."""
    facts = table_metadata(night.ws.night(night.day, system) / "requests.parquet")
    return (night.folder / "requests.parquet").exists() and b"first" in facts


def production_tests(
    blank: GateTest, night: Night, threshold: Threshold, corrector: Corrector | None
) -> Iterator[GateTest]:
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


def _floor(test: GateTest, table: pa.Table, fix: Corrector | None) -> GateTest:
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


def _corrected(test: GateTest, share: LoggedShare, judgements: tuple[Floats, Floats], fix: Corrector) -> None:
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


# Production's own figures: the share of the week's requests that were answered right, by their own answers.


def production(night: Night, system: str) -> dict[str, Any] | None:
    """What the logs say of system `system`; None for systems that are asked.

    Returns:
        {first, last, sampled, unanswered, requests, metrics: {METRIC: {value, low, high, n_effective, sampled,
        requests, traffic, coverage, statuses, askers, words}}}. `traffic` is the share of the requests that the
        metric applies to: metrics that need labels apply to labelled questions alone.
    """
    path = night.folder / "requests.parquet"
    facts = table_metadata(night.ws.night(night.day, system) / "requests.parquet")
    if not path.exists() or b"first" not in facts:
        return None
    table = read_table(path)
    table = table.filter(pc.equal(table["system"], system))
    found = {name: facts[name.encode()].decode() for name in ("first", "last")}
    days = _days(found["first"], found["last"])
    metrics = {
        metric: _figures(table.filter(pc.equal(table["metric"], metric)), metric, days)
        for metric in sorted(set(table["metric"].to_pylist()))
    }
    requests = read_table(night.ws.night(night.day, system) / "requests.parquet", ["weight"])["weight"]
    return {
        **found,
        "sampled": int(facts[b"sampled"]),
        "unanswered": int(facts[b"unanswered"]),
        "requests": float(pc.sum(requests).as_py() or 0.0),
        "metrics": metrics,
    }


def _figures(table: pa.Table, metric: str, days: str) -> dict[str, Any]:
    status = np.asarray(table["status"].to_pylist(), dtype=object)
    weight = table["weight"].to_numpy(zero_copy_only=False).astype(float)
    value = table["value"].to_numpy(zero_copy_only=False).astype(float)
    statuses = dict(sorted(Counter(status.tolist()).items()))
    at = np.isin(status, COUNTED) & np.isfinite(value)
    askers = np.unique(np.asarray(table["asker"].to_pylist(), dtype=object).astype(str), return_inverse=True)[1]
    share = logged_share(value[at], weight[at], askers[at].astype(np.int64))
    applies = float(weight[status != "not_applicable"].sum())
    row: dict[str, Any] = {
        "value": share.value if share else None,
        "low": share.interval[0] if share else None,
        "high": share.interval[1] if share else None,
        "n_effective": share.n if share else 0.0,
        "sampled": int(at.sum()),
        "requests": share.requests if share else 0.0,
        "traffic": applies / float(weight.sum()) if weight.sum() else None,
        "coverage": coverage(statuses),
        "statuses": statuses,
        "askers": share.clusters if share else 0,
    }
    return {**row, "words": _words(row, metric, days)}


def _words(row: dict[str, Any], metric: str, days: str) -> str:
    """`production, 23-29 Nov: 78 % [73, 83] of requests answered right (230 of 2,310 requests sampled)`."""
    if row["value"] is None:
        return f"production, {days}: {metric} applies to no logged answer, or none was scored"
    what = metric_of(metric)
    shown, low, high = (_percent(row[end]) for end in ("value", "low", "high"))
    sampled = f"{row['sampled']:,} of {row['requests']:,.0f} requests sampled"
    if not what.binary:
        ends = ", ".join(decimal(row[end]) for end in ("low", "high"))
        said = f"{metric} {decimal(row['value'])} [{ends}] by requests"
    else:
        said = f"{shown} % [{low}, {high}] of requests {what.of_requests()}"
    judge = ", as the judge sees it" if what.judged else ""
    labelled = "" if row["traffic"] is None or row["traffic"] > 0.9995 else _share_words(row["traffic"])
    return f"production, {days}: {said}{judge} ({sampled}{labelled})"


def _share_words(traffic: float) -> str:
    return f"; it applies to {_percent(traffic)} % of the requests"


def _percent(value: float) -> str:
    """Whole percent, but never 0 or 100 where it is not."""
    rounded = f"{100 * value:.0f}"
    return f"{100 * value:.1f}" if rounded in ("0", "100") and value not in (0.0, 1.0) else rounded


def _days(first: str, last: str) -> str:
    """`23-29 Nov`, `28 Oct-3 Nov`."""
    one, other = date.fromisoformat(first), date.fromisoformat(last)
    begin = f"{one.day}" if one.month == other.month else f"{one.day} {one:%b}"
    return f"{begin}-{other.day} {other:%b}"


def headline(system: dict[str, Any], metric: str) -> dict[str, Any]:
    """{value, low, high, n, coverage} of a system's metric as it is shown: production's by its requests.

    Args:
        system: the system in a summary.
        metric: one of its metrics.
    """
    own = ((system.get("requests") or {}).get("metrics") or {}).get(metric)
    if own is not None:
        return {key: own[key] for key in ("value", "low", "high", "coverage")} | {"n": own["sampled"]}
    row = system["metrics"][metric]["overall"]
    return {key: row[key] for key in ("value", "low", "high", "coverage", "n")}


def asked(systems: dict[str, Any]) -> dict[str, Any]:
    """The systems of a summary that were asked the release's questions: all but production."""
    return {name: system for name, system in systems.items() if not system.get("requests")}


def production_lines(systems: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(system, metric, words) of every figure of production in a summary."""
    return [
        (name, metric, row["words"])
        for name, system in systems.items()
        for metric, row in ((system.get("requests") or {}).get("metrics") or {}).items()
    ]
