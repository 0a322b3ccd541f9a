"""The one partitions definition: daily, UTC, from the first day with logs.

One definition keeps one job, one schedule and one picture. Systems are branches of the graph, not a second
dimension. Which days are done is asked of the store, never of Dagster (see `launch`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import dagster as dg

from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.scan import LogIndex, scan_logs

# Where neither settings nor logs name a day, the series starts here, so that an empty workspace still loads.
FALLBACK_DAYS = 100


def today() -> str:
    """Today (UTC), ISO."""
    return datetime.now(UTC).date().isoformat()


def first_day(ws: Workspace, index: LogIndex | None = None) -> str:
    """First day of the series: `traffic.start`, else the first day found in the logs."""
    if ws.settings.traffic.start:
        return ws.settings.traffic.start.isoformat()
    days = [d for d in (index or scan_logs(ws)).days if d < today()]
    return days[0] if days else (date.fromisoformat(today()) - timedelta(days=FALLBACK_DAYS)).isoformat()


def daily(start: str) -> dg.DailyPartitionsDefinition:
    """Days from `start` to yesterday: a day is a partition once it is over."""
    return dg.DailyPartitionsDefinition(start_date=start, timezone="UTC")


def ranges(days: list[str]) -> list[tuple[str, str]]:
    """Sorted ISO days as contiguous (first, last) ranges: Dagster takes one range a run."""
    found: list[tuple[str, str]] = []
    for day in sorted(set(days)):
        before = (date.fromisoformat(day) - timedelta(days=1)).isoformat()
        if found and found[-1][1] == before:
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found
