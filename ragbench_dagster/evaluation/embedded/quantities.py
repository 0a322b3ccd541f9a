"""Numbers of a claim against those of the contexts: missing, with another unit, or of another name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragbench_dagster.evaluation.embedded.analysis import Sentence, Text
from ragbench_dagster.evaluation.embedded.contradictions import Near
from ragbench_dagster.text.terms import stem

# Seconds, months, bytes: what converts exactly. A month has no fixed number of days.
_SIZES: dict[str, dict[str, float]] = {
    "s": {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "day": 86400, "week": 604800},
    "mo": {"month": 1, "quarter": 3, "year": 12},
    "B": {"byte": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "megabyte": 1e6, "gigabyte": 1e9},
}
_UNITS = {stem(unit): (kind, size) for kind, units in _SIZES.items() for unit, size in units.items()}
_OTHER_UNITS = frozenset(stem(u) for u in ["time", "euro", "dollar", "pound", "cent", "percent", "page", "row", "user"])


def wrong_number(claim: Sentence, found: Sequence[Near], contexts: Sequence[Text], asked: Text) -> str | None:
    """The first fault of the numbers of `claim`, or None.

    Args:
        claim: a sentence of the answer.
        found: the clauses near it.
        contexts: all of what was retrieved.
        asked: the question, whose numbers may be repeated.
    """
    if not claim.numbers:
        return None
    everywhere = asked.numbers.union(*(text.numbers for text in contexts))
    missing = {value for _, value in claim.numbers if value not in everywhere}
    if missing - converted(claim, contexts):
        return "a number that the contexts do not have"
    if _other_currency(claim, contexts):
        return "a number in another currency"
    near = [n.clause for n in found if n.of_claim >= 0.4]
    if _other_unit(claim, near) or _unknown_pair(claim, near, contexts, asked):
        return "a number that the contexts have for something else"
    if _other_owner(claim, contexts):
        return "a number that the contexts have for another name"
    return None


def converted(claim: Sentence, contexts: Sequence[Text]) -> frozenset[str]:
    """Numbers and units of the claim that the contexts say in another unit: 2 days are 48 hours."""
    own = [(value, unit, amount) for value, unit in claim.units if (amount := _amount(value, unit))]
    if not own:
        return frozenset()
    said = {
        amount
        for text in contexts
        for sentence in text.sentences
        for value, unit in sentence.units
        if (amount := _amount(value, unit))
    }
    return frozenset(word for value, unit, amount in own if amount in said for word in (value, unit))


def _amount(value: str, unit: str) -> tuple[str, float] | None:
    if unit not in _UNITS:
        return None
    kind, size = _UNITS[unit]
    try:
        return kind, float(value) * size
    except ValueError:
        return None


def _other_currency(claim: Sentence, contexts: Sequence[Text]) -> bool:
    for value, sign in claim.money:
        signs = {s for text in contexts for sentence in text.sentences for v, s in sentence.money if v == value}
        if signs and sign not in signs:
            return True
    return False


def _other_unit(claim: Sentence, near: Iterable[Sentence]) -> bool:
    """A number right before one unit, where the clauses near it have it right before another only."""
    said = [pair for clause in near for pair in clause.units]
    for value, unit in claim.units:
        if not _is_unit(unit) or (value, unit) in said:
            continue
        others = {u for v, u in said if v == value and _is_unit(u)}
        if others and not any(_amount(value, unit) == _amount(v, u) is not None for v, u in said):
            return True
    return False


def _is_unit(word: str) -> bool:
    return word in _UNITS or word in _OTHER_UNITS


def _unknown_pair(claim: Sentence, near: Sequence[Sentence], contexts: Sequence[Text], asked: Text) -> bool:
    """A number that no close clause has, before a word that the contexts have with other numbers only."""
    close = {value for clause in near for _, value in clause.numbers}
    said = [pair for text in contexts for sentence in text.sentences for pair in sentence.quantities]
    for value, unit in claim.units:
        if value in close or value in asked.numbers or any(v == value and unit in words for v, words in said):
            continue
        if any(unit in words for _, words in said):
            return True
    return False


def _other_owner(claim: Sentence, contexts: Sequence[Text]) -> bool:
    """A number beside one name, where the contexts have that number and that name beside others only."""
    if not claim.owners:
        return False
    said = {pair for text in contexts for sentence in text.named_numbers for pair in sentence.owners}
    values = {value for _, value in said}
    names = {name for name, _ in said}
    if not any((n, v) not in said and v in values and n in names for n, v in claim.owners):
        return False
    proper = claim.proper.union(*(text.proper for text in contexts))
    return any(
        (name, value) not in said and value in values and name in names and stem(name) in proper
        for name, value in claim.owners
    )
