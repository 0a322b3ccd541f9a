"""The requests of 90 days as distinct forms. Each day is read and normalised once, and kept as a digest.

A refresh therefore reads only the new days; the window is the sum of its days' digests, taken in date order, so
that it is the same whether the digests were there before or not.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragbench_dagster.dataset.canonical import both_forms, form_of, form_version
from ragbench_dagster.dataset.clusters import method_version
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, digest, read_table, write_table
from ragbench_dagster.traffic.timestamps import last_days

Progress = Callable[[str, int, int], None]
_FACTS = ("requests", "follow_ups", "follow_ups_without_history", "not_questions")
_DIGEST = pa.schema(
    [
        ("form", pa.string()),
        ("loose", pa.string()),  # with politeness; equal to form where there was none
        ("query", pa.string()),
        ("history", pa.list_(pa.string())),
        ("category", pa.string()),
        ("count", pa.int64()),
        ("weight", pa.float64()),
    ]
)
_COLUMNS = ["query", "history", "category", "weight", "follow_up", "question"]


@dataclass(slots=True)
class Tally:
    """All requests of one form in the window."""

    count: int = 0
    weights: list[float] = field(default_factory=list)
    texts: dict[tuple[str, tuple[str, ...]], list[float]] = field(default_factory=dict)
    categories: dict[str, list[float]] = field(default_factory=dict)
    loose: set[str] = field(default_factory=set)
    first_day: date = date.max
    last_day: date = date.min

    @property
    def weight(self) -> float:
        return math.fsum(self.weights)

    def text(self) -> tuple[str, tuple[str, ...]]:
        """The heaviest spelling of the form, with its history."""
        return min(self.texts, key=lambda text: (-math.fsum(self.texts[text]), text))


@dataclass(slots=True)
class Window:
    """The distinct forms of the days present, with counts of what is no example."""

    forms: dict[str, Tally]
    facts: dict[str, int]
    present: list[str]
    missing: list[str]


def refresh_day(day: str, first_day: str, refresh: str = "weekly") -> str:
    """The refresh day whose release serves `day`: its Monday (UTC), the last day that the release holds.

    Until the first Monday after the first day with data has come, every day is one: a newcomer's three days are
    three days of examples, not the first of them.

    Args:
        day: ISO date of the night.
        first_day: ISO date of the first day with data.
        refresh: `weekly` or `monday` (Mondays), or `daily` (every day).
    """
    at = date.fromisoformat(day)
    if refresh == "daily":
        return day
    monday = (at - timedelta(days=at.weekday())).isoformat()
    return day if monday <= first_day <= day else monday


def scrubbed_file(ws: Workspace, day: str) -> Path:
    return ws.traffic(day) / "scrubbed.parquet"


def scrubbed_days(ws: Workspace) -> list[str]:
    """The days the store holds scrubbed requests of, ascending."""
    return sorted(path.parent.name for path in (ws.store / "traffic").glob("????-??-??/scrubbed.parquet"))


def file_hash(path: Path) -> str:
    """sha256 of a file's bytes; remembered in this process while size and time stay."""
    stat = path.stat()
    return _file_hash(str(path), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4096)
def _file_hash(path: str, size: int, changed_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_window(ws: Workspace, last: str, progress: Progress | None = None) -> Window:
    """The window that ends at `last`, from the days that exist."""
    days = last_days(last, ws.settings.dataset.window_days)
    present = [day for day in days if scrubbed_file(ws, day).exists()]
    forms: dict[str, Tally] = {}
    facts = dict.fromkeys(_FACTS, 0)
    for done, day in enumerate(present, 1):
        table = day_digest(ws, day)
        for key, count in _facts_of(table).items():
            facts[key] += count
        _add_day(forms, table, date.fromisoformat(day))
        if progress:
            progress("reading the window", done, len(present))
    have = set(present)
    first = min(scrubbed_days(ws), default=last)
    missing = [day for day in days if day not in have and day > first]  # before the first day nothing is missing
    return Window(forms, facts, present, missing)


def day_digest(ws: Workspace, day: str) -> pa.Table:
    """The distinct questions of a day; read from the cache where it was made from the same requests."""
    source = scrubbed_file(ws, day)
    key = digest(file_hash(source), form_version(), _COLUMNS)
    cached = ws.store / "cache" / "digests" / f"{day}.parquet"
    if cached.exists():
        try:
            table = read_table(cached)
        except UserError:  # a cache: made again
            table = None
        if table is not None and (table.schema.metadata or {}).get(b"key") == key.encode():
            return table
    table = _digest_rows(read_table(source, _COLUMNS).to_pydict())
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"key": key.encode()})
    write_table(cached, table)
    return table


def _facts_of(table: pa.Table) -> dict[str, int]:
    metadata = table.schema.metadata or {}
    return {name: int(metadata[name.encode()]) for name in _FACTS}


def _digest_rows(columns: dict[str, list[Any]]) -> pa.Table:
    facts = dict.fromkeys(_FACTS, 0)
    groups: dict[tuple[str, str, str, tuple[str, ...], str | None], list[float]] = {}
    known: dict[tuple[str, tuple[str, ...]], tuple[str, str]] = {}
    for query, history, category, weight, follow_up, question in zip(
        *(columns[name] for name in _COLUMNS), strict=True
    ):
        facts["requests"] += 1
        turns = tuple(history or ())
        if follow_up or turns:
            facts["follow_ups"] += 1
            if not turns:
                facts["follow_ups_without_history"] += 1
                continue
        if not question:
            facts["not_questions"] += 1
            continue
        text = (query, turns)
        forms = known.get(text)
        if forms is None:
            forms = known[text] = (form_of(query, turns),) * 2 if turns else both_forms(query)
        groups.setdefault((*forms, query, turns, category), []).append(weight)
    rows = sorted(groups.items(), key=lambda item: (*item[0][:4], item[0][4] or ""))
    table = pa.Table.from_pylist(
        [
            {
                "form": form, "loose": loose, "query": query, "history": list(turns), "category": category,
                "count": len(weights), "weight": math.fsum(weights),
            }
            for (form, loose, query, turns, category), weights in rows
        ],
        schema=_DIGEST,
    )  # fmt: skip
    return table.replace_schema_metadata({name: str(count) for name, count in facts.items()})


def _add_day(forms: dict[str, Tally], table: pa.Table, day: date) -> None:
    columns = table.to_pydict()
    for form, loose, query, history, category, count, weight in zip(
        *(columns[name] for name in _DIGEST.names), strict=True
    ):
        tally = forms.get(form)
        if tally is None:
            tally = forms[form] = Tally()
        tally.count += count
        tally.weights.append(weight)
        tally.texts.setdefault((query, tuple(history)), []).append(weight)
        if category is not None:
            tally.categories.setdefault(category, []).append(weight)
        if loose != form:
            tally.loose.add(loose)
        tally.first_day = min(tally.first_day, day)
        tally.last_day = max(tally.last_day, day)


def inputs_hash(ws: Workspace, days: list[str], labels_key: str) -> str:
    """Hash of everything a release of `days` is made from."""
    scrubbed = {day: file_hash(scrubbed_file(ws, day)) for day in days}
    settings = ws.settings.dataset
    corpus = file_hash(ws.corpus) if ws.corpus.exists() else "none"  # its words are no typing errors
    return digest(
        scrubbed, labels_key, corpus, settings.dedupe.model_dump(), settings.window_days, form_version(),
        method_version(),
    )  # fmt: skip
