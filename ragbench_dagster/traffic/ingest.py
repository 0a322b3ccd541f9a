"""The two stages of traffic: which lines of a day are chosen, and what they say once scrubbed.

`sample_days` stores file, line and weight of the chosen requests; `scrub_days` reads those lines again and
stores their scrubbed text, the only text that is ever written. Each log file is read once a call, however many
days it holds. What a day's content is belongs to `scan`, which requests are kept to `sampling`, how a request is
scrubbed to `scrubbing` and `rows`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragbench_dagster import records
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, read_json, read_table, rows_table, write_json, write_table
from ragbench_dagster.traffic.conversations import plan, with_turns
from ragbench_dagster.traffic.deliveries import Resolved
from ragbench_dagster.traffic.log_index import NAIVE, REPAIRED, Progress, throttled
from ragbench_dagster.traffic.sampling import choose, gather, rank
from ragbench_dagster.traffic.scan import LogIndex, privacy_file, scan_logs, scrubbed_metadata
from ragbench_dagster.traffic.scrubbed_rows import Chosen, scrubbed_rows
from ragbench_dagster.traffic.scrubbing.placeholders import Word
from ragbench_dagster.traffic.scrubbing.quality import most_frequent
from ragbench_dagster.traffic.timestamps import day_number


@dataclass(frozen=True)
class DayFacts:
    """What is known of a day once it is sampled; stored as facts.json."""

    day: str
    fingerprint: str  # of the content and the settings it was made from
    read: int = 0  # requests, each id counted once
    redelivered: int = 0  # further lines of ids already counted
    sampled: int = 0
    quarantined: int = 0  # bad lines
    follow_ups: int = 0  # of `read`
    warnings: list[str] = field(default_factory=list)


def read_facts(ws: Workspace, day: str) -> DayFacts | None:
    """The stored facts of a day, or None."""
    found = read_json(ws.traffic(day) / "facts.json")
    known = DayFacts.__dataclass_fields__
    return DayFacts(**{k: v for k, v in found.items() if k in known}) if found else None


def sample_days(ws: Workspace, days: list[str], progress: Progress | None = None) -> dict[str, DayFacts]:
    """Choose the requests of each day; write sampled.parquet, quarantine.parquet and facts.json.

    A day that is in the store but no longer in the logs keeps what is stored: logs are deleted by retention.

    Raises:
        UserError: a log file cannot be read, or changed while it was read.
    """
    index = scan_logs(ws, progress)
    found = index.resolved
    numbers = {day_number(date.fromisoformat(day)): day for day in days}
    once = found.requests[~found.requests["again"] & np.isin(found.requests["day"], list(numbers))]
    ranks, keys = _read_ids(ws, index, once, throttled(progress))
    facts = {}
    for number, day in numbers.items():
        stored = read_facts(ws, day) if day not in index.marks else None
        if stored is not None and stored.read + stored.quarantined:
            facts[day] = stored
        else:
            mine = once["day"] == number
            facts[day] = _sample_day(ws, index, day, once[mine], ranks[mine], keys[mine])
    return facts


def _read_ids(ws: Workspace, index: LogIndex, rows: np.ndarray, tell: Progress) -> tuple[np.ndarray, np.ndarray]:
    """(rank, request_key) of each row. The ids are read from the logs: the index holds only keyed hashes."""
    ranks, keys = np.zeros(len(rows), dtype="<u8"), np.zeros(len(rows), dtype="S32")
    salt = ws.settings.traffic.sample.salt
    for done, (at, request) in enumerate(gather(index, rows), 1):
        ranks[at], keys[at] = rank(salt, request.request_id), ws.keyed(request.request_id)
        tell("sample", done, len(rows))
    return ranks, keys


def _sample_day(
    ws: Workspace, index: LogIndex, day: str, rows: np.ndarray, ranks: np.ndarray, keys: np.ndarray
) -> DayFacts:
    """Write one day's files; `rows` are its requests, each once."""
    found = index.resolved
    chosen = choose(ranks.tolist(), rows["category"].tolist(), ws.settings.traffic.sample)
    sampled: list[dict[str, Any]] = [
        {
            "request_key": keys[at].decode("ascii"),
            "file": found.files[rows["file"][at]].name,
            "line": int(rows["line"][at]),
            "weight": weight,
            "follow_up": bool(rows["follow_up"][at]),
        }
        for at, weight in chosen.items()
    ]
    number = day_number(date.fromisoformat(day))
    bad = found.bad[found.bad["day"] == number]
    quarantine = [
        {"file": found.files[b["file"]].name, "line": int(b["line"]), "reason": found.reasons[b["reason"]]} for b in bad
    ]
    again = found.requests[found.requests["again"] & (found.requests["day"] == number)]
    facts = DayFacts(
        day=day,
        fingerprint=index.fingerprint(day),
        read=len(rows),
        redelivered=len(again),
        sampled=len(sampled),
        quarantined=len(bad),
        follow_ups=int(rows["follow_up"].sum()),
        warnings=_warnings(ws, rows, again),
    )
    folder = ws.traffic(day)
    sampled.sort(key=lambda row: row["request_key"])
    write_table(folder / "sampled.parquet", rows_table(sampled, records.SAMPLED))
    write_table(folder / "quarantine.parquet", rows_table(quarantine, records.QUARANTINE))
    write_json(folder / "facts.json", asdict(facts))  # last: it says that the others are whole
    return facts


