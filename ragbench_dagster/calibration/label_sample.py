"""A random sample of one night's own answers for people to label: the best correction there is.

The rows go to `calibration/SYSTEM-DAY.jsonl` with empty labels; a person fills in 0 or 1. They count for this
system and release as long as its answers stay as they are (see reporting/judge_correction.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.release import load_release
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import read_text
from ragbench_dagster.results import Manifest
from ragbench_dagster.store import Workspace, digest, read_table, write_text


def label_sample(ws: Workspace, day: str, system: str, metrics: list[str], n: int = 200) -> Path:
    """Draw `n` answers of `system` on the night `day` by the hash of their ids, and write them for labelling.

    Args:
        metrics: judged metrics to be labelled.
        n: answers; with fewer than 30 the labels are not used.

    Returns:
        The file; one that exists already is extended, and its labels stay.

    Raises:
        UserError: no such night or system, or a metric that no judge grades.
    """
    manifest = ws.result(day, Manifest)
    if manifest is None or system not in manifest.systems:
        raise UserError(f"{day}: no answers of the system {system!r} in the store; run: ragbench run --date {day}")
    for metric in metrics:
        if metric not in ws.settings.judged_metrics:
            known = ", ".join(ws.settings.judged_metrics)
            raise UserError(f"--metric {metric}: no judged metric of this workspace; it has {known}")
    examples = {
        row["example_id"]: row
        for row in load_release(ws, manifest.release).examples.to_pylist()
        if not (row["conflict"] or row["synthetic"])
    }
    answers = [
        row
        for row in read_table(ws.night(day, system) / "responses.parquet").to_pylist()
        if row["status"] == "scored" and row["response"] is not None and row["example_id"] in examples
    ]
    answers.sort(key=lambda row: digest("label-sample", manifest.release, system, row["example_id"]))
    path = ws.calibration / f"{system}-{day}.jsonl"
    held = _held(path)
    lines = [*held.values()]
    for row in answers[:n]:
        if row["example_id"] not in held:
            drawn = _row(row, examples[row["example_id"]], manifest.release, system, metrics)
            lines.append(json.dumps(drawn, ensure_ascii=False))
    write_text(path, "".join(line + "\n" for line in lines))
    return path


def _held(path: Path) -> dict[str, str]:
    """example_id -> line of a file that was drawn before."""
    if not path.exists():
        return {}
    found = {}
    for line in read_text(path).split("\n"):
        if line.strip():
            try:
                found[str(json.loads(line)["sample"]["example_id"])] = line.rstrip("\r")
            except (ValueError, KeyError, TypeError, RecursionError) as fault:
                raise UserError(f"{path.name}: holds a line that was not drawn here; move the file away") from fault
    return found


def _row(
    answer: dict[str, Any], example: dict[str, Any], release: str, system: str, metrics: list[str]
) -> dict[str, Any]:
    return {
        "id": f"{system}-{answer['example_id']}",
        "query": example["query"],
        "history": example["history"] or [],
        "contexts": answer["contexts"] or [],
        "response": answer["response"],
        "reference": example["expected_answer"],
        "human": dict.fromkeys(metrics),
        "sample": {
            "release": release,
            "system": system,
            "example_id": answer["example_id"],
            "answer_hash": answer["answer_hash"],
            "weight": 1.0,
        },
    }
