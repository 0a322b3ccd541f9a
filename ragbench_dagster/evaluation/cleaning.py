"""Takes personal data out of what a system said, before anything of it is written (design rule 1).

An engine may echo a question's personal data, and a corpus may hold some of its own. An answer goes through the
scrubber as one request, so that one person has one placeholder in the question, the answer and the contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from ragbench_dagster.evaluation.systems import Answer, Example, System
from ragbench_dagster.evaluation.words import sentences
from ragbench_dagster.store import Workspace

_REMEMBERED = 20_000  # passages


def cleaner(ws: Workspace, system: System) -> Callable[[Example, Answer], Answer]:
    """A function from (question, raw answer) to the answer that may be written; for one thread."""
    return (lambda example, answer: answer) if system.scrubbed else _Cleaner(ws)


class _Cleaner:
    def __init__(self, ws: Workspace) -> None:
        from ragbench_dagster.traffic.scrubbing import build_scrubber

        self._scrubber = build_scrubber(ws.settings.scrub)
        self._keyed = ws.keyed
        self._ids: dict[str, str] = {}
        self._clean: dict[str, bool] = {}  # passages come back from question to question

    def __call__(self, example: Example, answer: Answer) -> Answer:
        ids = tuple(self._id(text) for text in answer.retrieved_ids)
        clean = [text for text in answer.contexts if self._is_clean(text)]
        # What stands in clean contexts is clean. Looking for names in an extract again, for each question anew,
        # would cost more than all the rest of a night.
        said = answer.response if answer.response is None or not _echoes(answer.response, clean) else None
        if said is None and len(clean) == len(answer.contexts):
            return replace(answer, retrieved_ids=ids)
        done = self._scrubber.request(example["query"], said, list(answer.contexts), list(example.get("history") or ()))
        response = answer.response if said is None else done.response
        return replace(answer, response=response, contexts=tuple(done.contexts or ()), retrieved_ids=ids)

    def _is_clean(self, text: str) -> bool:
        if text not in self._clean:
            if len(self._clean) >= _REMEMBERED:
                self._clean.clear()
            self._clean[text] = not self._scrubber.spans(text)
        return self._clean[text]

    def _id(self, text: str | None) -> str | None:
        from ragbench_dagster.traffic.scrubbing import safe_id

        if text is None:
            return None
        if text not in self._ids:
            self._ids[text] = safe_id(text, self._scrubber.plain, self._keyed)
        return self._ids[text]


def _echoes(response: str, contexts: list[str]) -> bool:
    """Whether every sentence of the answer stands in one of the contexts."""
    return all(any(part in _flat(text) for text in contexts) for part in sentences(response))


@lru_cache(maxsize=8192)
def _flat(text: str) -> str:
    """`text` with each run of blanks as one space, as `sentences` leaves it."""
    return " ".join(text.split())
