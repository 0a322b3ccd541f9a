"""What makes two verdicts the same one: the ledger's key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Any, Protocol, TypeVar

from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import digest

T = TypeVar("T")
# Settings of a judge that can change an answer; limits, prices and time-outs cannot.
_ANSWER_SETTINGS = (
    "provider", "model", "revision", "context_window", "read", "temperature", "seed", "max_tokens",
    "max_completion_tokens", "extra", "long_context",
)  # fmt: skip


class Evaluator(Protocol):
    """Whatever grades an item. `version` is raised when the same reply would be read differently."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def template_hash(self) -> str: ...
    async def grade(self, item: Item) -> Verdict: ...


def judge_name(judge: Judge) -> str:
    """The judge as it stands in the ledger: provider, model and revision."""
    parts = [judge.provider, judge.model, judge.revision and f"revision {judge.revision}"]
    return " ".join(part for part in parts if part)


def parameters(judge: Judge) -> dict[str, Any]:
    """The judge's settings that can change an answer.

    A pinned name says which model answers wherever it is served; a floating one says it only with its address.
    """
    if judge.provider == "embedded":
        return {"provider": "embedded"}
    found = {name: value for name in _ANSWER_SETTINGS if (value := getattr(judge, name)) not in (None, {})}
    # "not sent" is a choice of its own, and another than the default of 0.
    found["temperature"] = judge.temperature
    if not judge.pinned:
        found["api_base"] = str(judge.api_base) if judge.api_base else None
    return found


def prefix(evaluator: Evaluator, judge: Judge, round: str = "") -> str:
    """The part of the key that all items of one evaluator share."""
    asks_nobody = getattr(evaluator, "local", False)
    settings = {} if asks_nobody else parameters(judge)
    return digest(evaluator.name, evaluator.version, evaluator.template_hash or "", settings, round)


def verdict_key(shared: str, item: Item) -> str:
    """32 hex digits over `shared` (see `prefix`) and every input of the item."""
    optional = ["\0" if text is None else "=" + text for text in (item.reference, item.second)]
    counts = f"{len(item.contexts)} {len(item.history)}"
    parts = (shared, item.query, item.response, *optional, counts, *item.contexts, *item.history)
    # Each with its length before it, so that no two lists of texts give the same bytes.
    whole = "".join([f"{len(part)}:{part}" for part in parts])
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size` items."""
    source = iter(items)
    while some := list(islice(source, size)):
        yield some
