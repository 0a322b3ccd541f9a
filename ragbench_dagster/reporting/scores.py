"""score_table[D]: retrieval scores and verdicts of all systems in one long table (records.SCORES)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.records import SCORES
from ragbench_dagster.store import Workspace, read_json, read_table, write_table


def build_scores(ws: Workspace, day: str, systems: list[str]) -> pa.Table:
    """Join the night's retrieval and verdict scores; write and return scores.parquet.

    A judge that answers with log probabilities passes from the threshold that calibration fitted; its
    `passing` and `value` are set here, so calibration has to come first.

    Raises:
        UserError: a damaged table.
    """
    parts = []
    for system in sorted(systems):
        for name in ("retrieval", "verdicts"):
            path = ws.night(day, system) / f"{name}.parquet"
            if path.exists():
                parts.append(read_table(path).select(SCORES.names).cast(SCORES))
    table = pa.concat_tables(parts) if parts else SCORES.empty_table()
    table = _apply_thresholds(table, thresholds(ws, day))
    table = table.sort_by([(name, "ascending") for name in ("system", "metric", "example_id")])
    write_table(ws.night(day) / "scores.parquet", table)
    return table


def thresholds(ws: Workspace, day: str) -> dict[str, float]:
    """Metric -> the fitted or accepted threshold of the night's calibration."""
    found: dict[str, Any] = (read_json(ws.night(day) / "calibration.json") or {}).get("metrics", {})
    return {metric: m["threshold"] for metric, m in sorted(found.items()) if m.get("threshold") is not None}


def _apply_thresholds(table: pa.Table, cuts: dict[str, float]) -> pa.Table:
    if not cuts:
        return table
    passing = np.array(table["passing"].to_pylist(), dtype=object)
    value = table["value"].to_numpy(zero_copy_only=False).astype(float)
    score = table["score"].to_numpy(zero_copy_only=False).astype(float)
    for metric, cut in cuts.items():
        own = pc.equal(table["metric"], metric).to_numpy(zero_copy_only=False) & np.isfinite(score)
        own &= pc.equal(table["status"], "scored").to_numpy(zero_copy_only=False)
        passing[own] = [bool(x) for x in score[own] >= cut]
        value[own] = (score[own] >= cut).astype(float)
    values = pa.array(value, pa.float64(), mask=~np.isfinite(value))
    table = table.set_column(SCORES.get_field_index("passing"), "passing", pa.array(passing.tolist(), pa.bool_()))
    return table.set_column(SCORES.get_field_index("value"), "value", values)
