"""Answers as they arrive, one commit each, so that kill -9 loses only the calls in flight. SQLite, in the store.

Only scrubbed answers come here. What is asked, and when, belongs in `answers.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ragbench_dagster.access import FILE, private_file, private_folder
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.system import Answer
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


# Verdicts that the ledger did not take, in a file beside it, until it takes them: they are paid for.
#
# One JSON object a line, {"table": verdicts | failures, "row": {...}}, appended and synced under a lock. A line that a
# killed process left half-written is passed over. When something is spooled belongs to the ledger.

Row = dict[str, Any]


class Spool:
    """The spool of one ledger, shared by all processes that write to it.

    Args:
        path: its file, which is there only while it holds something.

    Raises:
        OSError: it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.added = 0  # by this process, and not yet taken in

    def add(self, table: str, row: Row) -> None:
        """Keep one row on disk."""
        line = json.dumps({"table": table, "row": row}, ensure_ascii=True).encode("ascii") + b"\n"
        private_folder(self.path.parent)
        with self._locked(os.O_RDWR | os.O_CREAT | os.O_APPEND) as handle:
            os.write(handle, b"\n" + line)  # a half line before it stays a line of its own
            os.fsync(handle)
        self.added += 1

    def take_in(self, write: Callable[[str, Row], None]) -> int:
        """Give every row to `write`, then remove the file; where `write` raises, all rows stay.

        Returns:
            how many rows there were.
        """
        try:
            with self._locked(os.O_RDWR) as handle:
                with os.fdopen(os.dup(handle), "rb") as file:
                    rows = list(_rows(file.read()))
                for table, row in rows:
                    write(table, row)
                self.path.unlink(missing_ok=True)
        except FileNotFoundError:
            rows = []
        self.added = 0
        return len(rows)

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        while True:
            handle = os.open(self.path, flags | os.O_CLOEXEC | os.O_NONBLOCK, FILE)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if _is_still(self.path, handle):  # not one that another process has taken in meanwhile
                    yield handle
                    return
            finally:
                os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _rows(data: bytes) -> Iterator[tuple[str, Row]]:
    for line in data.split(b"\n"):
        try:
            found = json.loads(line)
            yield str(found["table"]), dict(found["row"])
        except (ValueError, TypeError, KeyError):
            continue  # empty, or half a line
