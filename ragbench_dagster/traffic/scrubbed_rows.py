"""From a raw request to the row that may be stored: text scrubbed, ids hashed. Nothing here reads or writes files."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from ragbench_dagster.errors import UserError
from ragbench_dagster.masking import mask
from ragbench_dagster.store import Workspace, read_json, write_json
from ragbench_dagster.traffic.requests import LogRequest
from ragbench_dagster.traffic.scan import scrub_mark
from ragbench_dagster.traffic.scrubbing.placeholders import ScrubbedRequest, safe_id
from ragbench_dagster.traffic.suppression import read_suppression
from ragbench_dagster.traffic.timestamps import day_of

BATCH = 64  # requests scrubbed together
PLAIN_CACHE = 100_000  # distinct doc ids, categories and models


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is known of a line before it is read."""

    day: str
    sampled: dict[str, dict[str, Any]]  # rows of the day's sampled.parquet by request_key


def scrubbed_rows(
    ws: Workspace,
    requests: Iterator[tuple[int, LogRequest]],
    chosen: Sequence[Chosen],
    scrubber: Any = None,
) -> Iterator[tuple[str, dict[str, Any] | None, ScrubbedRequest | None]]:
    """(day, row of `records.SCRUBBED`, what the scrubber made of it) of each request, in the given order.

    The row is None for a request that shares its line with a chosen one, and for one whose scrubbed text is
    forgotten: what the logs say was not known by that name.
    """
    forgotten = read_suppression(ws)
    if scrubber is None:
        from ragbench_dagster.traffic.scrubbing import build_scrubber

        scrubber = build_scrubber(ws.settings.scrub, ws.root)
    plain = lru_cache(PLAIN_CACHE)(scrubber.plain)
    for batch, results in _scrubbed(requests, scrubber):
        for (at, request), result in zip(batch, results, strict=True):
            about = chosen[at]
            sampled = about.sampled.get(ws.keyed(request.request_id))
            texts = (result.query, result.response, *result.history)
            if sampled is None or forgotten.covers_text(texts):
                yield about.day, None, None
            else:
                yield about.day, _row(ws, request, sampled, result, plain), result


def _row(
    ws: Workspace, request: LogRequest, sampled: dict[str, Any], scrubbed: Any, plain: Callable[[str], str]
) -> dict[str, Any]:
    texts = iter(scrubbed.contexts)
    nodes = request.nodes
    return {
        "request_key": sampled["request_key"],
        "user_key": None if request.user_id is None else ws.keyed(request.user_id),
        "conversation_key": None if request.conversation_id is None else ws.keyed(request.conversation_id),
        "day": day_of(request.time_us),
        "timestamp": request.time_us,
        "query": scrubbed.query,
        "history": list(scrubbed.history),
        "response": scrubbed.response,
        "source_nodes": None
        if nodes is None
        else [
            {
                "node_id": None if node.node_id is None else safe_id(node.node_id, plain, ws.keyed),
                "score": node.score,
                "text": None if node.text is None else next(texts),
            }
            for node in nodes
        ],
        "latency_ms": request.latency_ms,
        "category": None if request.category is None else plain(request.category),
        "model": None if request.model is None else plain(request.model),
        "weight": sampled["weight"],
        "follow_up": sampled["follow_up"],
        "question": scrubbed.question,
    }


Batch = list[tuple[int, LogRequest]]


def _scrubbed(
    requests: Iterator[tuple[int, LogRequest]], scrubber: Any
) -> Iterator[tuple[Batch, list[ScrubbedRequest]]]:
    waiting: deque[Batch] = deque()

    def texts() -> Iterator[list[Any]]:
        for batch in iter(lambda: list(islice(requests, BATCH)), []):
            waiting.append(batch)
            yield [_texts(request) for _, request in batch]

    for results in scrubber.batches(texts()):
        yield waiting.popleft(), results


def _texts(request: LogRequest) -> Any:
    from ragbench_dagster.traffic.scrubbing import Request

    contexts = tuple(node.text for node in request.nodes or () if node.text is not None)
    return Request(request.query, request.response, contexts, request.history)


# What people hand in (calibration rows, answers to be judged) is scrubbed as the traffic is, before anybody sees it.
#
# Scrubbing costs milliseconds a text and seconds to start, and the same rows are read by several steps of a night: what
# came out is kept in `store/cache/handed-in/NAME.json` by a keyed hash of what went in. Only scrubbed text is in there.


class Texts(NamedTuple):
    """The texts of one row. Placeholders are numbered in this order: query, history, response, others."""

    query: str
    response: str | None = None
    others: tuple[str, ...] = ()  # passages, a reference, a second answer
    history: tuple[str, ...] = ()


def scrub_handed_in(ws: Workspace, name: str, rows: Sequence[Texts]) -> list[Texts]:
    """`rows` scrubbed with the workspace's settings, each numbered for itself, in the same spelling as in a release.

    Args:
        name: of the cache; what it held beside these rows is dropped.
    """
    if not rows:
        return []
    path = ws.store / "cache" / "handed-in" / f"{name}.json"
    held = _held(path, mark := scrub_mark(ws))
    keys = [ws.keyed("handed in\0" + json.dumps(row)) for row in rows]
    fresh = {key: row for key, row in zip(keys, rows, strict=True) if key not in held}
    if fresh:
        from ragbench_dagster.traffic.scrubbing import build_scrubber

        held |= dict(
            zip(fresh, scrub_texts(build_scrubber(ws.settings.scrub, ws.root), list(fresh.values())), strict=True)
        )
    kept = {key: held[key] for key in keys}
    if fresh or len(kept) != len(held):
        with contextlib.suppress(UserError):  # a store that cannot be written is told by who must write it
            write_json(path, {"mark": mark, "rows": kept})
    return [_masked(kept[key]) for key in keys]


def scrub_texts(scrubber: Any, rows: Sequence[Texts]) -> list[Texts]:
    """`rows` scrubbed by `scrubber`, without a cache."""
    from ragbench_dagster.traffic.scrubbing import Request

    done = scrubber.requests([Request(*row) for row in rows])
    return [Texts(one.query, one.response, tuple(one.contexts), tuple(one.history)) for one in done]


def _held(path: Any, mark: str) -> dict[str, Texts]:
    try:
        memo = read_json(path) or {}
        if memo.get("mark") != mark:
            return {}
        return {key: Texts(q, r, tuple(others), tuple(turns)) for key, (q, r, others, turns) in memo["rows"].items()}
    except (UserError, AttributeError, KeyError, TypeError, ValueError):
        return {}  # a damaged cache is written anew


def _masked(row: Texts) -> Texts:
    """A variable may have got its value after the row was remembered."""
    return Texts(
        mask(row.query),
        None if row.response is None else mask(row.response),
        tuple(map(mask, row.others)),
        tuple(map(mask, row.history)),
    )
