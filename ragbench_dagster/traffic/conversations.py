"""The turns before a follow-up, from the log itself: where a conversation's id and order are known.

A follow-up that brings its own `history` keeps it. One that brings none gets the requests before it in its
conversation, as `user: question` and `assistant: answer`, from the last of them that brought a history of its own
(which holds what lay before), at most TURNS of them. Requests of another user are none of its conversation, and
the same question asked again is no turn before itself.

The requests are read raw, scrubbed with the follow-up, and never kept longer than a follow-up waits for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ragbench_dagster.traffic.log_index import HISTORY
from ragbench_dagster.traffic.requests import LogRequest

TURNS = 10  # requests before a follow-up that are its history; whoever logs `history` decides that alone
Placed = tuple[int, LogRequest]


def spoken(rows: np.ndarray) -> np.ndarray:
    """Positions of the requests that belong to a conversation, each once, by conversation and order in it.

    The order is that of time, then of files and lines.
    """
    at = np.flatnonzero((rows["conversation"] != 0) & ~rows["again"])
    part = rows[at]
    return at[np.lexsort((part["part"], part["line"], part["file"], part["time"], part["conversation"]))]


def mark_turns(rows: np.ndarray, order: np.ndarray) -> None:
    """Set `before` of each follow-up without a history: it changes when a turn before it does."""
    talk, digests = rows["conversation"][order], rows["digest"][order]
    found = np.zeros(len(order), dtype="<u8")
    for back in range(1, min(TURNS, len(order) - 1) + 1):
        same = talk[back:] == talk[:-back]
        found[back:] += np.where(same, digests[:-back] * np.uint64(2 * back + 1), np.uint64(0))
    rows["before"][order] = np.where(rows["flags"][order] & HISTORY != 0, np.uint64(0), found)


@dataclass(frozen=True)
class Plan:
    """What is read for some requests: themselves, then turns before them."""

    rows: np.ndarray  # the wanted requests first, each place once
    before: dict[int, list[int]]  # position of a follow-up -> positions of the turns before it, oldest first


def plan(rows: np.ndarray, talk: np.ndarray) -> Plan:
    """Find the turns that the follow-ups among `rows` need.

    Args:
        rows: the wanted requests, each place once.
        talk: all requests of conversations, as `spoken` orders them.
    """
    place = {found: at for at, found in enumerate(_places(rows))}
    needing = np.flatnonzero(rows["follow_up"] & (rows["flags"] & HISTORY == 0) & (rows["conversation"] != 0))
    if not len(needing):
        return Plan(rows, {})
    ids, own = talk["conversation"], talk["flags"] & HISTORY != 0
    before: dict[int, list[int]] = {}
    more: list[int] = []
    for at in needing.tolist():
        turns: list[int] = []
        back = _where(talk, rows[at]) - 1
        while back >= 0 and len(turns) < TURNS and ids[back] == rows["conversation"][at]:
            turns.append(back)
            if own[back]:
                break
            back -= 1
        keys = _places(talk[turns[::-1]])
        for key, turn in zip(keys, turns[::-1], strict=True):
            if key not in place:
                place[key] = len(rows) + len(more)
                more.append(turn)
        before[at] = [place[key] for key in keys]
    return Plan(np.concatenate([rows, talk[more]]), before)


def _where(talk: np.ndarray, row: np.void) -> int:
    """Position of a request among those of conversations."""
    first, end = (int(np.searchsorted(talk["conversation"], row["conversation"], side)) for side in ("left", "right"))
    at = first + int(np.searchsorted(talk["time"][first:end], row["time"]))
    while any(talk[name][at] != row[name] for name in ("file", "line", "part")):
        at += 1  # of the same time
    return at


def _places(rows: np.ndarray) -> list[tuple[int, int, int]]:
    return list(zip(*(rows[name].tolist() for name in ("file", "line", "part")), strict=True))


def with_turns(requests: Iterable[Placed], wanted: int, before: dict[int, list[int]]) -> Iterator[Placed]:
    """The first `wanted` requests of a plan, follow-ups with the turns before them.

    Args:
        requests: all requests of the plan, in any order.
        wanted: how many of them are asked for; the others are turns only.
        before: as in `Plan`.
    """
    uses = Counter(turn for at, turns in before.items() for turn in (*turns, at))
    waiting: dict[int, list[int]] = {}  # turn -> follow-ups
    for at, turns in before.items():
        for turn in turns:
            waiting.setdefault(turn, []).append(at)
    missing = {at: len(turns) + 1 for at, turns in before.items()}  # its turns, and itself
    held: dict[int, LogRequest] = {}
    for at, request in requests:
        if uses[at]:
            held[at] = request
        if at < wanted and at not in before:
            yield at, request
        for follow_up in [*waiting.pop(at, ()), *([at] if at in before else [])]:
            missing[follow_up] -= 1
            if missing[follow_up]:
                continue
            turns = before[follow_up]
            history = _history(held[follow_up], [held[turn] for turn in turns])
            yield follow_up, msgspec.structs.replace(held[follow_up], history=history)
            for done in (*turns, follow_up):
                uses[done] -= 1
                if not uses[done]:
                    del held[done]


def _history(request: LogRequest, turns: Sequence[LogRequest]) -> tuple[str, ...]:
    """The turns as text, those of the same user that follow one another up to the request."""
    mine: list[LogRequest] = []
    for turn in reversed(turns):
        if turn.user_id != request.user_id and None not in (turn.user_id, request.user_id):
            break
        mine.insert(0, turn)
    while mine and mine[-1].query == request.query:
        mine.pop()
    texts: list[str] = []
    for turn in mine:
        texts += turn.history
        texts.append(f"user: {turn.query}")
        if turn.response and turn.response.strip():
            texts.append(f"assistant: {turn.response}")
    return tuple(texts)
