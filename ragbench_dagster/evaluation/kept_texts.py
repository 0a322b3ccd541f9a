"""Takes personal data out of what a system said, before anything of it is written (design rule 1).

An engine may echo a question's personal data, and a corpus may hold some of its own. An answer goes through the
scrubber as one request, so that one person has one placeholder in the question, the answer and the contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench_dagster.evaluation.systems import Answer, Example, System
from ragbench_dagster.masking import mask
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Scrub
from ragbench_dagster.store import Workspace
from ragbench_dagster.text.terms import sentences
from ragbench_dagster.traffic.scrubbed_rows import Texts

if TYPE_CHECKING:
    from ragbench_dagster.traffic.scrubbing import Scrubber

MakeScrubber = Callable[[], "Scrubber"]  # a thread has one of its own

_REMEMBERED = 20_000  # passages


def cleaner(ws: Workspace, system: System) -> Callable[[Example, Answer], Answer]:
    """A function from (question, raw answer) to the answer that may be written; for one thread."""
    return (lambda example, answer: answer) if system.scrubbed else _Cleaner(ws)


class _Cleaner:
    def __init__(self, ws: Workspace) -> None:
        from ragbench_dagster.traffic.scrubbing import build_scrubber

        self._scrubber = build_scrubber(ws.settings.scrub, ws.root)
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


# What a provider said, made fit to be kept: its reply, its feedback, its errors, the names it gives itself.
#
# A judge that quotes brings back what stood in the prompt, and a gateway may quote a key. The verdict was read before;
# here only the words around it are scrubbed. How an answer of a system is cleaned belongs in `kept_texts.py`.

RAW_LIMIT = 20_000  # characters of a reply that the ledger keeps
TEXT_LIMIT = 2_000  # of feedback and of a reply that had to be asked again
# More is scrubbed than is kept: what a cut leaves of an address at the end is no address to a recogniser.
READ_FACTOR = 2


def prepare(settings: Scrub, root: Path | None = None) -> None:
    """Load what scrubbing needs, which takes seconds: later, the calls in flight would wait for it and time out."""
    from ragbench_dagster.traffic.scrubbing import build_scrubber

    _kept("prepared", partial(build_scrubber, settings, root), TEXT_LIMIT)


def kept_verdict(verdict: Verdict, settings: Scrub, root: Path | None = None) -> Verdict:
    """`verdict` with every text in it scrubbed and cut to what the ledger keeps; score and status as they are.

    Args:
        verdict: as a judge gave it.
        settings: how the workspace scrubs.
        root: its folder, where it has recognisers of its own.
    """
    from ragbench_dagster.traffic.scrubbing import build_scrubber

    scrubber = partial(build_scrubber, settings, root)
    return replace(
        verdict,
        feedback=_kept(verdict.feedback, scrubber, TEXT_LIMIT),
        raw=_kept(verdict.raw, scrubber, RAW_LIMIT),
        details=_details(verdict.details, scrubber),
        served_model=_name(verdict.served_model, scrubber),
        fingerprint=_name(verdict.fingerprint, scrubber),
    )


def _kept(text: str, scrubber: MakeScrubber, limit: int) -> str:
    if not text:
        return text
    return scrubber().texts([text[: READ_FACTOR * limit]])[0].text[:limit]


def _name(value: str | None, scrubber: MakeScrubber) -> str | None:
    """A model's name is one word; whatever is more is scrubbed like any text."""
    if value is None:
        return None
    return _kept(value, scrubber, 200) if " " in value or "@" in value else mask(value)


def _details(value: Any, scrubber: MakeScrubber) -> Any:
    if isinstance(value, str):
        return _kept(value, scrubber, TEXT_LIMIT)
    if isinstance(value, dict):
        return {key: _details(inner, scrubber) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_details(inner, scrubber) for inner in value]
    return value


def texts_of_item(item: Item) -> Texts:
    """The texts of an item as one row to be scrubbed."""
    more = tuple(text for text in (item.reference, item.second) if text is not None)
    return Texts(item.query, item.response, (*item.contexts, *more), item.history)


def item_with(item: Item, texts: Texts) -> Item:
    """`item` with the scrubbed `texts` of `texts_of_item`."""
    others = list(texts.others)
    second = others.pop() if item.second is not None else None
    reference = others.pop() if item.reference is not None else None
    return replace(
        item,
        query=texts.query,
        response=texts.response or "",
        contexts=tuple(others),
        history=texts.history,
        reference=reference,
        second=second,
    )
