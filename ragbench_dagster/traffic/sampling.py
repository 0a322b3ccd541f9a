"""Which requests of a day are kept: bottom-k by a salted hash of the request id (design 6).

A request's rank depends on its id and the salt alone, so the same logs give the same sample on every machine,
and a higher rate only adds rows. Each kept request stands for `n / kept` requests of its stratum
(Horvitz-Thompson weights: Horvitz & Thompson 1952; bottom-k samples: Cohen & Kaplan 2007).
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Sample
from ragbench_dagster.traffic.deliveries import Place
from ragbench_dagster.traffic.files import Source
from ragbench_dagster.traffic.log_format import log_format
from ragbench_dagster.traffic.log_index import Hasher, hasher_of, span_digest
from ragbench_dagster.traffic.logs import Reader
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Span
from ragbench_dagster.traffic.scan import LogIndex
from ragbench_dagster.traffic.traces.join import join


def rank(salt: str, request_id: str) -> int:
    """Where a request stands in the order of selection (64 bits); kept in memory, never stored."""
    hashed = hashlib.sha256(f"{salt}\0{request_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(hashed[:8], "big")


def kept_of(n: int, rate: float, least: int) -> int:
    """How many of `n` requests are kept: `ceil(rate x n)`, or `least`, whichever is more, `n` at most.

    The rate is read as the decimal it was written as: 0.07 of 100 are 7, though 0.07 * 100 > 7 in floats.
    """
    share = Fraction(repr(rate)) * n
    return min(n, max(-(-share.numerator // share.denominator), least))


def choose(ranks: Sequence[int], strata: Sequence[Hashable], sample: Sample) -> dict[int, float]:
    """Positions of the kept requests of one day, with their weights.

    Each category is a stratum of its own, and at least `min_per_category` of it are kept. With
    `min_per_category: 0` no category is promised a request, and the day is one stratum: keeping
    `ceil(rate x n)` of each of many small categories would promise one of each, several times the rate.

    Args:
        ranks: of each request.
        strata: category of each request.
        sample: rate and floor.
    """
    groups: dict[Hashable, list[int]] = {}
    for at, stratum in enumerate(strata):
        groups.setdefault(stratum if sample.min_per_category else None, []).append(at)
    found: dict[int, float] = {}
    for group in groups.values():
        kept = kept_of(len(group), sample.rate, sample.min_per_category)
        for at in sorted(group, key=lambda at: ranks[at])[:kept]:
            found[at] = len(group) / kept
    return found


# Reading chosen requests again, by where they stand in the logs. Each file is read once.
#
# The lines are checked against the index, so that a log file that changes while a day is run is noticed. What is
# done with the requests belongs to `ingest`.

Placed = tuple[int, LogRequest]


def gather(index: LogIndex, rows: np.ndarray) -> Iterator[Placed]:
    """(position in `rows`, request) of each wanted request, in the order in which the files give them.

    Args:
        index: of the logs.
        rows: requests of `index.resolved`.

    Raises:
        UserError: a file cannot be read, or changed since the scan.
    """
    traces = log_format(index.ws.settings.traffic.format).traces
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
