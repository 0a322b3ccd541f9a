"""Recomputes a past night's verdict table from the ledger, without a call."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.asks import by_ask, extra_file
from ragbench_dagster.evaluation.cache_key import batched
from ragbench_dagster.evaluation.items import NightItems, ReleaseLike, score_row
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.records import SCORES, Verdict
from ragbench_dagster.store import Workspace, read_table, rows_table, table_metadata

_ROWS = 500  # keys looked up together


def replay_verdicts(ws: Workspace, day: str, name: str, release: ReleaseLike, ask: int = 0) -> pa.Table:
    """The verdicts of system `name` on the night `day` as the ledger, the answers and the release give them.

    Every status, score, verdict and feedback comes from the ledger, by the keys that the night recorded; weights
    and categories come from the release; what was not judged, from the night's answers and the ledger's failures.
    Equal to verdicts.parquet unless one of them was changed, or a failure has been forgotten.

    Args:
        ws: the workspace.
        day: the night, ISO date.
        name: the system.
        release: the night's release, as the night saw it (its sample, where it had one).
        ask: which ask of the heavy questions; 0: every question's answer.

    Raises:
        UserError: the night's answers or verdicts are missing.
    """
    folder = ws.night(day, name)
    kept = extra_file(folder, "verdicts") if ask else folder / "verdicts.parquet"
    if not kept.exists():
        raise UserError(f"{kept}: no such file; the night {day} has no verdicts on {name}")
    noted = table_metadata(kept)
    thresholds: dict[str, float] = json.loads(noted.get(b"thresholds", b"{}"))
    needs: dict[str, list[str]] = json.loads(noted.get(b"needs", b"{}"))
    verdicts = dict(by_ask(folder, "verdicts"))[ask] if ask else read_table(kept)
    keys = verdicts.select(["metric", "example_id", "key"]).to_pylist()
    answers = dict(by_ask(folder))[ask] if ask else read_table(folder / "responses.parquet")
    items = NightItems(answers, release)
    responses = {row["example_id"]: (row, item) for row, item in items.rows()}
    rows: list[dict[str, Any]] = []
    with Ledger.open(ws) as ledger:
        failures = ledger.failures(day, name)
        for some in batched(keys, _ROWS):
            held = ledger.get([row["key"] for row in some if row["key"]])
            for row in some:
                if row["example_id"] not in responses:
                    continue  # the release does not hold it: a difference that shows
                response, item = responses[row["example_id"]]
                key, found = row["key"], None
                if key is not None:
                    found = failures.get(key) or held.get(key)
                    found = found or Verdict("error", feedback="the ledger does not hold this verdict")
                verdict = items.verdict(needs.get(row["metric"], ()), response, item, found)
                verdict = _decided(verdict, thresholds.get(row["metric"]))
                rows.append(score_row(name, row["metric"], items.about[row["example_id"]], verdict, key))
    rows.sort(key=lambda r: (r["metric"], r["example_id"]))
    return rows_table(rows, SCORES)


def _decided(verdict: Verdict, threshold: float | None) -> Verdict:
    """The verdict by the threshold of that night."""
    if threshold is None or verdict.status != "scored" or verdict.score is None:
        return verdict
    return Verdict("scored", verdict.score, verdict.score >= threshold, verdict.feedback)
