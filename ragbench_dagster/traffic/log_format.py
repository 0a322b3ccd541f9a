"""What a log format is. How a line of it is read belongs to `parse` and `traces`; their names to `settings_parts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from ragbench_dagster.registry import member
from ragbench_dagster.settings_parts import LOG_FORMATS

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class LogFormat:
    """How the files of one format (`traffic.format`) are read.

    A format of requests gives `values`, or nothing where its fields have our names; one of traces gives `span_fields`,
    and the spans of a trace become one request (`traces.join`).

    Args:
        documentation: one sentence: who writes such files.
        rows_of: the rows in one record of a file of traces: an exporter may put many into one.
        span_fields: the fields of a `Span` that a row gives; raises `RowError` where it is none.
        values: a request's fields under our names (`settings_parts.LOG_FIELDS`), from a row.
        knows: whether a table's column of this name is read.
        suffixes: of its files, without `.gz`.
        skipped: folders of an export that hold no requests.
    """

    documentation: str
    rows_of: Callable[[Any], Iterator[dict[str, Any]]] | None = None
    span_fields: Callable[[dict[str, Any], tzinfo], dict[str, Any]] | None = None
    values: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    knows: Callable[[str], bool] | None = None
    suffixes: tuple[str, ...] = SUFFIXES
    skipped: frozenset[str] = frozenset()

    @property
    def traces(self) -> bool:
        """True where rows are spans, and not requests."""
        return self.span_fields is not None


def log_format(name: str) -> LogFormat:
    """The format that `traffic.format` names."""
    found: LogFormat = member(LOG_FORMATS[name])
    return found
