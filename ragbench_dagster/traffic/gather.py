"""Reading chosen requests again, by where they stand in the logs. Each file is read once.

The lines are checked against the index, so that a log file that changes while a day is run is noticed. What is
done with the requests belongs to `stages`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ragbench_dagster.errors import UserError
from ragbench_dagster.traffic.files import Source
from ragbench_dagster.traffic.index import Hasher, hasher_of, span_digest
from ragbench_dagster.traffic.logs import Reader
from ragbench_dagster.traffic.model import BadLine, LogRequest, Span
from ragbench_dagster.traffic.resolve import Place
from ragbench_dagster.traffic.scan import LogIndex
from ragbench_dagster.traffic.traces.join import join

Placed = tuple[int, LogRequest]


def gather(index: LogIndex, rows: np.ndarray) -> Iterator[Placed]:
    """(position in `rows`, request) of each wanted request, in the order in which the files give them.

    Args:
        index: of the logs.
        rows: requests of `index.resolved`.

    Raises:
        UserError: a file cannot be read, or changed since the scan.
    """
    traces = index.ws.settings.traffic.format != "ragbench"
    missing = np.ones(len(rows), dtype=bool)
    for at, request in _joined(index, rows) if traces else _lines(index, rows):
        missing[at] = False
        yield at, request
    if missing.any():
        name = index.files[rows["file"][missing].min()].name
        raise UserError(f"{name}: changed while it was read; run again")


def _lines(index: LogIndex, rows: np.ndarray) -> Iterator[Placed]:
    reader, hasher = Reader(Source(index.ws), index.ws.settings.traffic), hasher_of(index.ws)
    for number, mine in _by_file(rows):
        wanted = dict(zip(rows["line"][mine].tolist(), mine.tolist(), strict=True))
        for entry in reader.read(index.files[number], only=wanted):
            if isinstance(entry, LogRequest):
                at = wanted[entry.line]
                if hasher(b"line", entry.digest) == rows["digest"][at]:
                    yield at, entry


def _by_file(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(position of the file, positions of its rows) of each file."""
    if len(rows):
        order = np.argsort(rows["file"], kind="stable")
        numbers, starts = np.unique(rows["file"][order], return_index=True)
        yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)


def _joined(index: LogIndex, rows: np.ndarray) -> Iterator[Placed]:
    """Spans are kept until their trace is whole; a trace may be spread over files."""
    reader, hasher = Reader(Source(index.ws), index.ws.settings.traffic), hasher_of(index.ws)
    roots: list[Place] = list(zip(*(rows[name].tolist() for name in ("file", "line", "part")), strict=True))
    members = [index.resolved.members[root] for root in roots]
    trace_of = {place: at for at, places in enumerate(members) for place in places}
    lines: dict[int, set[int]] = {}
    for file, line, _ in trace_of:
        lines.setdefault(file, set()).add(line)
    held: dict[int, list[Span]] = {}
    for number in sorted(lines):
        for entry in reader.read(index.files[number], only=lines[number]):
            if isinstance(entry, BadLine) or (at := trace_of.get((number, entry.line, entry.part))) is None:
                continue
            assert isinstance(entry, Span)
            spans = held.setdefault(at, [])
            spans.append(entry)
            if len(spans) == len(members[at]) and _digest(held.pop(at), hasher) == int(rows["digest"][at]):
                yield at, join(spans)


def _digest(spans: list[Span], hasher: Hasher) -> int:
    return sum(span_digest(span, hasher) for span in spans) % (1 << 64)
