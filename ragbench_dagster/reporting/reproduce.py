"""A past night's figures computed again from its manifest, its answers and the ledger, without any call.

The tables are computed in a shadow of the store (links to what is read, a fresh folder for the night) with the
settings the manifest recorded, then compared with what the night wrote. Nothing of the night is touched.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.asks import by_ask, score_asks, with_ask
from ragbench_dagster.evaluation.pipeline import night_release_of
from ragbench_dagster.evaluation.replay import replay_verdicts
from ragbench_dagster.evaluation.retrieval import score_retrieval
from ragbench_dagster.reporting.baselines import accepted_path, keep_until
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.leaderboard import rank
from ragbench_dagster.reporting.scores import build_scores
from ragbench_dagster.reporting.summary import summarise
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.settings import Settings
from ragbench_dagster.store import Workspace, read_json, read_table, write_table

COPIED = (
    "responses.parquet", "timings.parquet", "attempts.json", "extra_responses.parquet",
    # the days of traffic that they were made of may be gone
    "requests.parquet", "request_retrieval.parquet", "request_verdicts.parquet",
)  # fmt: skip
REPORTS = ("summary.json", "leaderboard.json", "gate.json")


def reproduce_night(ws: Workspace, day: str) -> dict[str, Any]:
    """Compute the night `day` again and compare every figure.

    Returns:
        {"day", "same": bool, "tables": [[table, figures compared, differences]]}

    Raises:
        UserError: the night, its release or its answers are missing or damaged.
    """
    manifest = ws.result(day, Manifest)
    if manifest is None:
        raise UserError(f"{ws.night(day)}: no manifest; the night cannot be reproduced")
    with tempfile.TemporaryDirectory() as folder:
        shadow = _shadow(ws, day, manifest, Path(folder))
        tables = [[*row] for row in _tables(ws, shadow, day, manifest)]
        build_scores(shadow, day, sorted(manifest.systems))
        tables.append(_compare("scores.parquet", *_both(ws, shadow, day, "scores.parquet")))
        summarise(shadow, day)
        rank(shadow, day)
        decide(shadow, day)
        for name in REPORTS:
            found = [dict(_flat(read_json(w.night(day) / name))) for w in (ws, shadow)]
            tables.append([name, len(found[0]), _differences(*found)])
    return {"day": day, "same": all(row[2] == 0 for row in tables), "tables": tables}


def _shadow(ws: Workspace, day: str, manifest: Manifest, root: Path) -> Workspace:
    """A workspace that reads the old one and writes one night of its own."""
    settings = ws.settings if manifest.settings is None else Settings.model_validate(manifest.settings)
    shadow = Workspace(root, settings, ws.sample)
    nights = ws.night(day).parent
    for path in ws.root.iterdir():
        if path.name not in ("store", ".dagster", ".git", ".venv"):
            (root / path.name).symlink_to(path)
    shadow.night(day).mkdir(parents=True)
    for path in ws.store.iterdir():
        if path not in (nights, accepted_path(ws)) and path.name != ".lock":
            (shadow.store / path.name).symlink_to(path)
    gate = ws.result(day, GateDecision)
    keep_until(ws, shadow, gate.accepted if gate else None)
    for path in nights.iterdir():
        if path.name != day:
            (shadow.night(day).parent / path.name).symlink_to(path)
    for path in ws.night(day).iterdir():
        if path.is_file() and path.name not in (
            "scores.parquet",
            "asks.parquet",
            "requests.parquet",
            "summary.parquet",
            "report.html",
            *REPORTS,
        ):
            (shadow.night(day) / path.name).symlink_to(path)
    return shadow


def _tables(ws: Workspace, shadow: Workspace, day: str, manifest: Manifest) -> Iterator[list[Any]]:
    """Retrieval scores and verdicts of each system, computed again."""
    from ragbench_dagster.evaluation.pipeline import corpus_ids

    release = night_release_of(ws, manifest.release)
    known = corpus_ids(ws)
    for name in sorted(manifest.systems):
        folder, mine = ws.night(day, name), shadow.night(day, name)
        mine.mkdir()
        for part in (part for part in COPIED if (folder / part).exists()):
            (mine / part).symlink_to(folder / part)
        metrics = shadow.settings.retrieval_metrics
        answers = read_table(folder / "responses.parquet")
        score = partial(score_retrieval, release=release, metrics=metrics, system=name, corpus_ids=known)
        again = {"retrieval": score(answers)}
        further = score_asks(folder, answers, score)
        if further is not None:
            again["extra_retrieval"] = further
        if (folder / "verdicts.parquet").exists():
            again["verdicts"] = replay_verdicts(ws, day, name, release)
        asks = [(k, replay_verdicts(ws, day, name, release, k)) for k, _ in by_ask(folder, "verdicts")]
        if asks:
            again["extra_verdicts"] = pa.concat_tables([with_ask(table, k) for k, table in asks])
        for part, table in again.items():
            write_table(mine / f"{part}.parquet", table)
            yield _compare(f"{name}/{part}.parquet", read_table(folder / f"{part}.parquet"), table)


def _both(ws: Workspace, shadow: Workspace, day: str, name: str) -> tuple[pa.Table, pa.Table]:
    return read_table(ws.night(day) / name), read_table(shadow.night(day) / name)


def _compare(name: str, stored: pa.Table, again: pa.Table) -> list[Any]:
    before = dict(_flat(stored.to_pylist()))
    after = dict(_flat(again.select(stored.column_names).to_pylist()))
    return [name, stored.num_rows, _differences(before, after)]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every leaf."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{path}.{key}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _flat(part, f"{path}[{place}]")
    else:
        yield path, value


def _differences(one: dict[str, Any], other: dict[str, Any]) -> int:
    """Leaves that stand on one side only or differ; floats to twelve digits (libraries may round otherwise)."""
    return sum(not _same(one.get(path), other.get(path)) for path in one.keys() | other.keys())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    return bool(a == b)
