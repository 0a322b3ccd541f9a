"""What one log file holds, as numbers: which lines are requests, when, and keyed hashes of who and what.

An index lets the days, the re-deliveries and the follow-ups be found over all files without reading them
again. It is kept in `store/cache/traffic/`, one file for each log file, and may be deleted at any time. It
holds keyed hashes only: no text, no id, no category. What the numbers mean over all files belongs to `deliveries`.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ragbench_dagster.io.inputs import open_regular
from ragbench_dagster.store import Workspace, digest, write_atomic
from ragbench_dagster.traffic.files import LogFile
from ragbench_dagster.traffic.logs import Entry, Reader
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Span
from ragbench_dagster.traffic.suppression import Suppression
from ragbench_dagster.traffic.traces.join import TRACE, is_foreign, rank_of

Hasher = Callable[[bytes, str | bytes | None], int]
VERSION = "3"  # of the readers: another one reads every file again and runs every day again

BAD, NAIVE, HISTORY, REPAIRED, FORGOTTEN, WANTED, WHOLE, FOREIGN = 1, 2, 4, 8, 16, 32, 64, 128
RANK = 8  # bits from which on a span's `rank_of` stands in the flags
NO_TIME = np.iinfo(np.int64).min
ENTRY = np.dtype(
    [
        ("line", "<i4"),
        ("part", "<i4"),
        ("time", "<i8"),  # microseconds; of a bad line: that of the nearest good line, or NO_TIME
        ("id", "<u8"),
        ("query", "<u8"),
        ("category", "<u8"),  # 0: none
        ("conversation", "<u8"),  # 0: none
        ("digest", "<u8"),  # of the raw line
        ("trace", "<u8"),  # spans only, as are span and parent
        ("span", "<u8"),
        ("parent", "<u8"),  # 0: none
        ("flags", "<u2"),
        ("reason", "<i4"),  # position in `reasons` of a bad line, else -1
    ]
)


@dataclass
class FileIndex:
    """The entries of one log file, in its order."""

    entries: np.ndarray
    reasons: list[str] = field(default_factory=list)
    left_out: int = 0  # lines that traffic.where kept out


def reader_mark(ws: Workspace) -> str:
    """Changes with every setting that changes what a line means."""
    traffic = ws.settings.traffic
    return digest(VERSION, traffic.model_dump(mode="json", include={"format", "timezone", "fields", "where"}))


def index_file(ws: Workspace, reader: Reader, file: LogFile, forgotten: Suppression) -> FileIndex:
    """The index of `file`, from the cache where the file and the list of the forgotten are as they were."""
    path = ws.store / "cache" / "traffic" / f"{file.key}.index"
    mark = digest(reader_mark(ws), file.signature, ws.keyed("index"), *filter(None, [forgotten.mark]))
    cached = _load(path, mark)
    if cached is not None:
        return cached
    entries, reasons = collect(reader.read(file), hasher_of(ws), forgotten)
    index = FileIndex(entries, reasons, reader.left_out)
    head = {"mark": mark, "reasons": reasons, "left_out": index.left_out}
    buffer = io.BytesIO()
    buffer.write(json.dumps(head, ensure_ascii=True).encode("ascii") + b"\n")
    np.save(buffer, entries, allow_pickle=False)
    write_atomic(path, lambda p: p.write_bytes(buffer.getvalue()))
    return index


def drop_others(ws: Workspace, files: Iterable[LogFile]) -> None:
    """Remove cached indexes of files that are gone."""
    kept = {f"{file.key}.index" for file in files}
    for path in (ws.store / "cache" / "traffic").glob("*.index"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def _load(path: Path, mark: str) -> FileIndex | None:
    try:
        with open_regular(path) as stream:
            head = json.loads(stream.readline())
            if head["mark"] != mark:
                return None
            return FileIndex(np.load(stream, allow_pickle=False), head["reasons"], head["left_out"])
    except Exception:  # whatever numpy and json say of a damaged cache
        return None  # absent, or cut by a full disk: read the log file again


def hasher_of(ws: Workspace) -> Hasher:
    """Keyed 64-bit hashes of (kind, value). Two of a million ids are equal by chance once in 37 million workspaces."""
    secret = ws.secret[:64]

    def hasher(kind: bytes, value: str | bytes | None) -> int:
        if value is None:
            return 0
        raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        found = hashlib.blake2b(raw, digest_size=8, key=secret, person=kind).digest()
        return int.from_bytes(found, "little") or 1  # 0 stands for none

    return hasher


def span_digest(span: Span, hasher: Hasher) -> int:
    """Keyed hash of a span's line and its place in it."""
    return hasher(b"line", span.digest + span.part.to_bytes(4, "big"))


