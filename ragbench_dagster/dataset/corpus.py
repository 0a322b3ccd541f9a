"""The passages that systems retrieve from: `corpus.jsonl`, {doc_id, text}."""

from __future__ import annotations

from pathlib import Path

from ragbench_dagster.dataset.files import read_rows
from ragbench_dagster.errors import UserError


def read_corpus(path: Path) -> dict[str, str]:
    """Passages by document id, in the file's order. Ids are text, whatever they look like.

    Raises:
        UserError: one line with the file and the row: no file, an LFS pointer, an id that is missing or
            stands twice with different texts, a text that is missing.
    """
    passages: dict[str, str] = {}
    rows: dict[str, int] = {}
    for number, row in read_rows(path):
        doc_id, text = row.get("doc_id"), row.get("text")
        if not isinstance(doc_id, str) or not doc_id:
            raise UserError(f"{path.name}: row {number}: doc_id must be text or a number, and not empty")
        if not isinstance(text, str):
            raise UserError(f"{path.name}: row {number}: text is missing or not text")
        if doc_id in passages and passages[doc_id] != text:
            raise UserError(
                f"{path.name}: row {number}: its doc_id stands already in row {rows[doc_id]} with another text"
            )
        passages[doc_id] = text
        rows.setdefault(doc_id, number)
    return passages
