"""What a provider said, made fit to be kept: its reply, its feedback, its errors, the names it gives itself.

A judge that quotes brings back what stood in the prompt, and a gateway may quote a key. The verdict was read before;
here only the words around it are scrubbed. How an answer of a system is cleaned belongs in `cleaning.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ragbench_dagster.masking import mask
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.handed_in import Texts

RAW_LIMIT = 20_000  # characters of a reply that the ledger keeps
TEXT_LIMIT = 2_000  # of feedback and of a reply that had to be asked again
# More is scrubbed than is kept: what a cut leaves of an address at the end is no address to a recogniser.
READ_FACTOR = 2


def prepare(settings: Scrub) -> None:
    """Load what scrubbing needs, which takes seconds: later, the calls in flight would wait for it and time out."""
    _kept("prepared", settings, TEXT_LIMIT)


def kept_verdict(verdict: Verdict, settings: Scrub) -> Verdict:
    """`verdict` with every text in it scrubbed and cut to what the ledger keeps; score and status as they are."""
    return replace(
        verdict,
        feedback=_kept(verdict.feedback, settings, TEXT_LIMIT),
        raw=_kept(verdict.raw, settings, RAW_LIMIT),
        details=_details(verdict.details, settings),
        served_model=_name(verdict.served_model, settings),
        fingerprint=_name(verdict.fingerprint, settings),
    )


def _kept(text: str, settings: Scrub, limit: int) -> str:
    if not text:
        return text
    from ragbench_dagster.traffic.scrubbing import build_scrubber

    return build_scrubber(settings).texts([text[: READ_FACTOR * limit]])[0].text[:limit]


def _name(value: str | None, settings: Scrub) -> str | None:
    """A model's name is one word; whatever is more is scrubbed like any text."""
    if value is None:
        return None
    return _kept(value, settings, 200) if " " in value or "@" in value else mask(value)


def _details(value: Any, settings: Scrub) -> Any:
    if isinstance(value, str):
        return _kept(value, settings, TEXT_LIMIT)
    if isinstance(value, dict):
        return {key: _details(inner, settings) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_details(inner, settings) for inner in value]
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
