"""Small nights for tests: a release, and what a system answered."""

from typing import Any

import pyarrow as pa

from ragbench_dagster import records
from ragbench_dagster.store import rows_table


class Release:
    def __init__(self, answers: list[str | None]) -> None:
        self.examples = rows_table(
            [
                {"example_id": f"e{n}", "query": "q", "history": [], "category": "c", "expected_answer": "r",
                 "conflict": n == 0, "synthetic": False, "weight": 1.5}
                for n in range(len(answers))
            ],
            records.EXAMPLES,
        )  # fmt: skip


def responses(answers: list[str | None]) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {"example_id": f"e{n}", "status": "error" if a is None else "scored", "response": a, "contexts": ["p"],
         "error": "Timeout" if a is None else None}
        for n, a in enumerate(answers)
    ]  # fmt: skip
    return rows_table(rows, records.RESPONSES)