def _warnings(ws: Workspace, rows: np.ndarray, again: np.ndarray) -> list[str]:
    found = []
    naive, zone = int((rows["flags"] & NAIVE != 0).sum()), ws.settings.traffic.timezone
    if naive and "timezone" not in ws.settings.traffic.model_fields_set:
        found.append(f"{naive} times without a zone were taken as {zone}; set traffic.timezone if they are not")
    repaired = int((rows["flags"] & REPAIRED != 0).sum())
    if repaired:
        found.append(f"{repaired} lines held half an emoji; it was replaced by U+FFFD")
    reused = int(again["reused"].sum())
    if reused:
        found.append(f"{reused} request_ids came again with another question; an id must be unique over all days")
    return found


def scrub_days(
    ws: Workspace, days: list[str], progress: Progress | None = None, scrubber: Any = None
) -> dict[str, dict[str, Any]]:
    """Read the chosen lines of each day again and write scrubbed.parquet; {day: {rows, questions, replaced}}.

    A day that is scrubbed already, from the same content with the same settings, is left as it is.

    Args:
        ws: the workspace.
        days: ISO days, sampled before.
        progress: called with ("scrub", done, total) requests.
        scrubber: another than that of the settings.

    Raises:
        UserError: a day is not sampled, its logs changed since, or are gone.
    """
    index = scan_logs(ws)
    done: dict[str, dict[str, Any]] = {}
    parts: list[np.ndarray] = []
    about: list[Chosen] = []
    for day in days:
        stored, current = scrubbed_metadata(ws, day), index.fingerprint(day)
        if stored is not None and (day not in index.marks or (scrubber is None and stored["fingerprint"] == current)):
            done[day] = stored["facts"]
            continue
        rows, sampled = _chosen_rows(ws, index, day)
        parts.append(rows)
        about += [Chosen(day, sampled)] * len(rows)
        if not len(rows):
            done[day] = _write_scrubbed(ws, day, current, [], Counter())
    if about:
        done.update(_scrub(ws, index, np.concatenate(parts), about, throttled(progress), scrubber))
    return {day: done[day] for day in days}


def _chosen_rows(ws: Workspace, index: LogIndex, day: str) -> tuple[np.ndarray, dict[str, dict[str, Any]]]:
    """The rows of the chosen lines, and the day's sample by request_key."""
    facts = read_facts(ws, day)
    if facts is None:
        raise UserError(f"{day}: not sampled yet; run sampled_requests first")
    if facts.fingerprint != index.fingerprint(day):
        raise UserError(f"{day}: its logs or the settings changed after it was sampled; run sampled_requests again")
    sampled = {row["request_key"]: row for row in read_table(ws.traffic(day) / "sampled.parquet").to_pylist()}
    lines = {(row["file"], row["line"]) for row in sampled.values()}
    found: Resolved = index.resolved
    rows = found.requests[~found.requests["again"] & (found.requests["day"] == day_number(date.fromisoformat(day)))]
    # A line may hold several requests (OTLP); the request key, checked after reading, tells which are meant.
    places = zip(rows["file"].tolist(), rows["line"].tolist(), strict=True)
    return rows[[(found.files[file].name, line) in lines for file, line in places]], sampled


def _scrub(
    ws: Workspace, index: LogIndex, rows: np.ndarray, about: list[Chosen], tell: Progress, scrubber: Any
) -> dict[str, dict[str, Any]]:
    left = Counter(chosen.day for chosen in about)
    found: dict[str, list[dict[str, Any]]] = {day: [] for day in left}
    replaced: dict[str, Counter[str]] = {day: Counter() for day in left}
    words: dict[str, Counter[Word]] = {day: Counter() for day in left}
    facts: dict[str, dict[str, Any]] = {}
    needed = plan(rows, index.resolved.talk)
    requests = with_turns(gather(index, needed.rows), len(rows), needed.before)
    for count, (day, row, scrubbed) in enumerate(scrubbed_rows(ws, requests, about, scrubber), 1):
        if row is not None and scrubbed is not None:
            found[day].append(row)
            replaced[day].update(scrubbed.counts)
            words[day].update(scrubbed.words)
        left[day] -= 1
        if not left[day]:  # the day is whole: write it and let it go
            write_json(replaced_file(ws, day), most_frequent(words.pop(day), ws.keyed))
            facts[day] = _write_scrubbed(ws, day, index.fingerprint(day), found.pop(day), replaced.pop(day))
        tell("scrub", count, len(about))
    return facts


def replaced_file(ws: Workspace, day: str) -> Path:
    """The most frequent replaced words of a day, as keyed hashes."""
    return ws.traffic(day) / "replaced.json"


def _write_scrubbed(
    ws: Workspace, day: str, fingerprint: str, rows: list[dict[str, Any]], replaced: Counter[str]
) -> dict[str, Any]:
    rows.sort(key=lambda row: row["request_key"])
    facts = {
        "rows": len(rows),
        "questions": sum(row["question"] for row in rows),
        "replaced": dict(sorted(replaced.items())),
    }
    table: pa.Table = rows_table(rows, records.SCRUBBED)
    metadata = {"fingerprint": fingerprint, "facts": json.dumps(facts, sort_keys=True)}
    privacy_file(ws, day).unlink(missing_ok=True)  # it speaks of the rows that are replaced now
    write_table(ws.traffic(day) / "scrubbed.parquet", table, metadata)
    return facts
