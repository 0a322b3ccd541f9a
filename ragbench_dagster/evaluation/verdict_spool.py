"""Verdicts that the ledger did not take, in a file beside it, until it takes them: they are paid for.

One JSON object a line, {"table": verdicts | failures, "row": {...}}, appended and synced under a lock. A line that a
killed process left half-written is passed over. When something is spooled belongs to the ledger.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragbench_dagster.access import FILE, private_folder

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
