"""`ragbench stage dedupe`: deduplication of plain rows; a workspace only lends its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragbench_dagster.dataset.cluster import Form, cluster, is_question
from ragbench_dagster.dataset.labels import Label, read_labels
from ragbench_dagster.dataset.normal import both_forms, example_id, form_of
from ragbench_dagster.dataset.tokens import collector_paused
from ragbench_dagster.dataset.vocabulary import known_words
from ragbench_dagster.settings import Dedupe
from ragbench_dagster.store import Workspace

_Key = tuple[str, str]  # form, and the hash of the label or ""
_Ask = tuple[str, tuple[str, ...], str]  # text, history, hash of the label or ""


def stage_dedupe(
    rows: Iterable[Mapping[str, Any]], dedupe: Dedupe, ws: Workspace | None = None
) -> Iterator[dict[str, Any]]:
    """Rows `{id, query}` with `cluster` and `canonical` added, in input order; other keys stay.

    `history`, `weight` and a label (`expected_doc_ids`, `expected_answer`) are used where a row has them. One row of
    a cluster is canonical: of its labelled, else heaviest form, the spelling seen most, then first. A row that is no
    question because only placeholders remained also gets `question: false`.

    Args:
        ws: the workspace whose corpus and labels tell names from typing errors; without one the lists alone do.

    Raises:
        UserError: a wrong labels file.
    """
    listed = [dict(row) for row in rows]
    with collector_paused():
        _group(listed, dedupe, ws)
    yield from listed


def _group(rows: list[dict[str, Any]], dedupe: Dedupe, ws: Workspace | None) -> None:
    """Add `cluster`, `canonical` and `question` to `rows`."""
    number: dict[_Ask, int] = {}
    weights: list[float] = []
    counts: list[int] = []
    first_row: list[int] = []
    asks: list[int] = []
    for at, row in enumerate(rows):
        ask = (str(row.get("query") or ""), tuple(row.get("history") or ()), _label(row))
        i = number.setdefault(ask, len(number))
        if i == len(weights):
            weights.append(0.0)
            counts.append(0)
            first_row.append(at)
        weights[i] += float(row.get("weight") or 1.0)
        counts[i] += 1
        asks.append(i)
    keys, loose = _keys(list(number))
    texts = [ask[0] for ask in number]
    spellings: dict[_Key, list[int]] = {}
    for i, key in enumerate(keys):
        spellings.setdefault(key, []).append(i)
    distinct = sorted(spellings)
    heaviest = [
        group[0] if len(group) == 1 else min(group, key=lambda i: (-weights[i], first_row[i]))
        for group in map(spellings.__getitem__, distinct)
    ]
    forms = [
        Form(
            form=key[0],
            weight=sum(weights[i] for i in spellings[key]),
            loose=tuple(sorted(loose[key[0]])) if key[0] in loose else (),
            label=key[1] or None,
            text=texts[best],
            requests=sum(counts[i] for i in spellings[key]),
        )
        for key, best in zip(distinct, heaviest, strict=True)
    ]
    names: dict[_Key, str] = {}
    canonical: set[int] = set()
    vocabulary = known_words(ws, (form.form for form in forms), _label_texts(ws)) if ws else frozenset()
    for head, members in cluster(forms, dedupe, vocabulary=vocabulary).members().items():
        cluster_id = example_id(" ".join(filter(None, distinct[head])))
        names.update((distinct[i], cluster_id) for i in members)
        best = min(members, key=lambda i: (forms[i].label is None, -forms[i].weight, forms[i].form))
        canonical.add(first_row[heaviest[best]])
    for at, (row, i) in enumerate(zip(rows, asks, strict=True)):
        row["cluster"] = names[keys[i]]
        row["canonical"] = at in canonical
        if not is_question(keys[i][0]):
            row["question"] = False


def _label_texts(ws: Workspace) -> Iterator[str]:
    for label in read_labels(ws.labels) if ws.labels.exists() else ():
        yield label.query
        yield label.expected_answer or ""


def _keys(asks: list[_Ask]) -> tuple[list[_Key], dict[str, set[str]]]:
    """(form, label) of each, and each form's spellings with politeness. One label also takes what has none."""
    loose: dict[str, set[str]] = {}
    keys: list[_Key] = []
    of_form: dict[str, set[str]] = {}
    for text, history, label in asks:
        if history:
            form = form_of(text, history)
        else:
            form, other = both_forms(text)
            if other is not form:
                loose.setdefault(form, set()).add(other)
        if label:
            of_form.setdefault(form, set()).add(label)
        keys.append((form, label))
    only = {form: next(iter(said)) for form, said in of_form.items() if len(said) == 1}
    return [(form, label or only.get(form, "")) for form, label in keys], loose


def _label(row: Mapping[str, Any]) -> str:
    ids, answer = row.get("expected_doc_ids"), row.get("expected_answer")
    if not ids and not answer:
        return ""
    return Label("", tuple(map(str, ids or ())) or None, expected_answer=answer).value
