"""One night as the reports read it: a frame of scores, release, calibration, times. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ragbench_dagster.errors import UserError
from ragbench_dagster.metrics import is_judged, metric_of
from ragbench_dagster.records import COUNTED
from ragbench_dagster.results import Manifest
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
    status: pd.Categorical
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
        values = self.value[self.scored]
        return metric_of(self.metric).binary and bool(((values == 0) | (values == 1)).all())

    @cached_property
    def place(self) -> dict[str, int]:
        """example_id -> row."""
        return {name: i for i, name in enumerate(self.ids.tolist())}


@dataclass(frozen=True)
class Night:
    """What a night left in the store."""

    ws: Workspace
    day: str
    manifest: Manifest

    @classmethod
    def open(cls, ws: Workspace, day: str) -> Night:
        """The night of `day`.

        Raises:
            UserError: it never ran.
        """
        manifest = ws.result(day, Manifest)
        if manifest is None:
            raise UserError(f"{ws.night(day)}: no such night; run: ragbench run --date {day}")
        return cls(ws, day, manifest)

    @property
    def folder(self) -> Path:
        return self.ws.night(self.day)

    @property
    def systems(self) -> list[str]:
        return sorted(self.manifest.systems)

    @cached_property
    def table(self) -> pa.Table:
        return read_table(self.folder / "scores.parquet")

    @cached_property
    def frame(self) -> pd.DataFrame:
        """records.SCORE_TABLE; `value` is NaN unless it counts."""
        path = self.folder / "asks.parquet"
        return score_frame(self.table, read_table(path) if path.exists() else None)

    @cached_property
    def scores(self) -> dict[tuple[str, str], Scores]:
        """The frame as one `Scores` for each system and metric."""
        fixed = self.manifest.fixed
        return {
            (system, metric): scores_of(system, metric, rows, system in fixed)
            for (system, metric), rows in self.frame.groupby(["system", "metric"], observed=True)
        }

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

        return load_release(self.ws, self.manifest.release).examples

    def judge_of(self, metric: str) -> dict[str, Any]:
        """What calibration found on the judge of `metric`; empty where it was never checked."""
        return self.calibration.get("metrics", {}).get(metric, {})

    def identity(self, metric: str) -> str | None:
        """Hash of judge, evaluator and template of a judge metric; None for retrieval metrics."""
        return None if not is_judged(metric) else self.judge_of(metric).get("identity", {}).get("hash")

    def responses(self, system: str, columns: list[str] | None = None) -> pa.Table:
        return read_table(self.ws.night(self.day, system) / "responses.parquet", columns)

    def timings(self, system: str) -> pd.DataFrame | None:
        """records.TIMINGS of a system; None where no time was taken."""
        path = self.ws.night(self.day, system) / "timings.parquet"
        return read_table(path).to_pandas() if path.exists() else None


def score_frame(table: pa.Table, asks: pa.Table | None = None) -> pd.DataFrame:
    """A score table with `asks` and `per_request` (see `Scores`); `value` is NaN unless the row counts.

    Args:
        table: records.SCORE_TABLE; those of before `count` and `cluster` existed may lack them.
        asks: records.ASK_TABLE of the night; None where every question was asked once.
    """
    frame = table.to_pandas().astype(dict.fromkeys(["system", "metric", "status", "category"], "category"))
    frame["value"] = frame["value"].where(frame["status"].isin(COUNTED))
    frame = frame.assign(asks=1, per_request=frame["value"])
    if asks is not None and len(frame):
        keys = ["system", "metric", "example_id"]
        known = asks.to_pandas().dropna(subset="value").groupby(keys)["value"].agg(list)
        again = frame.loc[frame["value"].notna(), keys].join(known, on=keys)["value"].dropna()
        frame["asks"] = again.map(len).reindex(frame.index, fill_value=1)
        frame["per_request"] = again.map(np.mean).reindex(frame.index).fillna(frame["value"])
    return frame


def scores_of(system: str, metric: str, rows: pd.DataFrame, fixed: bool) -> Scores:
    """The rows of one system and metric as arrays; a question without a cluster stands alone."""
    cluster = rows.get("cluster", pd.Series(-1, rows.index)).fillna(-1).to_numpy(np.int64, copy=True)
    alone = cluster < 0
    cluster[alone] = cluster.max(initial=-1) + 1 + np.arange(alone.sum())
    return Scores(
        system,
        metric,
        ids=rows["example_id"].to_numpy(object),
        status=rows["status"].array,
        value=rows["value"].to_numpy(),
        score=rows["score"].to_numpy(),
        weight=rows["weight"].fillna(1.0).to_numpy(),
        category=_objects(rows["category"]),
        in_gate=(rows["in_gate"] != False).to_numpy(bool),  # noqa: E712  null is in
        keys=_objects(rows["key"]),
        count=rows.get("count", pd.Series(1.0, rows.index)).fillna(1.0).to_numpy(float),
        cluster=cluster,
        asks=rows["asks"].to_numpy(np.int64),
        per_request=rows["per_request"].to_numpy(),
        fixed=fixed,
    )


def _objects(column: pd.Series) -> Objects:
    """Texts, None where there is none."""
    return column.astype(object).where(column.notna(), None).to_numpy()


def nights_before(ws: Workspace, day: str) -> list[str]:
    """Nights of the store before `day` that have a manifest, newest first."""
    folder = ws.night(day).parent
    found = [p.parent.name for p in folder.glob("????-??-??/manifest.json") if p.parent.name < day]
    return sorted(found, reverse=True)
