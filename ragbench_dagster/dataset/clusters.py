"""Which forms are one question: exact forms, then typing errors, then (optional) meaning (design 8).

The order of rows never matters: forms are ranked by label, number of unknown words, weight and text, and each
joins the best-ranked form it may belong to. So a form with an error joins the one without, two words that
both exist are never joined through a misspelling that is near to both, and labels never mix.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragbench_dagster.dataset.dictionary import is_readable, languages_of, strange_words
from ragbench_dagster.dataset.phrases import is_placeholder, lists_hash, read_words
from ragbench_dagster.dataset.typo_evidence import Evidence
from ragbench_dagster.dataset.typos import TokenTable, one_edit_pairs
from ragbench_dagster.settings import Dedupe
from ragbench_dagster.store import digest

# A rare word, for the order of trust, stands in fewer forms.
RARE_FORMS = 4
# Requests of one form, and their share of the other form's traffic, from which on it is no error but another name.
REPEATED = 3
REPEATED_SHARE = 0.25
_EMPTY_WORDS = read_words("function_words.txt")


_METHOD = "2"  # raise it when a rule of the steps changes: releases are then cut anew
_LISTS = (
    "codes.txt", "names.txt", "places.txt", "numbers.txt", "enumerators.txt", "negations.txt", "negation_twins.txt",
    "grammar_words.txt", "function_words.txt", "opposites.txt", "languages.txt",
)  # fmt: skip


def method_version() -> str:
    """What clusters are made by: the rules, the lists and the dictionary's version."""
    return digest(_METHOD, lists_hash(*_LISTS), version("pyspellchecker"), size=8)


class Form(NamedTuple):
    """One normalised form of the window, with all its requests."""

    form: str
    weight: float = 1.0
    loose: tuple[str, ...] = ()  # the same with politeness, where that differs
    label: str | None = None  # hash of its label; forms with different labels never merge
    text: str = ""  # the heaviest spelling, for the embedding step; default: the form
    requests: int = 1


@dataclass(frozen=True, slots=True)
class Clusters:
    """`root[i]` is the index of the form that form `i` belongs to (its own index: a cluster's head)."""

    root: list[int]
    steps: dict[str, int] = field(default_factory=dict)  # forms that joined another, by step
    kept_apart: list[tuple[int, int]] = field(default_factory=list)  # pairs that only their labels part

    def members(self) -> dict[int, list[int]]:
        """Members of each cluster by its head, both ascending."""
        groups: dict[int, list[int]] = {}
        for index, head in enumerate(self.root):
            groups.setdefault(head, []).append(index)
        return dict(sorted(groups.items()))


def cluster(
    forms: Sequence[Form], dedupe: Dedupe, cache: Path | None = None, vocabulary: Collection[str] = frozenset()
) -> Clusters:
    """Group distinct `forms`; the result does not depend on their order.

    Args:
        cache: file that keeps embeddings from one refresh to the next.
        vocabulary: words that are no typing errors, whatever the lists know: those of the corpus and the labels.

    Raises:
        UserError: `dedupe.semantic` is on and the `semantic` extra is not installed.
    """
    table = TokenTable([form.form for form in forms] + [text for form in forms for text in form.loose])
    ranks = _ranks(forms, table)
    state = _Grouping(forms, ranks)
    if dedupe.one_edit:
        state.join(_best_targets(forms, ranks, table, vocabulary), "one_edit")
    if dedupe.semantic:
        state.join(
            _near_in_meaning(forms, ranks, state.root, dedupe.semantic_threshold, cache), "semantic", direct=True
        )
    return Clusters(state.root, dict(sorted(state.steps.items())), sorted(state.kept_apart))


def _near_in_meaning(
    forms: Sequence[Form], ranks: list[int], root: list[int], threshold: float, cache: Path | None
) -> dict[int, list[int]]:
    """For each head, the better-ranked heads that mean the same; a follow-up means nothing alone and has none."""
    from ragbench_dagster.dataset.semantic import semantic_pairs

    heads = [i for i, head in enumerate(root) if head == i and "\n" not in forms[i].form]
    targets: dict[int, list[int]] = {}
    texts = [forms[i].text or forms[i].form for i in heads]
    for one, other in semantic_pairs(texts, [forms[i].form for i in heads], threshold, cache):
        high, low = sorted((heads[one], heads[other]), key=ranks.__getitem__)
        targets.setdefault(low, []).append(high)
    return {low: sorted(highs, key=ranks.__getitem__) for low, highs in targets.items()}


