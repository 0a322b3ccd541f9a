"""What a person must be told of the traffic that was read: damaged files, and days that were mostly bad lines."""

from __future__ import annotations

from collections.abc import Iterable

from ragbench_dagster.store import Workspace, read_json, read_table

# Reasons that speak of a whole file, not of one line: what follows the damage was not read.
DAMAGE = ("truncated gzip", "damaged gzip", "bytes after the gzip stream", "damaged Parquet")


def bad_lines(ws: Workspace, day: str) -> tuple[int, int]:
    """(bad lines, requests read) of a day; (0, 0) where it was not read."""
    facts = read_json(ws.traffic(day) / "facts.json") or {}
    return facts.get("quarantined", 0), facts.get("read", 0)


def findings(ws: Workspace, days: Iterable[str]) -> list[str]:
    """One line for each damaged file, and for each day with too many bad lines (`traffic.quarantine_max`)."""
    lines: list[str] = []
    for day in days:
        bad, read = bad_lines(ws, day)
        if not bad:
            continue
        for row in read_table(ws.traffic(day) / "quarantine.parquet").to_pylist():
            if row["reason"].startswith(DAMAGE):
                lines.append(f"{row['file']}: {row['reason']} after line {row['line']}; what follows was not read")
        if not read:
            lines.append(f"{day}: all {bad} lines are bad; see store/traffic/{day}/quarantine.parquet")
        elif bad / (bad + read) > ws.settings.traffic.quarantine_max:
            lines.append(f"{day}: {bad} of {bad + read} lines are bad; see store/traffic/{day}/quarantine.parquet")
    return lines
