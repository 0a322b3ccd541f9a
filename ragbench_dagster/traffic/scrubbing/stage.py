"""`ragbench stage scrub`: {text} in, {text, spans} out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.traffic.scrubbing.placeholders import Word, words_of
from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber

_BATCH = 256  # rows handed to the NER model together


def stage_scrub(
    rows: Iterable[dict[str, Any]], scrubber: Scrubber, seen: Counter[Word] | None = None
) -> Iterator[dict[str, Any]]:
    """Each row with its `text` scrubbed and `spans` [{start, end, type}] that index the input text.

    Other keys of a row pass through. What is replaced is counted in `seen`, by kind of evidence.

    Raises:
        UserError: a row without a text; the line names its number.
    """
    numbered = enumerate(rows, 1)
    while batch := list(islice(numbered, _BATCH)):
        for number, row in batch:
            if not isinstance(row, dict) or not isinstance(row.get("text"), str):
                raise UserError(f'row {number}: no text; each row must be {{"text": "..."}}')
        done = scrubber.texts([row["text"] for _, row in batch])
        for (_, row), scrubbed in zip(batch, done, strict=True):
            if seen is not None:
                seen.update(words_of(row["text"], scrubbed.spans))
            spans = [{"start": s.start, "end": s.end, "type": s.type} for s in scrubbed.spans]
            yield {**row, "text": scrubbed.text, "spans": spans}
