"""Which forms are one question: exact forms, then typing errors, then (optional) meaning (design 8).

The order of rows never matters: forms are ranked by label, number of unknown words, weight and text, and each
joins the best-ranked form it may belong to. So a form with an error joins the one without, two words that
both exist are never joined through a misspelling that is near to both, and labels never mix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragbench_dagster.dataset.edits import Candidate, one_edit_pairs
from ragbench_dagster.dataset.labels import Label
from ragbench_dagster.dataset.normal import example_id, form_of, loose_form
from ragbench_dagster.dataset.phrases import is_placeholder, read_words
from ragbench_dagster.dataset.words import is_mendable
from ragbench_dagster.settings import Dedupe

# A word that stands in this many forms, and in this share of its neighbour's, is a word and not an error.
FREQUENT_FORMS = 4
FREQUENT_SHARE = 0.125
_EMPTY_WORDS = read_words("function_words.txt")


@dataclass(frozen=True, slots=True)
class Form:
    """One normalised form of the window, with all its requests."""

    form: str
    weight: float = 1.0
    loose: tuple[str, ...] = ()  # the same with politeness, where that differs
    label: str | None = None  # hash of its label; forms with different labels never merge


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


def cluster(forms: Sequence[Form], dedupe: Dedupe) -> Clusters:
    """Group distinct `forms`; the result does not depend on their order.

    Raises:
        UserError: `dedupe.semantic` is on and the `semantic` extra is not installed.
    """
    ranks = _ranks(forms)
    state = _Grouping(forms, ranks)
    if dedupe.one_edit:
        state.join(_best_targets(forms, ranks), "one_edit")
    if dedupe.semantic:
        from ragbench_dagster.dataset.semantic import semantic_pairs

        heads = [i for i, head in enumerate(state.root) if head == i and "\n" not in forms[i].form]
        pairs = semantic_pairs([forms[i].form for i in heads], dedupe.semantic_threshold)
        moves: dict[int, list[int]] = {}
        for one, other in pairs:
            high, low = sorted((heads[one], heads[other]), key=ranks.__getitem__)
            moves.setdefault(low, []).append(high)
        state.join({low: sorted(highs, key=ranks.__getitem__) for low, highs in moves.items()}, "semantic")
    return Clusters(state.root, dict(sorted(state.steps.items())), sorted(state.kept_apart))


def _ranks(forms: Sequence[Form]) -> list[int]:
    """Position of each form in the order of trust: labelled, few unknown words, heavy, then by text."""
    unknown = [sum(map(is_mendable, form.form.split(" "))) for form in forms]
    order = sorted(
        range(len(forms)),
        key=lambda i: (forms[i].label is None, unknown[i], -forms[i].weight, forms[i].form),
    )
    ranks = [0] * len(forms)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return ranks


class _Grouping:
    """Joins forms to better-ranked heads, one label to a cluster."""

    def __init__(self, forms: Sequence[Form], ranks: list[int]) -> None:
        self.ranks = ranks
        self.root = list(range(len(forms)))
        self.label = [form.label for form in forms]
        self.steps: dict[str, int] = {}
        self.kept_apart: list[tuple[int, int]] = []

    def join(self, targets: Mapping[int, Sequence[int]], step: str) -> None:
        """Let each form join the first of its `targets` that its label allows; best-ranked forms first."""
        joined = 0
        moved: dict[int, int] = {}
        for index in sorted(targets, key=self.ranks.__getitem__):
            for target in targets[index]:
                head = self._head(target, moved)
                if head == index:
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


def _best_targets(forms: Sequence[Form], ranks: list[int]) -> dict[int, list[int]]:
    """For each form with a typing error, the forms it may be meant as, the best-ranked first."""
    texts = [form.form for form in forms]
    owner = list(range(len(forms)))
    for index, form in enumerate(forms):
        texts.extend(form.loose)
        owner.extend([index] * len(form.loose))
    spread: dict[str, int] = {}
    for form in forms:
        for word in form.form.split(" "):
            spread[word] = spread.get(word, 0) + 1
    targets: dict[int, set[int]] = {}
    for pair in one_edit_pairs(texts):
        typo, target = owner[pair.typo], owner[pair.target]
        if ranks[target] < ranks[typo] and not _both_frequent(pair, spread):
            targets.setdefault(typo, set()).add(target)
    return {typo: sorted(found, key=ranks.__getitem__) for typo, found in targets.items()}


def _both_frequent(pair: Candidate, spread: dict[str, int]) -> bool:
    wrong = spread.get(pair.wrong, 0)
    return wrong >= FREQUENT_FORMS and wrong >= FREQUENT_SHARE * spread.get(pair.right, 0)


def is_question(form: str) -> bool:
    """False where nothing but placeholders says what is asked: "who is <person>" stands for many questions."""
    last = form.rsplit("\n ", 1)[-1].split(" ")
    if not any(map(is_placeholder, last)):
        return True
    return any(not is_placeholder(word) and word not in _EMPTY_WORDS for word in last)


def stage_dedupe(rows: Iterable[Mapping[str, Any]], dedupe: Dedupe) -> Iterator[dict[str, Any]]:
    """Rows `{id, query}` with `cluster` and `canonical` added, in input order; other keys stay.

    `history`, `weight` and a label (`expected_doc_ids`, `expected_answer`) are used where a row has them. A row that
    is no question because only placeholders remained also gets `question: false`.
    """
    listed = [dict(row) for row in rows]
    keys = [_row_key(row) for row in listed]
    distinct = sorted(set(keys), key=lambda key: (key[0], key[1] or ""))
    index = {key: i for i, key in enumerate(distinct)}
    weights = [0.0] * len(distinct)
    loose: list[set[str]] = [set() for _ in distinct]
    for row, key in zip(listed, keys, strict=True):
        weights[index[key]] += float(row.get("weight") or 1.0)
        if not row.get("history"):
            loose[index[key]].add(loose_form(str(row.get("query") or "")))
    forms = [
        Form(form, weight, tuple(sorted(more - {form})), label)
        for (form, label), weight, more in zip(distinct, weights, loose, strict=True)
    ]
    clusters = cluster(forms, dedupe)
    canonical = _canonical_rows(listed, keys, index, forms, clusters)
    for number, (row, key) in enumerate(zip(listed, keys, strict=True)):
        head = forms[clusters.root[index[key]]]
        row["cluster"] = example_id(head.form if head.label is None else f"{head.form} {head.label}")
        row["canonical"] = number in canonical
        if not is_question(key[0]):
            row["question"] = False
        yield row


def _row_key(row: Mapping[str, Any]) -> tuple[str, str | None]:
    label = None
    if row.get("expected_doc_ids") or row.get("expected_answer"):
        ids = row.get("expected_doc_ids") or ()
        said = Label("", tuple(map(str, ids)) or None, expected_answer=row.get("expected_answer"))
        label = said.value
    return form_of(str(row.get("query") or ""), row.get("history") or ()), label


def _canonical_rows(
    rows: list[dict[str, Any]],
    keys: list[tuple[str, str | None]],
    index: dict[tuple[str, str | None], int],
    forms: list[Form],
    clusters: Clusters,
) -> set[int]:
    """One row number per cluster: of its labelled, else heaviest form, the text seen most, then the first."""
    best_form = {
        head: min(members, key=lambda i: (forms[i].label is None, -forms[i].weight, forms[i].form))
        for head, members in clusters.members().items()
    }
    chosen = set(best_form.values())
    seen: dict[int, dict[str, list[float]]] = {}
    for number, (row, key) in enumerate(zip(rows, keys, strict=True)):
        form = index[key]
        if form in chosen:
            text = seen.setdefault(form, {}).setdefault(str(row.get("query") or ""), [0.0, number])
            text[0] += float(row.get("weight") or 1.0)
    return {int(min(texts.values(), key=lambda t: (-t[0], t[1]))[1]) for texts in seen.values()}
