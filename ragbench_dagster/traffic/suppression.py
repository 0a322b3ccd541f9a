"""Whose requests stay out, though the logs still hold them: the list that `ragbench forget` keeps.

    WORKSPACE/.forgotten.jsonl   {kind, key} a line, mode 600: keyed hashes, no id and no text

It lies beside `.key`, for the store may be deleted and what was forgotten must not come back. Reading the logs
honours it: a forgotten line is no request, as if it had never been logged. What was derived from such requests before
is removed by `reporting/erasure`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, digest, write_text

Mark = tuple[str, str]  # "user", "request", "conversation", "talk" or "text", and the keyed hash
_PLACEHOLDER = re.compile(r"<([A-Z][A-Z_]*?)_\d+>")


def list_file(ws: Workspace) -> Path:
    return ws.root / ".forgotten.jsonl"


def text_mark(ws: Workspace, text: str) -> Mark:
    """The mark of a text, by its letters and digits in order: case, spacing and punctuation do not hide it.

    A placeholder's number says nothing across requests and does not count.
    """
    return "text", ws.keyed("text\0" + bare(text))


def bare(text: str) -> str:
    """`text` in small letters and digits alone."""
    folded = _PLACEHOLDER.sub(r"\1", text).casefold()
    return "".join(c for c in folded if c.isalnum())


@dataclass(frozen=True)
class Suppression:
    """The forgotten, by kind. `mark` changes with the list and is empty for an empty one."""

    ws: Workspace
    marks: frozenset[Mark]

    @cached_property
    def mark(self) -> str:
        return digest(sorted(self.marks)) if self.marks else ""

    def __bool__(self) -> bool:
        return bool(self.marks)

    def covers(
        self,
        request_id: str | None,
        user_id: str | None,
        conversation_id: str | None,
        texts: Iterable[str | None] = (),
        history: bool = False,
    ) -> bool:
        """Whether a request with these ids, or one of these texts, stays out.

        A forgotten user's conversation takes its turns without a user along (another user's turn is not theirs), and
        a conversation with a forgotten turn (a talk) every turn that brings its history.
        """
        if not self.marks:
            return False
        keyed = self.ws.keyed
        if user_id is not None and ("user", keyed(user_id)) in self.marks:
            return True
        if request_id is not None and ("request", keyed(request_id)) in self.marks:
            return True
        if conversation_id is not None:
            talk = keyed(conversation_id)
            if (history and ("talk", talk) in self.marks) or (user_id is None and ("conversation", talk) in self.marks):
                return True
        return self.covers_text(texts)

    def covers_text(self, texts: Iterable[str | None]) -> bool:
        return self._texts and any(t is not None and text_mark(self.ws, t) in self.marks for t in texts)

    @cached_property
    def _texts(self) -> bool:
        return any(kind == "text" for kind, _ in self.marks)


def read_suppression(ws: Workspace) -> Suppression:
    """The workspace's list; empty where nobody was forgotten.

    Raises:
        UserError: it cannot be read; nothing must be read from the logs then.
    """
    path = list_file(ws)
    try:
        lines = path.read_text("ascii").splitlines() if path.exists() else []
        rows = [json.loads(line) for line in lines if line.strip()]
        return Suppression(ws, frozenset((str(row["kind"]), str(row["key"])) for row in rows))
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise UserError(f"{path}: cannot be read; restore it from a copy: it says whose requests stay out") from fault


def suppress(ws: Workspace, marks: Sequence[Mark]) -> int:
    """Add `marks` to the list; returns how many are new.

    Raises:
        UserError: it cannot be read or written.
    """
    known = read_suppression(ws).marks
    lines = [json.dumps({"kind": kind, "key": key}, sort_keys=True) for kind, key in sorted(known | set(marks))]
    write_text(list_file(ws), "".join(line + "\n" for line in lines))
    list_file(ws).chmod(0o600)
    return len(set(marks) - known)
