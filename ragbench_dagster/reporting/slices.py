"""The parts that figures are shown for: categories, columns that the user names, new and known questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.night import Mask, Night, Scores

OVERALL = "overall"
AGE = "age"  # "new": first asked in the last seven days of the window
MOST_PARTS = 50  # of a dimension; the smallest are shown together
REST = "(all others)"
NONE = "(none)"


def dimensions(night: Night) -> dict[str, dict[str, str]]:
    """Dimension -> example_id -> part, for the settings' `slices` and the age of a question.

    Raises:
        UserError: `slices` names a column that the release lacks.
    """
    table = night.examples
    ids = table["example_id"].to_pylist()
    found: dict[str, dict[str, str]] = {}
    for name in night.ws.settings.slices:
        if name not in table.column_names:
            known = ", ".join(c for c in table.column_names if c not in ("example_id", "query", "history"))
            raise UserError(f"ragbench.yaml: slices: the release has no column {name!r}; it has {known}")
        found[name] = _parts(ids, table[name].to_pylist())
    first = table["first_day"].to_pylist()
    last = [d for d in table["last_day"].to_pylist() if d is not None]
    if last:
        edge: date = max(last) - timedelta(days=6)
        ages = ["known" if d is not None and d < edge else "new" for d in first]
        if len(set(ages)) > 1:
            found[AGE] = dict(zip(ids, ages, strict=True))
    return found


def _parts(ids: list[str], values: list[Any]) -> dict[str, str]:
    names = [NONE if v is None or v == "" else str(v) for v in values]
    kept = {name for name, _ in sorted(Counter(names).items(), key=lambda c: (-c[1], c[0]))[:MOST_PARTS]}
    return {i: name if name in kept else REST for i, name in zip(ids, names, strict=True)}


def parts(scores: Scores, dims: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, Mask]]:
    """(dimension, part, mask) over the rows of `scores`, the whole first, then by name."""
    yield OVERALL, OVERALL, np.ones(len(scores.ids), dtype=bool)
    for dimension, of in dims.items():
        own = np.array([of.get(i, NONE) for i in scores.ids.tolist()], dtype=object)
        for part in sorted(set(own.tolist())):
            yield dimension, part, own == part
