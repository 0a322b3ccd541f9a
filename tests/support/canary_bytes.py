"""Looks for planted values in everything below a folder: raw, decoded, and inside compressed files and databases."""

from __future__ import annotations

import base64
import gzip
import io
import json
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def spellings(value: str) -> set[bytes]:
    """How a value may stand in a file."""
    raw = value.encode()
    found = {
        raw,
        value.lower().encode(),
        quote(value, safe="").encode(),
        json.dumps(value)[1:-1].encode(),
        raw.hex().encode(),
    }
    found.add(raw.decode().encode("utf-16-le"))
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        found.add(encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6].encode())
    return {spelling for spelling in found if len(spelling) >= 8}


def found_in(folders: Iterable[Path], canaries: Iterable[str], left_out: Iterable[Path] = ()) -> list[str]:
    """`canary: where` of every planted value that stands in a file, a name or a link's target below `folders`."""
    wanted = _Wanted(canaries)
    skipped = [path.resolve() for path in left_out]
    hits = []
    for path in sorted({path for folder in folders for path in folder.rglob("*")}):
        if any(path.resolve() == skip or skip in path.resolve().parents for skip in skipped):
            continue
        blobs = [str(path).encode(), *(opened(path.read_bytes(), path) if path.is_file() else [])]
        hits += [f"{canary}: {path}" for canary in wanted.in_bytes(b"\0".join(blobs))]
    return sorted(set(hits))


class _Wanted:
    """All spellings of all planted values, found in one pass: by their first eight bytes, then compared whole."""

    def __init__(self, canaries: Iterable[str]) -> None:
        self._by_start: dict[int, list[tuple[bytes, str]]] = {}
        for canary in canaries:
            for spelling in spellings(canary):
                low = spelling.lower()
                start = int.from_bytes(low[:8], "little")
                self._by_start.setdefault(start, []).append((low, canary))
        self._starts = np.array(sorted(self._by_start), dtype="<u8")

    def in_bytes(self, data: bytes) -> set[str]:
        low, found = data.lower(), set()
        for shift in range(8):
            words = np.frombuffer(low, dtype="<u8", count=max(0, len(low) - shift) // 8, offset=min(shift, len(low)))
            for at in np.nonzero(np.isin(words, self._starts))[0]:
                place = int(at) * 8 + shift
                for spelling, canary in self._by_start[int(words[at])]:
                    if low[place : place + len(spelling)] == spelling:
                        found.add(canary)
        return found


def opened(data: bytes, path: Path | None = None, depth: int = 0) -> Iterator[bytes]:
    """The bytes, and what is in them where they are compressed, a table or a database."""
    yield data
    if depth > 3:
        return
    for inner in _inside(data, path):
        yield from opened(inner, None, depth + 1)


def _inside(data: bytes, path: Path | None) -> Iterator[bytes]:
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        yield pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    elif data[:4] == b"PAR1":
        try:
            table = pq.read_table(io.BytesIO(data))
        except pa.ArrowInvalid:  # cut off on purpose; its bytes are searched
            return
        yield json.dumps(table.to_pylist(), default=str, ensure_ascii=False).encode("utf-8", "replace")
        yield repr(table.schema.metadata).encode()
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield archive.read(name)
    elif data[:16] == b"SQLite format 3\0" and path is not None:
        yield from _rows(path)
    elif data[:1] == b"\x78" and len(data) > 2:
        try:
            yield zlib.decompress(data)
        except zlib.error:
            return


def _rows(path: Path) -> Iterator[bytes]:
    """Every value of every table; Dagster keeps pickles and compressed JSON in some."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        db.text_factory = bytes
        names = [row[0].decode() for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            for row in db.execute(f'SELECT * FROM "{name}"'):
                for value in row:
                    if isinstance(value, bytes):
                        yield value
