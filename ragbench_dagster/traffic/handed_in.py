"""What people hand in (calibration rows, answers to be judged) is scrubbed as the traffic is, before anybody sees it.

Scrubbing costs milliseconds a text and seconds to start, and the same rows are read by several steps of a night: what
came out is kept in `store/cache/handed-in/NAME.json` by a keyed hash of what went in. Only scrubbed text is in there.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ragbench_dagster.errors import UserError
from ragbench_dagster.masking import mask
from ragbench_dagster.store import Workspace, read_json, write_json
from ragbench_dagster.traffic.scan import scrub_mark


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

        held |= dict(zip(fresh, scrub_texts(build_scrubber(ws.settings.scrub), list(fresh.values())), strict=True))
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
