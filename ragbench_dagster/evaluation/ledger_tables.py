"""The ledger's tables. What is written to them and when belongs in `ledger.py`."""

from __future__ import annotations

import json
from time import time
from typing import Any, NamedTuple

import sqlalchemy as sa

from ragbench_dagster.records import Verdict

SCHEMA = sa.MetaData()
VERDICTS = sa.Table(
    "verdicts",
    SCHEMA,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("example_id", sa.Text, nullable=False),
    sa.Column("day", sa.Text, nullable=False),  # the night that paid for it
    sa.Column("system", sa.Text, nullable=False),
    sa.Column("system_version", sa.Text, nullable=False),
    sa.Column("round", sa.Text, nullable=False),  # "" or the name of a fresh round of calibration
    sa.Column("evaluator", sa.Text, nullable=False),
    sa.Column("evaluator_version", sa.Text, nullable=False),
    sa.Column("template_hash", sa.Text, nullable=False),
    sa.Column("judge", sa.Text, nullable=False),
    sa.Column("parameters", sa.Text, nullable=False),  # JSON
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("score", sa.Float),
    sa.Column("passing", sa.Boolean),
    sa.Column("feedback", sa.Text, nullable=False),
    sa.Column("raw", sa.Text, nullable=False),
    sa.Column("served_model", sa.Text),
    sa.Column("fingerprint", sa.Text),
    sa.Column("prompt_tokens", sa.Integer, nullable=False),
    sa.Column("completion_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("latency_ms", sa.Float, nullable=False),  # the provider's own time
    sa.Column("wait_ms", sa.Float, nullable=False),  # queueing and back-off
    sa.Column("details", sa.Text, nullable=False),  # JSON
    sa.Column("at", sa.Float, nullable=False),  # seconds since 1970, UTC
    sqlite_with_rowid=False,  # one tree to write to instead of two
)
_PAID = sa.text("cost_usd > 0")
# What a run has spent is asked once, over years of verdicts. The embedded judge's cost nothing and are not in it.
COSTS = sa.Index("verdicts_paid", VERDICTS.c.day, VERDICTS.c.cost_usd, sqlite_where=_PAID, postgresql_where=_PAID)
FAILURES = sa.Table(
    "failures",
    SCHEMA,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("system", sa.Text, primary_key=True),
    sa.Column("example_id", sa.Text, nullable=False),
    sa.Column("evaluator", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("feedback", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("latency_ms", sa.Float, nullable=False),
    sa.Column("wait_ms", sa.Float, nullable=False),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
RUNS = sa.Table(
    "runs",
    SCHEMA,
    sa.Column("name", sa.Text, primary_key=True),  # a night's day, or a command
    sa.Column("before_usd", sa.Float, nullable=False),  # what `day = name` had cost when the run began
    sa.Column("other_usd", sa.Float, nullable=False),  # spent in it without a verdict that says so
    sa.Column("done", sa.Boolean, nullable=False),
)


class Entry(NamedTuple):
    """What a ledger row says beside the verdict."""

    key: str
    example_id: str
    evaluator: str
    evaluator_version: str
    template_hash: str
    judge: str
    parameters: str  # JSON
    day: str = ""  # the run that pays: a night's day, or a command
    system: str = ""
    system_version: str = ""
    round: str = ""


def row_of(entry: Entry, verdict: Verdict, transient: bool) -> dict[str, Any]:
    """A row of `verdicts`, or of `failures` where the verdict is transient."""
    row = {
        "key": entry.key,
        "day": entry.day,
        "system": entry.system,
        "example_id": _clean(entry.example_id),
        "evaluator": entry.evaluator,
        "status": verdict.status,
        "feedback": _clean(verdict.feedback),
        "attempts": verdict.attempts,
        "latency_ms": verdict.latency_ms,
        "wait_ms": verdict.wait_ms,
        "cost_usd": verdict.cost_usd,
        "at": time(),
    }
    if transient:
        return row
    row |= {
        "system_version": entry.system_version,
        "round": entry.round,
        "evaluator_version": entry.evaluator_version,
        "template_hash": entry.template_hash,
        "judge": entry.judge,
        "parameters": entry.parameters,
        "score": verdict.score,
        "passing": verdict.passing,
        "raw": _clean(verdict.raw),
        "served_model": _clean(verdict.served_model or "") or None,
        "fingerprint": _clean(verdict.fingerprint or "") or None,
        "prompt_tokens": verdict.prompt_tokens,
        "completion_tokens": verdict.completion_tokens,
        "details": _clean(json.dumps(verdict.details, sort_keys=True)) if verdict.details else "{}",
    }
    return row


def _clean(text: str) -> str:
    """Text that every database takes: no lone surrogates, and no NUL (PostgreSQL refuses it)."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
