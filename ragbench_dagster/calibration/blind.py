"""Answers drawn for people to label who must not know what the judge said of them.

A draw is a file `calibration/NAME.jsonl` with rows to fill in, and an entry of `calibration/draws.json` that holds
what a person filling them in should not see: the judge's verdicts, which of two answers is the new one, and how
many answers they were drawn from. Rows say only which draw they belong to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench_dagster.calibration.rows import CalibrationRow
from ragbench_dagster.dataset.releases import load_release
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, digest, read_json, read_table, write_json, write_text

Answer = dict[str, Any]  # a row of responses.parquet


def draws_path(ws: Workspace) -> Path:
    return ws.calibration / "draws.json"


def read_draws(ws: Workspace, kind: str) -> dict[str, dict[str, Any]]:
    """Name -> facts of all draws of this kind; empty where none was made.

    Raises:
        UserError: a file that was changed by hand into something else.
    """
    found = read_json(draws_path(ws)) or {}
    if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
        raise UserError(f"{draws_path(ws).name}: must hold what was drawn for labelling; restore it")
    return {name: facts for name, facts in sorted(found.items()) if facts.get("kind") == kind}


def write_draw(ws: Workspace, name: str, facts: dict[str, Any], rows: Iterable[dict[str, Any]]) -> Path:
    """Write a draw's rows in an order that tells nothing, then its facts.

    Raises:
        UserError: a file of that name exists.
    """
    path = ws.calibration / f"{name}.jsonl"
    if path.exists():
        raise UserError(f"{path.name}: exists already; label its rows, or move it away to draw anew")
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    write_text(path, "".join(line + "\n" for line in sorted(lines, key=lambda line: digest(name, line))))
    known = read_json(draws_path(ws)) or {}
    write_json(draws_path(ws), {**known, name: facts})
    return path


def to_label(answer: Answer, example: dict[str, Any], metric: str, draw: str) -> dict[str, Any]:
    """A row to be labelled: what the person needs to see and nothing of the judge. Its `id` tells nothing either."""
    return {
        "id": digest(draw, answer["example_id"], answer["answer_hash"])[:16],
        "query": example["query"],
        "history": example["history"] or [],
        "contexts": answer["contexts"] or [],
        "response": answer["response"],
        "reference": example["expected_answer"],
        "human": {metric: None},
        "draw": draw,
    }


def origin(answer: Answer, release: str) -> dict[str, str]:
    """Where a drawn answer comes from: kept beside the verdicts, so that `forget` finds what it must remove."""
    return {"release": release, "example_id": answer["example_id"], "answer_hash": answer["answer_hash"]}


def forget_drawn(
    ws: Workspace, gone: Mapping[str, set[str]], successors: Mapping[str, str], hashes: set[str]
) -> dict[str, set[str]]:
    """Take a person's answers out of `draws.json`; draws lose them as if they had never been drawn.

    Args:
        gone: release -> examples that are removed from it.
        successors: release -> the one in its place.
        hashes: answers that are removed.

    Returns:
        Draw -> ids of the rows to be removed from its file.
    """
    known = read_json(draws_path(ws)) or {}
    found: dict[str, set[str]] = {}
    renewed = {}
    for name, facts in known.items():
        rows = facts.get("rows", {})
        out = {
            own
            for own, place in rows.items()
            if place["example_id"] in gone.get(place["release"], ()) or place["answer_hash"] in hashes
        }
        if out:
            found[name] = out
        kept = {own: {**place, "release": successors.get(place["release"], place["release"])}
                for own, place in rows.items() if own not in out}  # fmt: skip
        renewed[name] = {**facts, "rows": kept}
        if "passed" in facts:
            renewed[name]["passed"] = {own: v for own, v in facts["passed"].items() if own not in out}
        if "pairs" in facts:
            renewed[name]["pairs"] = [p for p in facts["pairs"] if p["old"] not in out and p["new"] not in out]
    if renewed != known:
        write_json(draws_path(ws), renewed)
    return found


def labels_of(rows: Sequence[CalibrationRow], draw: str, metric: str) -> dict[str, int]:
    """Row id -> label of what people filled in of one draw."""
    own = [(row.draw, row.human) for row in rows if row.draw is not None and metric in row.human]
    return {place[1]: human[metric] for place, human in own if place[0] == draw}


def answers_of(ws: Workspace, day: str, system: str) -> dict[str, Answer]:
    """example_id -> answer of a night, of those that hold a text."""
    path = ws.night(day, system) / "responses.parquet"
    if not path.exists():
        return {}
    rows = read_table(path).to_pylist()
    return {row["example_id"]: row for row in rows if row["status"] == "scored" and row["response"] is not None}


def verdicts_of(ws: Workspace, day: str, system: str, metric: str) -> dict[str, int]:
    """example_id -> 1 where the judge passed the answer of that night, 0 where it failed it, in the gate alone."""
    path = ws.night(day) / "scores.parquet"
    if not path.exists():
        return {}
    columns = ["system", "metric", "example_id", "status", "passing", "in_gate"]
    rows = read_table(path, columns).filter(_own(system, metric)).to_pylist()
    return {
        row["example_id"]: int(row["passing"])
        for row in rows
        if row["status"] == "scored" and row["passing"] is not None and row["in_gate"] is not False
    }


def _own(system: str, metric: str) -> Any:
    import pyarrow.compute as pc

    return (pc.field("system") == system) & (pc.field("metric") == metric)


def identity_of(ws: Workspace, day: str, metric: str) -> str | None:
    """The hash of the judge that graded `metric` on that night."""
    found = (read_json(ws.night(day) / "calibration.json") or {}).get("metrics", {}).get(metric) or {}
    name = (found.get("identity") or {}).get("hash")
    return name if isinstance(name, str) else None


def examples_of(ws: Workspace, release: str) -> dict[str, dict[str, Any]]:
    """example_id -> example of a release.

    Raises:
        UserError: the release is missing or was changed.
    """
    return {row["example_id"]: row for row in load_release(ws, release).examples.to_pylist()}


def file_part(metric: str) -> str:
    """A metric's name as a part of a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in metric)
