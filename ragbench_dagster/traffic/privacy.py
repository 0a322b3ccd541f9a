"""Is personal data gone? An independent check of what was written, and the scrubber's measured quality.

How spans are found belongs to `scrubbing`; this module asks and remembers the answers in the store, so that
the release and the gate read facts instead of trusting that an upstream check ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, read_json, read_table, write_json
from ragbench_dagster.traffic.ingest import replaced_file
from ragbench_dagster.traffic.scan import left_over, privacy_file
from ragbench_dagster.traffic.scrubbing import build_scrubber, read_labelled, residual, scrub_floor, scrub_quality
from ragbench_dagster.traffic.scrubbing.quality import summed
from ragbench_dagster.traffic.timestamps import last_days

TEXT_COLUMNS = ("query", "response", "category", "model")


def texts_of(table: Any) -> list[str]:
    """Every text of a scrubbed table: questions, histories, answers, passages and names."""
    found: list[str] = []
    for name in TEXT_COLUMNS:
        found += [t for t in table[name].to_pylist() if t]
    for turns in table["history"].to_pylist():
        found += turns or []
    for nodes in table["source_nodes"].to_pylist():
        for node in nodes or []:
            found += [t for t in (node["node_id"], node["text"]) if t]
    return list(dict.fromkeys(found))


def verify_days(
    ws: Workspace, days: list[str], progress: Callable[[str, int, int], None] | None = None
) -> dict[str, dict[str, int]]:
    """Look for personal data in what was written; DAY -> {entity: findings}. Writes `privacy.json` of each day.

    Entities that `scrub.entities` switches off and phrases of `scrub.allow` are left out.
    """
    wanted = build_scrubber(ws.settings.scrub, ws.root).chosen.entities
    allowed = ws.settings.scrub.allow
    known: dict[str, dict[str, int]] = {}  # passages repeat over requests and days
    found: dict[str, dict[str, int]] = {}
    for done, day in enumerate(days):
        table = read_table(ws.traffic(day) / "scrubbed.parquet")
        counts: Counter[str] = Counter()
        for text in texts_of(table):
            if text not in known:
                known[text] = residual([_without(text, allowed)])
            counts.update({kind: n for kind, n in known[text].items() if kind in wanted})
        found[day] = dict(sorted(counts.items()))
        write_json(privacy_file(ws, day), {"left_over": found[day], "rows": table.num_rows})
        if progress:
            progress("verify", done + 1, len(days))
    return found


def _without(text: str, phrases: list[str]) -> str:
    for phrase in phrases:
        text = text.replace(phrase, " ")
    return text


def require_clean(ws: Workspace, day: str) -> None:
    """Refuse to go on where personal data was found, or scrubbing fell below its floor; search what never was.

    Raises:
        UserError: names the day or the entity type.
    """
    for past in reversed(last_days(day, ws.settings.dataset.reach_days)):
        left = left_over(ws, past)
        if left is None:  # a run was killed in between, and the day's logs may be gone since
            left = verify_days(ws, [past])[past]
        if left:
            kinds = ", ".join(f"{n} x {kind}" for kind, n in sorted(left.items()))
            raise UserError(
                f"{past}: personal data left after scrubbing ({kinds}); add a scrub.recognizers entry and run again"
            )
    quality = read_json(quality_path(ws, day))
    for line in (quality or {}).get("below_floor", []):
        raise UserError(f"scrub.floor: {line}; the release is held until scrubbing is better or the floor is changed")


def quality_path(ws: Workspace, day: str) -> Path:
    return ws.night(day) / "scrub_quality.json"


def measure_scrubbing(ws: Workspace, day: str) -> dict[str, Any]:
    """Precision, recall and F1 per entity on `scrub_labels.jsonl`; kept in the night's folder.

    Returns:
        {"rows": labelled rows, "all": {...}, "types": {ENTITY: {...}}, "below_floor": [line], "most_replaced":
        [{evidence, strong, type, word: keyed hash, length, times, days}] of the window's requests}
    """
    scrubber = build_scrubber(ws.settings.scrub, ws.root)
    rows = read_labelled(ws.root / "scrub_labels.jsonl")
    found: dict[str, Any] = {
        "rows": len(rows),
        "all": {},
        "types": {},
        **(scrub_quality(scrubber, rows) if rows else {}),
    }
    found["most_replaced"] = most_replaced(ws, day)
    found["below_floor"] = scrub_floor(found, ws.settings.scrub) if rows else _unmeasured(ws)
    write_json(quality_path(ws, day), found)
    return found


def most_replaced(ws: Workspace, day: str, top: int = 10) -> list[dict[str, Any]]:
    """The most frequent replaced words of each kind of evidence, over the days of the window that ends at `day`."""
    days = last_days(day, ws.settings.dataset.window_days)
    return summed([read_json(replaced_file(ws, past)) or [] for past in days], top)


def _unmeasured(ws: Workspace) -> list[str]:
    if not ws.settings.scrub.floor:
        return []
    return ["a floor is set but scrub_labels.jsonl has no rows to measure it on"]


# What a person must be told of the traffic that was read: damaged files, and days that were mostly bad lines.

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
