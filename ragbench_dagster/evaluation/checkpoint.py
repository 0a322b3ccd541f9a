"""Answers as they arrive, one commit each, so that kill -9 loses only the calls in flight. SQLite, in the store.

Only scrubbed answers come here. What is asked, and when, belongs in `answering.py`.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from ragbench_dagster.access import private_file
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.base import Answer

_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
  key TEXT PRIMARY KEY, answer TEXT NOT NULL, latency_ms REAL, first_token_ms REAL
) WITHOUT ROWID
"""


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
            self._db.execute(_TABLE)
        except (OSError, sqlite3.Error) as fault:
            raise self._explain(fault) from fault

    def get(self, key: str) -> Answer | None:
        """The answer under `key`, or None."""
        with self._lock:
            try:
                row = self._db.execute(
                    "SELECT answer, latency_ms, first_token_ms FROM answers WHERE key = ?", (key,)
                ).fetchone()
            except sqlite3.Error as fault:
                raise self._explain(fault) from fault
        if row is None:
            return None
        said = json.loads(row[0])
        for name in ("contexts", "retrieved_ids", "retrieved_scores"):
            said[name] = tuple(said[name])
        return Answer(**said, latency_ms=row[1], first_token_ms=row[2])

    def put(self, key: str, answer: Answer) -> None:
        """Commit one answer."""
        said = asdict(answer)
        latency, first = said.pop("latency_ms"), said.pop("first_token_ms")
        with self._lock:
            try:
                self._db.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
                    (key, json.dumps(said, ensure_ascii=True), latency, first),
                )
            except sqlite3.Error as fault:
                raise self._explain(fault) from fault

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
