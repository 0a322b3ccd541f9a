"""Records of an exported file become `Span`s. How a span looks belongs to its format: `langfuse`, `openinference`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ragbench_dagster.settings import Traffic
from ragbench_dagster.traffic import convert
from ragbench_dagster.traffic.csv_files import Row
from ragbench_dagster.traffic.fields import compile_overrides, compile_where
from ragbench_dagster.traffic.log_format import log_format
from ragbench_dagster.traffic.parse import bad_reason, decode_any, line_digest, utf8_fault
from ragbench_dagster.traffic.requests import BadLine, RowError, Span
from ragbench_dagster.traffic.timestamps import parse_time


class SpanDecoder:
    """Decodes the records of one workspace's exports (formats of traces)."""

    def __init__(self, traffic: Traffic) -> None:
        self._zone = ZoneInfo(traffic.timezone)
        form = log_format(traffic.format)
        assert form.rows_of is not None
        assert form.span_fields is not None
        self._rows, self._fields, self.knows = form.rows_of, form.span_fields, form.knows
        self._any = msgspec.json.Decoder(float_hook=convert.NumberText).decode
        self._overrides = compile_overrides(traffic)
        self._wanted = compile_where(traffic)

    def line(self, number: int, line: bytes) -> Iterator[Span | BadLine]:
        """The spans on line `number`: one, or as many as the exporter put there."""
        digest = line_digest(line)
        fault = utf8_fault(line)
        if fault is not None:
            yield BadLine(number, fault, digest)
            return
        record, repaired, reason = decode_any(line, self._any)
        if reason is not None:
            yield BadLine(number, reason, digest)
            return
        yield from self._spans(record, number, digest, repaired)

    def row(self, row: Row) -> Iterator[Span | BadLine]:
        """The span of a CSV or Parquet row."""
        if row.values is None:
            yield BadLine(row.line, row.fault or "not a row", row.digest)
            return
        yield from self._spans(row.values, row.line, row.digest, False)

    def _spans(self, record: Any, number: int, digest: bytes, repaired: bool) -> Iterator[Span | BadLine]:
        try:
            for part, row in enumerate(self._rows(record)):
                yield self._span(row, number, part, digest, repaired)
        except Exception as fault:
            yield BadLine(number, bad_reason(fault), digest)

    def _span(self, row: Any, line: int, part: int, digest: bytes, repaired: bool) -> Span:
        if not isinstance(row, dict):
            raise RowError("not a JSON object")
        found = self._fields(row, self._zone)
        extra = self._checked({k: v for k, v in self._overrides(row).items() if v is not None})
        if "timestamp" in extra:
            found["start_us"], found["naive"] = extra.pop("timestamp")
        if "query" in extra:
            found["question"] = extra.pop("query")
        if "history" in extra:
            found["history"] = extra.pop("history")
        if "conversation_id" in extra:
            found["session"] = extra.pop("conversation_id")
        return Span(
            line=line,
            part=part,
            digest=digest,
            wanted=self._wanted(row),
            extra=extra,
            repaired=repaired,
            **found,
        )

    def _checked(self, values: dict[str, Any]) -> dict[str, Any]:
        """What `traffic.fields` found, checked now: joining a trace must not meet a bad value."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name == "timestamp":
                found[name] = parse_time(value, self._zone)
            elif name in ("query", "response"):
                found[name] = convert.to_text(value, name)
            elif name == "source_nodes":
                found[name] = convert.to_nodes(value)
            elif name == "latency_ms":
                found[name] = convert.to_latency(value)
            elif name == "history":
                found[name] = convert.to_history(value, "")
            else:
                found[name] = convert.to_id(value, name)
        return found
