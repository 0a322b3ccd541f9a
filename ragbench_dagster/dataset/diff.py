"""What changed from one release to another: examples, labels, weights, and the mix of categories."""

from __future__ import annotations

import math
from typing import Any

from ragbench_dagster.dataset.release import Release

# A change of an example's share of the traffic below this factor is the noise of sampling.
WEIGHT_FACTOR = 1.5
_LABEL = ("expected_doc_ids", "expected_grades", "expected_answer", "conflict", "synthetic")


def diff_releases(a: Release, b: Release) -> dict[str, Any]:
    """What `b` has that `a` has not, and the other way round.

    Returns:
        `added`, `removed`: rows {example_id, query, category, weight}; `relabelled`: {example_id, query, fields};
        `reweighted`: {example_id, query, before, after} where the share of the traffic changed by half or more;
        `moved`: {example_id, query, before, after} where the category changed; `categories`: the shift
        {category: {a, b, change}} in shares of the traffic; all sorted by example_id.
    """
    before = {row["example_id"]: row for row in a.examples.to_pylist()}
    after = {row["example_id"]: row for row in b.examples.to_pylist()}
    both = sorted(before.keys() & after.keys())
    shares_before, shares_after = _shares(before), _shares(after)
    relabelled = []
    for key in both:
        fields = [name for name in _LABEL if before[key][name] != after[key][name]]
        if fields:
            relabelled.append({"example_id": key, "query": after[key]["query"], "fields": fields})
    return {
        "from": a.id,
        "to": b.id,
        "added": [_named(after[key]) for key in sorted(after.keys() - before.keys())],
        "removed": [_named(before[key]) for key in sorted(before.keys() - after.keys())],
        "relabelled": relabelled,
        "reweighted": [
            {**_named(after[key]), "before": shares_before[key], "after": shares_after[key]}
            for key in both
            if _differs(shares_before[key], shares_after[key])
        ],
        "moved": [
            {
                "example_id": key,
                "query": after[key]["query"],
                "before": before[key]["category"],
                "after": after[key]["category"],
            }
            for key in both
            if before[key]["category"] != after[key]["category"]
        ],
        "categories": _shift(before, after),
    }


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("example_id", "query", "category", "weight")}


def _shares(rows: dict[str, dict[str, Any]]) -> dict[str, float]:
    total = math.fsum(row["weight"] for row in rows.values())
    return {key: row["weight"] / total if total else 0.0 for key, row in rows.items()}


def _differs(one: float, other: float) -> bool:
    return max(one, other) > WEIGHT_FACTOR * min(one, other)


def _shift(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    def mix(rows: dict[str, dict[str, Any]]) -> dict[str, float]:
        shares = _shares(rows)
        found: dict[str, list[float]] = {}
        for key, row in rows.items():
            found.setdefault(row["category"] or "", []).append(shares[key])
        return {name: math.fsum(parts) for name, parts in found.items()}

    one, other = mix(before), mix(after)
    return {
        name: {
            "a": one.get(name, 0.0),
            "b": other.get(name, 0.0),
            "change": other.get(name, 0.0) - one.get(name, 0.0),
        }
        for name in sorted(one.keys() | other.keys())
    }
