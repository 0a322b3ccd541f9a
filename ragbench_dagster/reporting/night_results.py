"""One night as the reports read it: scores by system and metric, release, calibration, times. Reads only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragbench_dagster.errors import UserError
from ragbench_dagster.records import COUNTED
from ragbench_dagster.settings import is_judged
from ragbench_dagster.store import Workspace, read_json, read_table

Objects = NDArray[np.object_]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """The scores of one system and metric; arrays of equal length, sorted by example id."""

    system: str
    metric: str
    ids: Objects
    status: Objects
    value: Floats  # NaN unless it counts: scored, or 0 where the system failed
    score: Floats  # the evaluator's own scale; NaN unless scored
    weight: Floats
    category: Objects
    in_gate: Mask
    keys: Objects
    count: Floats  # sampled requests that ask the question
    cluster: NDArray[np.int64]  # questions about one thing share a number
    asks: NDArray[np.int64]  # how often the question was asked tonight: heavy ones several times
    per_request: Floats  # the mean over its asks; `value` is the first one's
    fixed: bool = False  # the same question always gets the same answer: no noise from ask to ask

    @cached_property
    def scored(self) -> Mask:
        """Rows with a value; a failure of the system is one, of 0."""
        return np.isfinite(self.value)

    @cached_property
    def failed(self) -> Mask:
        """Rows at which the system failed; their 0 is known, no judge said it."""
        return np.asarray(self.status == "failed", dtype=bool)

    @cached_property
    def counted(self) -> Mask:
        """Rows that figures are made of: with a value, no label conflict, not synthetic."""
        return self.scored & self.in_gate

    @cached_property
    def share(self) -> bool:
        """True where every value is 0 or 1 by its meaning: passing, or a hit. A mean of graded scores is no share."""
        base, at, _ = self.metric.partition("@")
        values = self.value[self.scored]
        return (not at or base == "hit_rate") and bool(((values == 0) | (values == 1)).all())

    @cached_property
    def place(self) -> dict[str, int]:
        """example_id -> row."""
        return {name: i for i, name in enumerate(self.ids.tolist())}


@dataclass(frozen=True)
class Night:
    """What a night left in the store."""

    ws: Workspace
    day: str
    manifest: dict[str, Any]

    @classmethod
    def open(cls, ws: Workspace, day: str) -> Night:
        """The night of `day`.

        Raises:
            UserError: it never ran.
        """
        manifest = read_json(ws.night(day) / "manifest.json")
        if manifest is None:
            raise UserError(f"{ws.night(day)}: no such night; run: ragbench run --date {day}")
        return cls(ws, day, manifest)

    @property
    def folder(self) -> Path:
        return self.ws.night(self.day)

    @property
    def systems(self) -> list[str]:
        return sorted(self.manifest.get("systems", {}))

    @cached_property
    def table(self) -> pa.Table:
        return read_table(self.folder / "scores.parquet")

    @cached_property
    def scores(self) -> dict[tuple[str, str], Scores]:
        path = self.folder / "asks.parquet"
        asks = read_table(path) if path.exists() else None
        return split_scores(self.table, asks, self.manifest.get("fixed") or ())

    @cached_property
    def calibration(self) -> dict[str, Any]:
        return read_json(self.folder / "calibration.json") or {}

    @cached_property
    def examples(self) -> pa.Table:
        """The release's examples, its hash verified.

        Raises:
            UserError: the release is missing or was changed.
        """
        from ragbench_dagster.dataset.release import load_release

        return load_release(self.ws, self.manifest["release"]).examples

    def judge_of(self, metric: str) -> dict[str, Any]:
        """What calibration found on the judge of `metric`; empty where it was never checked."""
        return self.calibration.get("metrics", {}).get(metric, {})

    def identity(self, metric: str) -> str | None:
        """Hash of judge, evaluator and template of a judge metric; None for retrieval metrics."""
        return None if not is_judged(metric) else self.judge_of(metric).get("identity", {}).get("hash")

    def responses(self, system: str, columns: list[str] | None = None) -> pa.Table:
        return read_table(self.ws.night(self.day, system) / "responses.parquet", columns)

    def timings(self, system: str) -> pa.Table | None:
        path = self.ws.night(self.day, system) / "timings.parquet"
        return read_table(path) if path.exists() else None


def split_scores(
    table: pa.Table, asks: pa.Table | None = None, fixed: Collection[str] = ()
) -> dict[tuple[str, str], Scores]:
    """A table of records.SCORE_TABLE as one `Scores` for each system and metric.

    Args:
        table: the scores.
        asks: records.ASK_TABLE of the night; None where every question was asked once.
        fixed: systems that give the same question always the same answer.
    """
    if table.num_rows == 0:
        return {}
    columns: dict[str, Any] = {
        name: np.asarray(table[name].to_pylist(), dtype=object)
        for name in ("system", "metric", "example_id", "status", "category", "key")
    }
    value = table["value"].to_numpy(zero_copy_only=False).astype(float)
    score = table["score"].to_numpy(zero_copy_only=False).astype(float)
    weight = np.nan_to_num(table["weight"].to_numpy(zero_copy_only=False).astype(float), nan=1.0)
    in_gate = np.array([v is not False for v in table["in_gate"].to_pylist()])
    value = np.where(np.isin(columns["status"], COUNTED), value, np.nan)
    count = _column(table, "count", 1.0)
    cluster = _column(table, "cluster", -1.0).astype(np.int64)
    again = _asks(asks)
    found: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(zip(columns["system"], columns["metric"], strict=True)):
        found.setdefault(pair, []).append(row)
    result = {}
    for (system, metric), rows in sorted(found.items()):
        at = np.array(rows)
        at = at[np.argsort(columns["example_id"][at].astype(str), kind="stable")]
        result[system, metric] = Scores(
            system, metric, columns["example_id"][at], columns["status"][at], value[at], score[at], weight[at],
            columns["category"][at], in_gate[at], columns["key"][at], count[at], _clusters(cluster, at),
            *_asked(again.get((system, metric), {}), columns["example_id"][at], value[at]), system in fixed,
        )  # fmt: skip
    return result


def _asks(table: pa.Table | None) -> dict[tuple[str, str], dict[str, list[float]]]:
    """(system, metric) -> example_id -> the known values of its asks."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in table.to_pylist() if table is not None else ():
        if row["value"] is not None:
            found.setdefault((row["system"], row["metric"]), {}).setdefault(row["example_id"], []).append(row["value"])
    return found


