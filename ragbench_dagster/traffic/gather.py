"""Reading chosen requests again, by where they stand in the logs. Each file is read once.

The lines are checked against the index, so that a log file that changes while a day is run is noticed. What is
done with the requests belongs to `stages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ragbench_dagster.errors import UserError
from ragbench_dagster.traffic.files import Source
from ragbench_dagster.traffic.index import Hasher, hasher_of, span_digest
from ragbench_dagster.traffic.logs import Reader
from ragbench_dagster.traffic.model import BadLine, LogRequest, Span
from ragbench_dagster.traffic.resolve import Place
from ragbench_dagster.traffic.scan import LogIndex
from ragbench_dagster.traffic.traces.join import join


def gather(index: LogIndex, wanted: dict[Place, int]) -> Iterator[tuple[Place, LogRequest]]:
    """The requests at the wanted places, in the order in which the files give them.

    Args:
        index: of the logs.
        wanted: digest of each place, as the index has it.

    Raises:
        UserError: a file cannot be read, or changed since the scan.
    """
    ws = index.ws
    reader, hasher = Reader(Source(ws), ws.settings.traffic), hasher_of(ws)
    traces = _Traces(index, wanted) if ws.settings.traffic.format != "ragbench" else None
    places: Iterable[Place] = traces.places if traces else wanted
    lines: dict[int, set[int]] = {}
    for file, line, _ in places:
        lines.setdefault(file, set()).add(line)
    missing = set(wanted)
    for number in sorted(lines):
        for entry in reader.read(index.files[number], only=lines[number]):
            if isinstance(entry, BadLine):
                continue
            place = number, entry.line, entry.part
            if isinstance(entry, Span):
                assert traces is not None
                done = traces.add(place, entry, hasher)
            else:
                done = _checked(place, entry, wanted, hasher)
            if done is not None:
                missing.discard(done[0])
                yield done
    if missing:
        name = index.files[min(missing)[0]].name
        raise UserError(f"{name}: changed while it was read; run again")


def _checked(
    place: Place, entry: LogRequest, wanted: dict[Place, int], hasher: Hasher
) -> tuple[Place, LogRequest] | None:
    return (place, entry) if wanted.get(place) == hasher(b"line", entry.digest) else None


class _Traces:
    """Spans of the wanted traces, kept until a trace is whole."""

    def __init__(self, index: LogIndex, wanted: dict[Place, int]) -> None:
        self._wanted = wanted
        self._members = {root: index.resolved.members[root] for root in wanted}
        self._root_of = {place: root for root, places in self._members.items() for place in places}
        self._held: dict[Place, list[Span]] = {}
        self.places = self._root_of.keys()

    def add(self, place: Place, span: Span, hasher: Hasher) -> tuple[Place, LogRequest] | None:
        root = self._root_of.get(place)
        if root is None:
            return None
        held = self._held.setdefault(root, [])
        held.append(span)
        if len(held) < len(self._members[root]):
            return None
        del self._held[root]
        total = sum(span_digest(s, hasher) for s in held) % (1 << 64)
        return (root, join(held)) if total == self._wanted[root] else None
