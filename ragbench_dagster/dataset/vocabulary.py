"""The workspace's own words: what its corpus and its labels write is no typing error, whatever the lists know."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ragbench_dagster.dataset.files import read_rows
from ragbench_dagster.dataset.words import is_mendable
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace

_WORDS = re.compile(r"[^\W\d_]+")
_APOSTROPHES = str.maketrans(dict.fromkeys("'’‘ʼ"))


def known_words(ws: Workspace, forms: Iterable[str], labels: Iterable[str]) -> frozenset[str]:
    """The words of `forms` that no list knows and that stand in the corpus or in the texts of `labels`.

    A corpus that cannot be read has no words here: the systems that retrieve from it say what is wrong with it.
    """
    wanted = {word for form in forms for word in form.split(" ") if is_mendable(word)}
    known: set[str] = set()
    for text in labels:
        known |= wanted.intersection(_words(text))
    if not ws.corpus.exists() or not wanted:
        return frozenset(known)
    try:
        for _, row in read_rows(ws.corpus):
            known |= wanted.intersection(_words(str(row.get("text") or "")))
    except UserError:
        pass
    return frozenset(known)


def _words(text: str) -> list[str]:
    """The words of a text as forms spell them, "o'reilly's" also by its parts."""
    folded = text.casefold()
    joined = folded.translate(_APOSTROPHES)
    return _WORDS.findall(joined) + (_WORDS.findall(folded) if joined != folded else [])
