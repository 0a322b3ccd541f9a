"""Which days the logs hold, and what each day's content is: the question asked by sensor, schedule and `run`.

Unchanged files are not read: their indexes are cached by size and times. How files are read belongs to
`logs`; what is done with a day to `stages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, digest, read_json, table_metadata, write_json
from ragbench_dagster.traffic.deliveries import Resolved, resolve
from ragbench_dagster.traffic.files import LogFile, Source, plain_name
from ragbench_dagster.traffic.log_format import log_format
from ragbench_dagster.traffic.log_index import FileIndex, Progress, drop_others, index_file, reader_mark, throttled
from ragbench_dagster.traffic.logs import Reader
from ragbench_dagster.traffic.suppression import read_suppression
from ragbench_dagster.traffic.timestamps import day_number, iso_day

_REMEMBERED = ("days", "marks", "left_out", "unplaced", "first_bad")
VERSION = "3"  # of sampling and scrubbing; raise it when their outcome changes, and every day is run again


@dataclass
class LogIndex:
    """The logs of a workspace as one scan found them."""

    ws: Workspace = field(repr=False)
    files: list[LogFile]
    ignored: int  # files in the source that are of no known kind
    settings_mark: str = field(repr=False)
    days: list[str]  # ISO days (UTC) that hold lines, sorted, from traffic.start on; future days too
    marks: dict[str, str] = field(repr=False)  # content of each day
    left_out: int  # lines that traffic.where kept out
    unplaced: int  # bad lines for which no day was found: no good line anywhere, no date in a name
    first_bad: str | None  # the first of those: file, line and reason

    def fingerprint(self, day: str) -> str:
        """Changes when the day must be run again: its lines, and all settings that decide its outcome."""
        return digest(VERSION, self.settings_mark, self.marks.get(day, "no lines"))

    @cached_property
    def resolved(self) -> Resolved:
        """Every request and bad line; read from the cache when first asked for."""
        reader, forgotten = Reader(Source(self.ws), self.ws.settings.traffic), read_suppression(self.ws)
        return _resolve(self.ws, self.files, [index_file(self.ws, reader, file, forgotten) for file in self.files])


def scan_logs(ws: Workspace, progress: Progress | None = None) -> LogIndex:
    """Look at the log files; read those that are new or changed.

    Raises:
        UserError: the source is missing, or a file cannot be read or is a Git LFS pointer.
    """
    memo_path = ws.store / "cache" / "traffic" / "days.json"
    memo = _memo(memo_path)
    names_mark = digest("names", scrub_mark(ws), ws.keyed("names"))
    known = memo.get("names", {}) if memo.get("names_mark") == names_mark else {}
    source = Source(ws)
    files = source.files(_plain(ws), known)
    settings_mark = digest(scrub_mark(ws), reader_mark(ws), ws.settings.traffic.sample.model_dump(mode="json"))
    start = ws.settings.traffic.start
    forgotten = read_suppression(ws)
    known_by = [[f.key, f.signature, f.date] for f in files], *filter(None, [forgotten.mark])
    mark = digest(VERSION, reader_mark(ws), str(start), ws.keyed("days"), *known_by)
    about: dict[str, Any] = {name: memo.get(name) for name in _REMEMBERED}
    if memo.get("mark") == mark and known:
        return LogIndex(ws, files, source.ignored, settings_mark, **about)
    reader, indexes, tell = Reader(source, ws.settings.traffic), [], throttled(progress)
    for done, file in enumerate(files, 1):
        indexes.append(index_file(ws, reader, file, forgotten))
        tell("scan", done, len(files))
    found = _resolve(ws, files, indexes)
    drop_others(ws, files)
    about = {
        "days": [iso_day(d) for d in found.days],
        "marks": {iso_day(d): m for d, m in found.marks().items()},
        "left_out": sum(i.left_out for i in indexes),
        "unplaced": len(found.unplaced),
        "first_bad": _first_bad(found),
    }
    names = {f.key: f.name for f in files}
    write_json(memo_path, {"mark": mark, "names_mark": names_mark, "names": names, **about})
    index = LogIndex(ws, files, source.ignored, settings_mark, **about)
    index.__dict__["resolved"] = found  # no need to read it back
    return index


def stale_days(ws: Workspace, index: LogIndex, until: str) -> list[str]:
    """Days up to `until` whose stored result is missing, unfinished, or older than the logs or the settings.

    Days that are in the store but no longer in the logs are never stale: logs are deleted by retention.
    """
    return [day for day in index.days if day <= until and not is_current(ws, day, index.fingerprint(day))]


def is_current(ws: Workspace, day: str, fingerprint: str) -> bool:
    """Whether the store holds the scrubbed requests of exactly this content, searched for personal data."""
    try:
        facts = read_json(ws.traffic(day) / "facts.json") or {}
    except UserError:
        return False  # damaged: run the day again
    if facts.get("pruned"):
        return True  # retention took it, and the logs that still hold it do not bring it back
    if not privacy_file(ws, day).exists():
        return False  # killed before the search: no findings would read as nothing found
    scrubbed = scrubbed_metadata(ws, day)
    return facts.get("fingerprint") == fingerprint and scrubbed is not None and scrubbed["fingerprint"] == fingerprint


def privacy_file(ws: Workspace, day: str) -> Path:
    """What a search of the day's scrubbed requests found; there is none until that search has ended."""
    return ws.traffic(day) / "privacy.json"


