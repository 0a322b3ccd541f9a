"""The metric `answered`: whether the system answered each question of a night at all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ragbench_dagster.evaluation.items import score_row
from ragbench_dagster.metrics import ANSWERED
from ragbench_dagster.records import FAILED, SCORES, Verdict
from ragbench_dagster.store import rows_table

_ABOUT = ["example_id", "category", "conflict", "synthetic", "weight"]


def score_answered(responses: pa.Table, examples: pa.Table, system: str) -> pa.Table:
    """One row of records.SCORES an example, sorted by example_id: 1 answered (whatever it said), 0 failed.

    Args:
        responses: records.RESPONSES of the system; those of other examples are passed over.
        examples: records.EXAMPLES of the night's release.
        system: the system's name, for the column.
    """
    about = {row["example_id"]: row for row in examples.select(_ABOUT).to_pylist()}
    answers = responses.select(["example_id", "status", "error"]).to_pylist()
    rows = [
        score_row(system, ANSWERED, about[row["example_id"]], _verdict(row), None)
        for row in sorted(answers, key=lambda row: row["example_id"])
        if row["example_id"] in about
    ]
    return rows_table(rows, SCORES)


def _verdict(row: dict[str, Any]) -> Verdict:
    if row["status"] in FAILED:
        return Verdict("failed", passing=False, feedback=row["error"] or "no answer")
    if row["status"] == "not_applicable":
        return Verdict("not_applicable")
    return Verdict("scored", 1.0, True)
