"""Answers as they arrive, one commit each, so that kill -9 loses only the calls in flight. SQLite, in the store.

Only scrubbed answers come here. What is asked, and when, belongs in `answering.py`.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ragbench_dagster.access import private_file
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.base import Answer
from ragbench_dagster.store import digest

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS answers (
  key TEXT PRIMARY KEY, answer TEXT NOT NULL, latency_ms REAL, first_token_ms REAL
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS attempts (
  night TEXT, key TEXT, number INTEGER, status TEXT NOT NULL, started REAL NOT NULL, ended REAL NOT NULL,
  PRIMARY KEY (night, key, number)
) WITHOUT ROWID
""",
)
_TIMES = ("latency_ms", "first_token_ms", "limit_ms", "started")


class Attempt(NamedTuple):
    """One call: which question, the how manieth of the night, how it ended and when (epoch seconds)."""

    key: str
    number: int
    status: str
    started: float
    ended: float


class Checkpoint:
    """The answers of one system, keyed by night, version and question.

    Args:
        path: the database file; made where there is none.

    Raises:
        UserError: it cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            private_file(path)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            # WAL and NORMAL: a killed process loses nothing, a lost machine at most the last commits.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            for table in _TABLES:
                self._db.execute(table)
            held = {row[1] for row in self._db.execute("PRAGMA table_info(answers)")}
            for name in _TIMES:
                if name not in held:  # a file of an earlier version
                    self._db.execute(f"ALTER TABLE answers ADD COLUMN {name} REAL")
        except (OSError, sqlite3.Error) as fault:
            raise self._explain(fault) from fault

    def get(self, key: str) -> Answer | None:
        """The answer under `key`, or None."""
        rows = self._run(f"SELECT answer, {', '.join(_TIMES)} FROM answers WHERE key = ?", (key,))
        if not rows:
            return None
        said = json.loads(rows[0][0])
        for name in ("contexts", "retrieved_ids", "retrieved_scores"):
            said[name] = tuple(said[name])
        return Answer(**said, **dict(zip(_TIMES, rows[0][1:], strict=True)))

    def attempts(self, night: str) -> list[Attempt]:
        """The calls made for `night`, those of each question in their order."""
        rows = self._run(
            "SELECT key, number, status, started, ended FROM attempts WHERE night = ? ORDER BY key, number", (night,)
        )
        return [Attempt(*row) for row in rows]

    def put(self, night: str, attempt: Attempt, answer: Answer) -> None:
        """Commit one answer and the call that gave it."""
        said = asdict(answer)
        times = [said.pop(name) for name in _TIMES]
        row = (attempt.key, json.dumps(said, ensure_ascii=True), *times)
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute(
                    f"INSERT OR REPLACE INTO answers (key, answer, {', '.join(_TIMES)}) VALUES (?, ?, ?, ?, ?, ?)", row
                )
                self._db.execute("INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?)", (night, *attempt))
                self._db.execute("COMMIT")
            except sqlite3.Error as fault:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise self._explain(fault) from fault

    def _run(self, statement: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(statement, values).fetchall()
            except sqlite3.Error as fault:
                raise self._explain(fault) from fault

    def keep_only(self, answered: Collection[str]) -> int:
        """Remove every answer whose hash (`answer_hash` of records.RESPONSES) is not among `answered`; returns how many went.

        Nothing of them stays in the file's free pages or its log.
        """
        with self._lock:
            try:
                self._db.execute("PRAGMA secure_delete=ON")
                gone = []
                for key, text in self._db.execute("SELECT key, answer FROM answers"):
                    said = json.loads(text)
                    parts = [said["response"], said["contexts"], said["retrieved_ids"]]
                    if said["status"] != "scored" or digest(parts) not in answered:
                        gone.append((key,))
                self._db.executemany("DELETE FROM answers WHERE key = ?", gone)
                self._db.execute("VACUUM")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error as fault:
                raise self._explain(fault) from fault
        return len(gone)

    def _explain(self, fault: Exception) -> UserError:
        if isinstance(fault, sqlite3.DatabaseError) and "not a database" in str(fault):
            return UserError(f"{self._path}: damaged; delete it and run again")
        return UserError(f"{self._path}: cannot be written ({fault}); free space or make it writable")

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