def collect(
    entries: Iterable[Entry], hasher: Hasher, forgotten: Suppression | None = None
) -> tuple[np.ndarray, list[str]]:
    """The entries of a file as an array, and the reasons of its bad lines; forgotten requests are none."""
    rows: list[tuple[int, ...]] = []
    reasons: dict[str, int] = {}
    waiting: list[int] = []  # bad lines before the first good one
    near = int(NO_TIME)
    for entry in entries:
        if isinstance(entry, BadLine):
            if near == NO_TIME:
                waiting.append(len(rows))
            at = reasons.setdefault(entry.reason, len(reasons))
            mark = hasher(b"line", entry.digest)
            rows.append((entry.line, 0, near, 0, 0, 0, 0, mark, 0, 0, 0, BAD, at))
            continue
        if forgotten and _is_forgotten(entry, forgotten):
            if isinstance(entry, Span):  # the rest of its trace must be found, wherever it stands
                trace = hasher(b"trace", entry.trace_id)
                rows.append((entry.line, entry.part, entry.start_us, 0, 0, 0, 0, 0, trace, 0, 0, FORGOTTEN, -1))
            continue
        rows.append(_span_row(entry, hasher) if isinstance(entry, Span) else _request_row(entry, hasher))
        near = rows[-1][2]
    found = np.array(rows, dtype=ENTRY)
    good = found[found["flags"] & BAD == 0]
    if waiting and len(good):
        found["time"][waiting] = good["time"][0]
    return found, list(reasons)


def _is_forgotten(entry: LogRequest | Span, forgotten: Suppression) -> bool:
    if isinstance(entry, Span):
        request = entry.extra.get("request_id") or entry.trace_id
        texts = (entry.question, entry.answer, *entry.history)
        return forgotten.covers(
            request, entry.user or entry.extra.get("user_id"), entry.session, texts, bool(entry.history)
        )
    texts = (entry.query, entry.response, *entry.history)
    return forgotten.covers(entry.request_id, entry.user_id, entry.conversation_id, texts, bool(entry.history))


def _request_row(entry: Entry, hasher: Hasher) -> tuple[int, ...]:
    assert not isinstance(entry, BadLine | Span)
    flags = NAIVE * entry.naive | HISTORY * bool(entry.history) | REPAIRED * entry.repaired
    return (
        entry.line,
        entry.part,
        entry.time_us,
        hasher(b"id", entry.request_id),
        hasher(b"query", entry.query),
        hasher(b"category", entry.category),
        hasher(b"conversation", entry.conversation_id),
        hasher(b"line", entry.digest),
        0,
        0,
        0,
        flags,
        -1,
    )


def _span_row(span: Span, hasher: Hasher) -> tuple[int, ...]:
    flags = (
        NAIVE * span.naive
        | HISTORY * bool(span.history)
        | REPAIRED * span.repaired
        | rank_of(span) << RANK
        | FOREIGN * is_foreign(span)
        | WANTED * span.wanted
        | WHOLE * (span.kind == TRACE)
    )
    return (
        span.line,
        span.part,
        span.start_us,
        hasher(b"id", span.extra.get("request_id") or span.trace_id),
        hasher(b"query", span.question),
        hasher(b"category", span.extra.get("category")),
        hasher(b"conversation", span.session),
        span_digest(span, hasher),
        hasher(b"trace", span.trace_id),
        hasher(b"span", span.span_id),
        hasher(b"span", span.parent_id),
        flags,
        -1,
    )


# Telling a person how far a stage is, a few times a second at most. Never part of any result.

Progress = Callable[[str, int, int], None]
INTERVAL_S = 0.25  # seconds between two calls


def throttled(progress: Progress | None) -> Progress:
    """`progress` called seldom, and always at the end; a function that does nothing for None."""
    last = [0.0]

    def tell(label: str, done: int, total: int) -> None:
        if progress is None:
            return
        now = time.monotonic()
        if done >= total or now - last[0] >= INTERVAL_S:
            last[0] = now
            progress(label, done, total)

    return tell