def _asked(again: dict[str, list[float]], ids: Objects, value: Floats) -> tuple[NDArray[np.int64], Floats]:
    """How often each example was asked, and the mean over its asks; what counts is what ask 0 has a value for."""
    asks, mean = np.ones(len(ids), dtype=np.int64), value.copy()
    for row, name in enumerate(ids.tolist() if again else ()):
        values = again.get(name)
        if values and np.isfinite(value[row]):
            asks[row], mean[row] = len(values), float(np.mean(values))
    return asks, mean


def _column(table: pa.Table, name: str, missing: float) -> Floats:
    """A column of numbers; `missing` where it is null, and everywhere in tables of before it existed."""
    if name not in table.column_names:
        return np.full(table.num_rows, missing)
    return np.nan_to_num(table[name].to_numpy(zero_copy_only=False).astype(float), nan=missing)


def _clusters(cluster: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """The clusters of the rows `at`; rows without one stand alone."""
    own = cluster[at]
    alone = own < 0
    own[alone] = own.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    return own


def nights_before(ws: Workspace, day: str) -> list[str]:
    """Nights of the store before `day` that have a manifest, newest first."""
    folder = ws.night(day).parent
    found = [p.parent.name for p in folder.glob("????-??-??/manifest.json") if p.parent.name < day]
    return sorted(found, reverse=True)
