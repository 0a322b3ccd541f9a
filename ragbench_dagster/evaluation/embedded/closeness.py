"""Which clauses of the contexts speak of the same thing as a claim. What differs between them is `checks.py`'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragbench_dagster.evaluation.embedded.analysis import Sentence, Text


@dataclass(frozen=True, slots=True)
class Near:
    """A clause that shares content words with a claim; the shares are of distinct content words."""

    clause: Sentence
    text: Text  # the passage it stands in
    shared: frozenset[str]
    of_claim: float
    of_clause: float


def near(claim: Sentence, contexts: Sequence[Text]) -> list[Near]:
    """The clauses that share two content words with the claim, or most of what either says; the closest first."""
    wanted = claim.content
    if not wanted:
        return []
    found: list[Near] = []
    for text in contexts:
        for clause in text.clauses:
            shared = wanted & clause.content
            if not shared:
                continue
            of_claim, of_clause = len(shared) / len(wanted), len(shared) / len(clause.content)
            if len(shared) > 1 or of_claim >= 0.5 or of_clause >= 0.5:
                found.append(Near(clause, text, shared, of_claim, of_clause))
    found.sort(key=lambda n: (-n.of_claim, -n.of_clause))
    return found


def closest(found: Sequence[Near], least: float = 0.6) -> list[Near]:
    """Those that cover most of the claim: the best and the nearly as good."""
    if not found:
        return []
    floor = max(least, found[0].of_claim - 0.1)
    return [n for n in found if n.of_claim >= floor]