def left_over(ws: Workspace, day: str) -> dict[str, int] | None:
    """{entity: findings} in the day's scrubbed requests; None where they were never searched, {} without requests."""
    facts = read_json(privacy_file(ws, day))
    if facts is None:
        return None if (ws.traffic(day) / "scrubbed.parquet").exists() else {}
    return dict(facts["left_over"])


def scrubbed_metadata(ws: Workspace, day: str) -> dict[str, Any] | None:
    """{fingerprint, facts} of a day's `scrubbed.parquet`; None where there is no readable one."""
    try:
        metadata = table_metadata(ws.traffic(day) / "scrubbed.parquet")
        return {"fingerprint": metadata[b"fingerprint"].decode("ascii"), "facts": json.loads(metadata[b"facts"])}
    except (KeyError, ValueError, RecursionError):
        return None


def scrub_mark(ws: Workspace) -> str:
    """Changes with everything that changes what scrubbing does to a text."""
    from ragbench_dagster.traffic.scrubbing import scrubber_version

    return digest(VERSION, scrubber_version(ws.settings.scrub))


def shown_name(ws: Workspace, name: str) -> str:
    """A file's name as a message may show it."""
    return plain_name(name, _plain(ws))


def _plain(ws: Workspace) -> Callable[[str], str]:
    built: list[Any] = []

    def plain(text: str) -> str:
        if not built:
            from ragbench_dagster.traffic.scrubbing import build_scrubber

            # A file name has no sentence that a language model could read; loading one takes seconds.
            built.append(build_scrubber(ws.settings.scrub.model_copy(update={"ner": "off"}), ws.root))
        return built[0].plain(text)

    return plain


def _memo(path: Any) -> dict[str, Any]:
    try:
        return read_json(path) or {}
    except UserError:
        return {}  # a damaged cache is written anew


def _resolve(ws: Workspace, files: list[LogFile], indexes: list[FileIndex]) -> Resolved:
    traffic = ws.settings.traffic
    start = day_number(traffic.start) if traffic.start else None
    return resolve(files, indexes, start, log_format(traffic.format).traces)


def _first_bad(found: Resolved) -> str | None:
    if not len(found.unplaced):
        return None
    row = found.unplaced[0]
    return f"{found.files[row['file']].name}: line {row['line']}: {found.reasons[row['reason']]}"
