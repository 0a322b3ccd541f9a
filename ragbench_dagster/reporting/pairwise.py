"""Pairs of systems against each other: win, tie, loss with intervals."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.reporting.night import Night


def pairwise_results(night: Night) -> dict[str, Any]:
    return {"pairs": []}
