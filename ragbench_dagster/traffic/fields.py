"""`traffic.fields` and `traffic.where`: finding a value in somebody else's log line.

A path is `a.b[0].c`; `[-1]` counts from the end, `[*]` takes every element. In a path the longest existing
key wins, so `attributes.input.value` finds that very key before it looks into `attributes`. What a value
must look like belongs to `convert`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ragbench_dagster.io.inputs import Undecodable, decoded
from ragbench_dagster.settings import FieldMap, Traffic
from ragbench_dagster.settings_parts import LOG_FIELDS
from ragbench_dagster.traffic.requests import RowError

_PIECE = re.compile(r"([^.\[\]]+)|\[(-?\d+|\*)\]")
_NODE = "source_nodes."
Path = tuple[str | int, ...]
_EVERY = -(1 << 30)  # stands for [*]


def parse_path(text: str) -> Path:
    """The pieces of a path: names and positions."""
    found: list[str | int] = []
    for name, at in _PIECE.findall(text):
        found.append(name if name else (_EVERY if at == "*" else int(at)))
    return tuple(found)


def look_up(value: Any, path: Path, unpack: bool = False) -> Any:
    """The value at `path`, or None.

    Args:
        value: what the line holds.
        path: from `parse_path`.
        unpack: strings met on the way, and an array or object at the end, are JSON to decode.

    Raises:
        RowError: `unpack` met a string that is no JSON.
    """
    at = 0
    while True:
        if unpack and isinstance(value, str) and (at < len(path) or value.lstrip()[:1] in ("{", "[")):
            value = _decoded(value)
        if at == len(path) or value is None:
            return value
        step = path[at]
        if isinstance(step, int):
            if not isinstance(value, list | tuple):
                return None
            if step == _EVERY:
                return [look_up(v, path[at + 1 :], unpack) for v in value]
            value = value[step] if -len(value) <= step < len(value) else None
            at += 1
        elif isinstance(value, dict):
            key, at = _longest(value, path, at)
            value = value.get(key) if key is not None else None
        else:
            return None


def _longest(value: dict[str, Any], path: Path, at: int) -> tuple[str | None, int]:
    end = at
    while end < len(path) and isinstance(path[end], str):
        end += 1
    for stop in range(end, at, -1):
        key = ".".join(str(p) for p in path[at:stop])
        if key in value:
            return key, stop
    return None, end


def _decoded(text: str) -> Any:
    try:
        return decoded(msgspec.json.decode, text)
    except Undecodable:
        raise RowError("not the JSON that traffic.fields expects") from None


def compile_fields(traffic: Traffic) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function from somebody else's line to a dict with our names; unmapped fields keep theirs."""
    rules = {ours: _rule(theirs) for ours, theirs in traffic.fields.items()}
    whole = {ours: rule for ours, rule in rules.items() if not ours.startswith(_NODE)}
    inner = {ours.removeprefix(_NODE): rule for ours, rule in rules.items() if ours.startswith(_NODE)}

    def apply(line: dict[str, Any]) -> dict[str, Any]:
        values = {k: v for k, v in line.items() if k not in whole}
        for ours, rule in whole.items():
            values[ours] = _named(ours, rule, line)
        nodes = values.get("source_nodes")
        if inner and isinstance(nodes, list):
            values["source_nodes"] = [
                {ours: _named(_NODE + ours, rule, node) for ours, rule in inner.items()} for node in nodes
            ]
        return values

    return apply


def compile_overrides(traffic: Traffic) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """As `compile_fields`, but only the mapped fields: they overrule what a trace format found by itself."""
    rules = {ours: _rule(theirs) for ours, theirs in traffic.fields.items() if not ours.startswith(_NODE)}
    return lambda line: {ours: _named(ours, rule, line) for ours, rule in rules.items()}


def _named(ours: str, rule: Callable[[Any], Any], line: Any) -> Any:
    try:
        return rule(line)
    except RowError as fault:
        raise RowError(f"{ours}: {fault}") from None


def _rule(theirs: str | FieldMap) -> Callable[[Any], Any]:
    if isinstance(theirs, str):
        path = parse_path(theirs)
        return lambda line: look_up(line, path)
    if theirs.path is None:
        return lambda line: theirs.const
    path, factor, unpack = parse_path(theirs.path), theirs.factor, theirs.json_string

    def rule(line: Any) -> Any:
        value = look_up(line, path, unpack)
        if value is None:
            return theirs.const
        return value if factor is None else _scaled(value, factor)

    return rule


def _scaled(value: Any, factor: float) -> float:
    try:
        return float(value) * factor
    except (TypeError, ValueError, OverflowError):
        raise RowError("a number is wanted, for its factor") from None


def columns_read(traffic: Traffic, own: Callable[[str], bool] | None = None) -> Callable[[str], bool]:
    """Whether a table's column of a name is read: under our own name, or by a path of the settings.

    Args:
        traffic: the settings.
        own: of a trace format, whether it knows the name.
    """
    mapped = {ours: theirs if isinstance(theirs, str) else theirs.path for ours, theirs in traffic.fields.items()}
    names = {name for name in LOG_FIELDS if not name.startswith(_NODE)} - mapped.keys()
    paths = [path for ours, path in mapped.items() if path and not ours.startswith(_NODE)] + list(traffic.where)
    known = own or names.__contains__
    return lambda name: known(name) or any(_begins(path, name) for path in paths)


def _begins(path: str, column: str) -> bool:
    """Whether a path starts at a column; a column's own name may hold dots."""
    return path == column or path.startswith((f"{column}.", f"{column}["))


def column_of(traffic: Traffic, ours: str, columns: Iterable[str]) -> str | None:
    """The column that our field is read from; None where it is none of them."""
    theirs = traffic.fields.get(ours, ours)
    path = theirs if isinstance(theirs, str) else theirs.path
    found = [column for column in columns if path and _begins(path, column)]
    return max(found, key=len, default=None)


def compile_where(traffic: Traffic) -> Callable[[dict[str, Any]], bool]:
    """Whether `traffic.where` lets a line through: at every path one of the given values."""
    rules = [
        (parse_path(path), frozenset(map(_token, allowed if isinstance(allowed, list) else [allowed])))
        for path, allowed in traffic.where.items()
    ]
    return lambda line: all(_token(look_up(line, path)) in allowed for path, allowed in rules)


def _token(value: Any) -> str:
    """Values as CSV would write them, so that 1 and "1", true and "true" are the same."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
