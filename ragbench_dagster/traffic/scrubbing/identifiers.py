"""Ids of documents: scrubbed like any text, but two ids must stay two."""

from __future__ import annotations

from collections.abc import Callable

MARK = 6  # hex digits: enough to keep a corpus' ids apart


def safe_id(text: str, plain: Callable[[str], str], keyed: Callable[[str], str]) -> str:
    """`text` with placeholders, and a short mark of the original where anything was replaced.

    Many numeric ids look like phone or card numbers. As one placeholder they would all match each other, and
    every such retrieval would count as a hit. The mark is keyed: of a plain hash, a phone number could be found
    by trying all.

    Args:
        text: an id of a log, a label, the corpus or a system.
        plain: `Scrubber.plain`, or a cache of it.
        keyed: `Workspace.keyed`.
    """
    done = plain(text)
    return text if done == text else f"{done}-{keyed('id' + chr(0) + text)[:MARK]}"
