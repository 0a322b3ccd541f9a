"""Were a system's figures made under the night's own conditions?

`ragbench run --system S` makes one branch again; the other systems' tables may then come from an older release,
judge or template. Such rows are never ranked or judged together with tonight's.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.evaluation.identity import verdict_key
from ragbench_dagster.evaluation.night_items import NightItems
from ragbench_dagster.reporting.night import Night, Scores
from ragbench_dagster.store import table_metadata


def other_conditions(night: Night) -> dict[tuple[str, str], str]:
    """(system, metric) -> why its scores were not made under the night's conditions; those that were are left out."""
    found: dict[tuple[str, str], str] = {}
    for system in sorted({system for system, _ in night.scores}):
        own = {metric: scores for (name, metric), scores in night.scores.items() if name == system}
        why = _answers(night, system)
        stale = dict.fromkeys(own, why) if why else _judged(night, system, own)
        found |= {(system, metric): reason for metric, reason in stale.items()}
    return found


def _answers(night: Night, system: str) -> str | None:
    path = night.ws.night(night.day, system) / "responses.parquet"
    if not path.exists():
        return "its answers are gone: run the system again"
    release = table_metadata(path).get(b"release", b"").decode()
    if release and release != night.manifest["release"]:
        return f"answered for release {release}: run the system again"
    return None


def _judged(night: Night, system: str, own: dict[str, Scores]) -> dict[str, str]:
    """One verdict of each metric is enough: a table of verdicts is always written whole."""
    wanted: dict[str, tuple[str, str]] = {}
    for metric, scores in own.items():
        rows = np.flatnonzero(scores.scored & np.array([key is not None for key in scores.keys]))
        if night.identity(metric) is not None and len(rows):
            wanted[metric] = scores.ids[rows[0]], scores.keys[rows[0]]
    if not wanted:
        return {}
    examples = pa.array(sorted({example for example, _ in wanted.values()}))
    answers = night.responses(system)
    kept = answers.filter(pc.is_in(answers["example_id"], examples))
    about = night.examples.filter(pc.is_in(night.examples["example_id"], examples))
    items = {item.example_id: item for item in NightItems(kept, SimpleNamespace(examples=about))()}
    return {
        metric: "judged by another judge, template or on other answers: run the system again"
        for metric, (example, key) in wanted.items()
        if example in items and verdict_key(night.identity(metric) or "", items[example]) != key
    }
