"""What the log files hold together: requests, each counted once, their days, and which are follow-ups.

A pure function of the files' indexes; nothing is read here. An id that comes again, in whatever file or on
whatever day, is a re-delivery: its first line by time, then by file and line, is the request. A request is a
follow-up if it brings a history, or is not the first of its conversation by time, then file order, across
midnight too.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ragbench_dagster.traffic.conversations import mark_turns, spoken
from ragbench_dagster.traffic.files import LogFile
from ragbench_dagster.traffic.log_index import (
    BAD,
    ENTRY,
    FOREIGN,
    FORGOTTEN,
    HISTORY,
    NO_TIME,
    RANK,
    WANTED,
    WHOLE,
    FileIndex,
)
from ragbench_dagster.traffic.traces.join import root_of

DAY_US = 86_400_000_000
NO_QUESTION = "query: the root of the trace holds no question"
ROW = np.dtype(
    [*[(name, ENTRY[name]) for name in ENTRY.names or ()], ("file", "<i4"), ("day", "<i4"), ("again", "?"),
     ("reused", "?"), ("follow_up", "?"), ("before", "<u8")]
)  # fmt: skip
Place = tuple[int, int, int]  # file, line, part


@dataclass
class Resolved:
    """Requests and bad lines of all files; positions in `files` stand for files."""

    files: list[LogFile]
    requests: np.ndarray  # of ROW, re-delivered lines (`again`) among them
    bad: np.ndarray  # of ROW; `reason` is a position in `reasons`
    reasons: list[str]
    members: dict[Place, list[Place]]  # of a joined trace: where its spans stand, by its root's place
    unplaced: np.ndarray  # bad lines that no day could be found for
    talk: np.ndarray  # of ROW: requests of conversations in their order, those before the first day among them

    @property
    def days(self) -> list[int]:
        """Day numbers that hold lines, sorted."""
        return np.union1d(self.requests["day"], self.bad["day"]).tolist()

    def marks(self) -> dict[int, str]:
        """Content hash of each day: its lines, where they stand, and what is known of them."""
        keys = [file.key.encode() for file in self.files]
        found: dict[int, str] = {}
        for day, requests in _by_day(self.requests).items():
            found[day] = _mark(requests, keys, [])
        for day, bad in _by_day(self.bad).items():
            found[day] = found.get(day, "") + _mark(bad, keys, self.reasons)
        return {day: hashlib.sha256(found[day].encode()).hexdigest()[:32] for day in sorted(found)}


def resolve(files: list[LogFile], indexes: list[FileIndex], first_day: int | None, traces: bool) -> Resolved:
    """Bring the files' indexes together.

    Args:
        files: in their order.
        indexes: of these files.
        first_day: day number of `traffic.start`; earlier lines are none of ours.
        traces: entries are spans, to be joined.
    """
    rows, reasons = _concatenate(indexes)
    left = rows["trace"][rows["flags"] & FORGOTTEN != 0]
    if len(left):  # one span of a person's speaks for its trace
        rows = rows[~np.isin(rows["trace"], left) | (rows["flags"] & BAD != 0)]
    members: dict[Place, list[Place]] = {}
    bad, good = rows[rows["flags"] & BAD != 0], rows[rows["flags"] & BAD == 0]
    if traces:
        good, lost, members = _join(good)
        reasons.append(NO_QUESTION)
        lost["reason"] = len(reasons) - 1
        bad = np.concatenate([bad, lost])
    good["day"] = good["time"] // DAY_US
    _mark_again(good)
    talk = _mark_follow_ups(good)
    known = _place_bad(bad, good, files)
    if first_day is not None:
        # What comes before the start is none of ours, but still tells a follow-up or re-delivery after it.
        good = good[good["day"] >= first_day]
        ours = ~known | (bad["day"] >= first_day)
        bad, known = bad[ours], known[ours]
    days = np.concatenate([good["day"], bad["day"][known]])
    if len(days):
        bad["day"][~known] = days.min()
        known[:] = True
    order = np.lexsort((bad["part"], bad["line"], bad["file"]))
    bad, known = bad[order], known[order]
    return Resolved(files, good, bad[known], reasons, members, bad[~known], talk)


def _concatenate(indexes: list[FileIndex]) -> tuple[np.ndarray, list[str]]:
    reasons: dict[str, int] = {}
    rows = np.zeros(sum(len(i.entries) for i in indexes), dtype=ROW)
    at = 0
    for number, index in enumerate(indexes):
        part = rows[at : at + len(index.entries)]
        for name in ENTRY.names or ():
            part[name] = index.entries[name]
        part["file"] = number
        if index.reasons:
            shared = np.array([reasons.setdefault(r, len(reasons)) for r in index.reasons] + [-1])
            part["reason"] = shared[part["reason"]]  # -1 stays -1
        at += len(index.entries)
    return rows, list(reasons)


def _mark_again(rows: np.ndarray) -> None:
    once = np.flatnonzero(~rows["again"])  # a joined trace knows its repeated spans already
    if not len(once):
        return
    part = rows[once]
    order = once[np.lexsort((part["part"], part["line"], part["file"], part["time"], part["id"]))]
    ids, queries = rows["id"][order], rows["query"][order]
    same = np.concatenate([[False], ids[1:] == ids[:-1]])
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
    rows["again"][order] = same
    rows["reused"][order] = same & (queries != queries[first])


def _mark_follow_ups(rows: np.ndarray) -> np.ndarray:
    """Mark the follow-ups; returns the requests of conversations in their order."""
    rows["follow_up"] = rows["flags"] & HISTORY != 0
    order = spoken(rows)
    if len(order):
        talk = rows["conversation"][order]
        rows["follow_up"][order] |= np.concatenate([[False], talk[1:] == talk[:-1]])
        mark_turns(rows, order)
    return rows[order]


def _place_bad(bad: np.ndarray, good: np.ndarray, files: list[LogFile]) -> np.ndarray:
    """Give each bad line its day; returns where one was found.

    The day in the file's name, if the file holds good lines of that day or none at all; else the day of the
    nearest good line. (A file named by local time holds no line of its name's day near midnight.)
    """
    timed = bad["time"] != NO_TIME
    bad["day"] = np.where(timed, bad["time"], 0) // DAY_US
    known = timed.copy()
    pairs = set(zip(good["file"].tolist(), good["day"].tolist(), strict=True))
    filled = {file for file, _ in pairs}
    for number in np.unique(bad["file"]).tolist():
        named = files[number].date
        if named is not None and ((number, named) in pairs or number not in filled):
            mine = bad["file"] == number
            bad["day"][mine], known[mine] = named, True
    return known


def _join(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[Place, list[Place]]]:
    """(one row for each trace, the roots of traces without a question, where the spans of each trace stand)."""
    groups: dict[int, list[int]] = {}
    for at, trace in enumerate(spans["trace"].tolist()):
        groups.setdefault(trace, []).append(at)
    places = list(zip(spans["file"].tolist(), spans["line"].tolist(), spans["part"].tolist(), strict=True))
    flags, own, parents = spans["flags"].tolist(), spans["span"].tolist(), spans["parent"].tolist()
    sessions, times, digests = spans["conversation"].tolist(), spans["time"].tolist(), spans["digest"].tolist()
    kept: list[int] = []
    lost: list[int] = []
    repeats: list[int] = []
    members: dict[Place, list[Place]] = {}
    for group in groups.values():
        first: dict[int, int] = {}
        for at in group:
            first.setdefault(own[at], at)
        once = list(first.values())
        chosen = root_of(
            [bool(flags[at] & WHOLE) for at in once],
            [own[at] for at in once],
            [parents[at] for at in once],
            [flags[at] >> RANK for at in once],
            [bool(flags[at] & FOREIGN) for at in once],
        )
        root = once[chosen]
        if not flags[root] & WANTED:
            continue
        if not flags[root] >> RANK:
            lost.append(root)
            continue
        kept.append(root)
        repeats += [at for at in group if own[at] == own[root] and at != root]
        members[places[root]] = [places[at] for at in once]
        steps = sorted(once, key=lambda at: times[at])
        spans["conversation"][root] = next((sessions[at] for at in (root, *steps) if sessions[at]), 0)
        spans["digest"][root] = sum(digests[at] for at in once) % (1 << 64)
    spans["again"][repeats] = True
    found = spans[sorted(kept + repeats)]
    return found, spans[sorted(lost)], members


def _by_day(rows: np.ndarray) -> dict[int, np.ndarray]:
    order = np.lexsort((rows["part"], rows["line"], rows["file"], rows["day"]))
    rows = rows[order]
    days, starts = np.unique(rows["day"], return_index=True)
    return {int(d): part for d, part in zip(days, np.split(rows, starts[1:]), strict=True)} if len(rows) else {}


def _mark(rows: np.ndarray, keys: list[bytes], reasons: list[str]) -> str:
    total = hashlib.sha256()
    for number in np.unique(rows["file"]).tolist():
        mine = rows[rows["file"] == number]
        total.update(keys[number])
        for name in ("line", "part", "time", "id", "category", "digest", "again", "reused", "follow_up", "before"):
            total.update(np.ascontiguousarray(mine[name]).tobytes())
        for reason in mine["reason"].tolist() if reasons else ():
            total.update(reasons[reason].encode("utf-8", "replace"))
    return total.hexdigest()
