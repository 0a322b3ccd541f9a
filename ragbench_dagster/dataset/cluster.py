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
from ragbench_dagster.dataset.normal import both_forms, example_id, form_of
from ragbench_dagster.dataset.phrases import is_placeholder, read_words
from ragbench_dagster.dataset.words import is_mendable
from ragbench_dagster.settings import Dedupe

# A word that stands in this many forms, and in this share of its neighbour's, is a word and not an error.
FREQUENT_FORMS = 4
FREQUENT_SHARE = 0.125
# ... unless this share of its forms also stands there with the other word: then it is an error made often.
MENDED_SHARE = 0.5
# Letters below which two unknown words are rather two names.
SHORT = 5
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
    for text in texts:
        for word in text.split(" "):
            spread[word] = spread.get(word, 0) + 1
    pairs = list(one_edit_pairs(texts, len(forms)))
    mended: dict[str, set[int]] = {}
    for pair in pairs:
        mended.setdefault(pair.wrong, set()).add(pair.typo)
    targets: dict[int, set[int]] = {}
    for pair in pairs:
        typo, target = owner[pair.typo], owner[pair.target]
        if ranks[target] < ranks[typo] and not _established(pair, spread, len(mended[pair.wrong])):
            targets.setdefault(typo, set()).add(target)
    return {typo: sorted(found, key=ranks.__getitem__) for typo, found in targets.items()}


def _established(pair: Candidate, spread: dict[str, int], mended: int) -> bool:
    """True when the "error" may be a word of this log.

    Either many forms have it and few of them have a twin without it, or both words are short and unknown, and the
    one is not much more common than the other.
    """
    if not is_mendable(pair.wrong):
        return False
    wrong = spread.get(pair.wrong, 0)
    right = min(spread.get(word, 0) for word in pair.right.split(" "))
    if is_mendable(pair.right) and min(len(pair.wrong), len(pair.right)) < SHORT and not 1 == wrong < right / 3:
        return True
    return wrong >= max(FREQUENT_FORMS, FREQUENT_SHARE * right) and mended < MENDED_SHARE * wrong


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
    keys, loose = _row_keys(listed)
    distinct = sorted(set(keys), key=lambda key: (key[0], key[1] or ""))
    index = {key: i for i, key in enumerate(distinct)}
    weights = [0.0] * len(distinct)
    of_row = [index[key] for key in keys]
    for row, at in zip(listed, of_row, strict=True):
        weights[at] += float(row.get("weight") or 1.0)
    forms = [
        Form(form, weight, tuple(sorted(loose.get(form, ()))), label)
        for (form, label), weight in zip(distinct, weights, strict=True)
    ]
    clusters = cluster(forms, dedupe)
    canonical = _canonical_rows(listed, of_row, forms, clusters)
    names = {
        head: example_id(forms[head].form if forms[head].label is None else f"{forms[head].form} {forms[head].label}")
        for head in set(clusters.root)
    }
    asked = [is_question(form.form) for form in forms]
    for number, (row, at) in enumerate(zip(listed, of_row, strict=True)):
        row["cluster"] = names[clusters.root[at]]
        row["canonical"] = number in canonical
        if not asked[at]:
            row["question"] = False
        yield row


def _row_keys(rows: list[dict[str, Any]]) -> tuple[list[tuple[str, str | None]], dict[str, set[str]]]:
    """(form, label) of each row, and each form's spellings with politeness. One label also takes the rows without."""
    by_text: dict[str, str] = {}
    loose: dict[str, set[str]] = {}
    forms: list[str] = []
    for row in rows:
        text = str(row.get("query") or "")
        if row.get("history"):
            forms.append(form_of(text, row["history"]))
            continue
        form = by_text.get(text)
        if form is None:
            form, other = both_forms(text)
            by_text[text] = form
            if other != form:
                loose.setdefault(form, set()).add(other)
        forms.append(form)
    labels = [_row_label(row) for row in rows]
    of_form: dict[str, set[str]] = {}
    for form, label in zip(forms, labels, strict=True):
        if label:
            of_form.setdefault(form, set()).add(label)
    only = {form: next(iter(said)) for form, said in of_form.items() if len(said) == 1}
    return [(form, label or only.get(form)) for form, label in zip(forms, labels, strict=True)], loose


def _row_label(row: Mapping[str, Any]) -> str | None:
    ids, answer = row.get("expected_doc_ids"), row.get("expected_answer")
    if not ids and not answer:
        return None
    return Label("", tuple(map(str, ids or ())) or None, expected_answer=answer).value


def _canonical_rows(rows: list[dict[str, Any]], of_row: list[int], forms: list[Form], clusters: Clusters) -> set[int]:
    """One row number per cluster: of its labelled, else heaviest form, the text seen most, then the first."""
    chosen = {
        min(members, key=lambda i: (forms[i].label is None, -forms[i].weight, forms[i].form))
        for members in clusters.members().values()
    }
    seen: dict[int, dict[str, list[float]]] = {}
    for number, (row, at) in enumerate(zip(rows, of_row, strict=True)):
        if at in chosen:
            text = seen.setdefault(at, {}).setdefault(str(row.get("query") or ""), [0.0, number])
            text[0] += float(row.get("weight") or 1.0)
    return {int(min(texts.values(), key=lambda t: (-t[0], t[1]))[1]) for texts in seen.values()}