def _ranks(forms: Sequence[Form], table: TokenTable) -> list[int]:
    """Position of each form in the order of trust: labelled, few (rare) unknown words, heavy, common, then by text."""
    if not forms:
        return []
    count = len(forms)
    own = table.ids[: int(table.lengths[:count].sum())]
    unknown = table.unknown[own]
    _know_other_languages(table, unknown, count)
    spread = table.spread[own]
    starts = table.starts[:count]
    by_text = np.argsort(np.argsort(np.array([form.form for form in forms], object), kind="stable"), kind="stable")
    rare = unknown & (spread < RARE_FORMS)
    keys = [  # the last decides first
        by_text,
        -np.minimum.reduceat(spread, starts),
        np.array([-form.weight for form in forms]),
        np.add.reduceat(unknown.astype(np.int64), starts),
        np.add.reduceat(rare.astype(np.int64), starts),
        np.array([form.label is None for form in forms]),
    ]
    order = np.lexsort(keys)
    ranks = np.empty(count, np.int64)
    ranks[order] = np.arange(count)
    return ranks.tolist()


def _know_other_languages(table: TokenTable, unknown: npt.NDArray[np.bool_], count: int) -> None:
    """Take from `unknown` the words that the language of their form knows."""
    several = np.add.reduceat(unknown.astype(np.int64), table.starts[:count]) > 1
    for row in np.flatnonzero(several).tolist():
        tokens = table.texts[row].split(" ")
        if languages_of(tokens):
            start = int(table.starts[row])
            strange = strange_words(tokens)
            unknown[start : start + len(tokens)] &= [token in strange for token in tokens]


class _Grouping:
    """Joins forms to better-ranked heads, one label to a cluster."""

    def __init__(self, forms: Sequence[Form], ranks: list[int]) -> None:
        self.ranks = ranks
        self.root = list(range(len(forms)))
        self.label = [form.label for form in forms]
        self.steps: dict[str, int] = {}
        self.kept_apart: list[tuple[int, int]] = []

    def join(self, targets: Mapping[int, Sequence[int]], step: str, direct: bool = False) -> None:
        """Let each form join the first of its `targets` that its label allows; best-ranked forms first.

        Args:
            direct: only a target that heads its cluster counts, so that likeness is never passed on through others.
        """
        joined = 0
        moved: dict[int, int] = {}
        for index in sorted(targets, key=self.ranks.__getitem__):
            for target in targets[index]:
                head = self._head(target, moved)
                if head == index or (direct and head != target):
                    continue
                mine, theirs = self.label[index], self.label[head]
                if mine and theirs and mine != theirs:
                    self.kept_apart.append((min(index, head), max(index, head)))
                    continue
                moved[self.root[index]] = head
                self.label[head] = theirs or mine
                joined += 1
                break
        self.root = [self._head(i, moved) for i in range(len(self.root))]
        self.steps[step] = joined

    def _head(self, index: int, moved: dict[int, int]) -> int:
        head = self.root[index]
        while head in moved:
            head = moved[head]
        return head


def _best_targets(
    forms: Sequence[Form], ranks: list[int], table: TokenTable, vocabulary: Collection[str]
) -> dict[int, list[int]]:
    """For each form with a typing error, the forms it may be meant as, the best-ranked first."""
    owner = list(range(len(forms)))
    for index, form in enumerate(forms):
        owner.extend([index] * len(form.loose))
    pairs = list(one_edit_pairs(table, len(forms)))
    evidence = Evidence(table, [forms[i].requests for i in owner], pairs, vocabulary)
    targets: dict[int, set[int]] = {}
    for pair in pairs:
        typo, target = owner[pair.typo], owner[pair.target]
        if ranks[target] >= ranks[typo] or _asked_often(forms[typo], forms[target]):
            continue
        if not evidence.shows_error(pair):
            continue
        if " " in pair.right + pair.wrong or is_readable(table.texts[pair.typo].split(" "), pair.wrong, pair.right):
            targets.setdefault(typo, set()).add(target)
    return {typo: sorted(found, key=ranks.__getitem__) for typo, found in targets.items()}


def _asked_often(typo: Form, target: Form) -> bool:
    """True when a form was typed so many times beside the other one that it is meant: nobody errs alike each time."""
    return typo.requests >= REPEATED and typo.weight >= REPEATED_SHARE * target.weight


def is_question(form: str) -> bool:
    """False where nothing but placeholders says what is asked: "who is <person>" stands for many questions."""
    if "<" not in form:
        return True
    last = form.rsplit("\n ", 1)[-1].split(" ")
    if not any(map(is_placeholder, last)):
        return True
    return any(not is_placeholder(word) and word not in _EMPTY_WORDS for word in last)
