"""score_table[D]: scores, verdicts and `answered` of all systems in one long table (records.SCORE_TABLE)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.dataset.examples import families
from ragbench_dagster.evaluation.asks import by_ask, with_ask
from ragbench_dagster.evaluation.availability import score_answered
from ragbench_dagster.evaluation.pipeline import night_release_of
from ragbench_dagster.records import ASK_TABLE, REQUEST_TABLE, SCORE_TABLE, SCORES
from ragbench_dagster.results import Manifest
from ragbench_dagster.store import Workspace, read_json, read_table, write_table


def build_scores(ws: Workspace, day: str, systems: list[str]) -> pa.Table:
    """Join the night's retrieval and verdict scores; write and return scores.parquet.

    A judge that answers with log probabilities passes from the threshold that calibration fitted; its
    `passing` and `value` are set here, so calibration has to come first.

    Raises:
        UserError: a damaged table.
    """
    parts = []
    examples = _examples(ws, day)
    for system in sorted(systems):
        answers = ws.night(day, system) / "responses.parquet"
        # What the logs lack was not asked of anybody: `logged` neither answers nor fails.
        if examples is not None and answers.exists() and not _looked_up(ws, system):
            parts.append(score_answered(read_table(answers), examples, system))
        for name in ("retrieval", "verdicts"):
            path = ws.night(day, system) / f"{name}.parquet"
            if path.exists():
                parts.append(read_table(path).select(SCORES.names).cast(SCORES))
    table = pa.concat_tables(parts) if parts else SCORES.empty_table()
    table = _apply_thresholds(table, thresholds(ws, day))
    _write_asks(ws, day, systems, table, examples)
    _write_requests(ws, day, systems)
    table = _with_requests(table, examples)
    table = table.sort_by([(name, "ascending") for name in ("system", "metric", "example_id")])
    write_table(ws.night(day) / "scores.parquet", table)
    return table


def _write_requests(ws: Workspace, day: str, systems: list[str]) -> None:
    """Write requests.parquet (records.REQUEST_TABLE): the scores of production's own requests."""
    path = ws.night(day) / "requests.parquet"
    parts = []
    for system in sorted(systems):
        folder = ws.night(day, system)
        files = [folder / f"request_{part}.parquet" for part in ("retrieval", "verdicts")]
        found = [read_table(file).select(SCORES.names).cast(SCORES) for file in files if file.exists()]
        if found:
            scores = _apply_thresholds(pa.concat_tables(found), thresholds(ws, day)).drop_columns(
                ["weight", "category"]
            )
            requests = read_table(folder / "requests.parquet").replace_schema_metadata(None)
            parts.append(scores.join(requests, "example_id", "request_key", join_type="inner"))
    if not parts:
        path.unlink(missing_ok=True)
        return
    table = pa.concat_tables(parts).rename_columns({"example_id": "request_key"}).select(REQUEST_TABLE.names)
    order = [(name, "ascending") for name in ("system", "metric", "request_key")]
    write_table(path, table.cast(REQUEST_TABLE).sort_by(order))


def _write_asks(ws: Workspace, day: str, systems: list[str], table: pa.Table, examples: pa.Table | None) -> None:
    """Write asks.parquet (records.ASK_TABLE): every ask of the questions that were asked several times."""
    path = ws.night(day) / "asks.parquet"
    parts: list[tuple[int, pa.Table]] = []
    for system in sorted(systems):
        folder = ws.night(day, system)
        if examples is not None:
            parts += [(ask, score_answered(own, examples, system)) for ask, own in by_ask(folder)]
        parts += [
            (ask, own.select(SCORES.names)) for part in ("retrieval", "verdicts") for ask, own in by_ask(folder, part)
        ]
    if not parts:
        path.unlink(missing_ok=True)
        return
    cuts = thresholds(ws, day)
    further = pa.concat_tables([with_ask(_apply_thresholds(own.cast(SCORES), cuts), ask) for ask, own in parts])
    keys = ["system", "metric", "example_id"]
    first = with_ask(table.join(further.select(keys).group_by(keys).aggregate([]), keys, join_type="left semi"), 0)
    every = pa.concat_tables([part.select(ASK_TABLE.names).cast(ASK_TABLE) for part in (first, further)])
    write_table(path, every.sort_by([(name, "ascending") for name in (*keys, "ask")]))


def _examples(ws: Workspace, day: str) -> pa.Table | None:
    """The examples of the night's release, by its manifest; None where the night has none yet."""
    manifest = ws.result(day, Manifest)
    return night_release_of(ws, manifest.release).examples if manifest and manifest.release else None


def _looked_up(ws: Workspace, system: str) -> bool:
    found = ws.settings.systems.get(system)
    return (found.kind if found else system) == "logged"


def _with_requests(table: pa.Table, examples: pa.Table | None) -> pa.Table:
    """The table with `count` and `cluster` of each example; null for examples that the release lacks."""
    count: dict[str, int] = {}
    cluster: dict[str, int] = {}
    if examples is not None:
        ids = examples["example_id"].to_pylist()
        count = dict(zip(ids, examples["count"].to_pylist(), strict=True))
        cluster = dict(zip(ids, families(examples).tolist(), strict=True))
    names = table["example_id"].to_pylist()
    for name, values in (("count", count), ("cluster", cluster)):
        table = table.append_column(name, pa.array([values.get(example) for example in names], pa.int64()))
    return table.cast(SCORE_TABLE)


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
