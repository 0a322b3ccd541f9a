"""`ragbench stage dedupe`: deduplication of plain rows, without a workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragbench_dagster.dataset.cluster import Form, cluster, is_question
from ragbench_dagster.dataset.labels import Label
from ragbench_dagster.dataset.normal import both_forms, example_id, form_of
from ragbench_dagster.settings import Dedupe

_Key = tuple[str, str]  # form, and the hash of the label or ""


@dataclass(slots=True)
class _Seen:
    """All rows of one form and label."""

    weight: float = 0.0
    texts: dict[str, list[float]] = field(default_factory=dict)  # text: weight, first row

    def heaviest(self) -> tuple[str, int]:
        """The text seen most, else first, and its first row."""
        text = min(self.texts, key=lambda text: (-self.texts[text][0], self.texts[text][1]))
        return text, int(self.texts[text][1])


def stage_dedupe(rows: Iterable[Mapping[str, Any]], dedupe: Dedupe) -> Iterator[dict[str, Any]]:
    """Rows `{id, query}` with `cluster` and `canonical` added, in input order; other keys stay.

    `history`, `weight` and a label (`expected_doc_ids`, `expected_answer`) are used where a row has them. One row of
    a cluster is canonical: of its labelled, else heaviest form, the spelling seen most, then first. A row that is no
    question because only placeholders remained also gets `question: false`.
    """
    listed = [dict(row) for row in rows]
    keys, loose = _row_keys(listed)
    seen: dict[_Key, _Seen] = {}
    for number, (row, key) in enumerate(zip(listed, keys, strict=True)):
        group = seen.get(key)
        if group is None:
            group = seen[key] = _Seen()
        weight = float(row.get("weight") or 1.0)
        group.weight += weight
        text = group.texts.setdefault(str(row.get("query") or ""), [0.0, number])
        text[0] += weight
    distinct = sorted(seen)
    forms = [
        Form(form, seen[form, label].weight, tuple(sorted(loose.get(form, ()))), label or None, text)
        for form, label in distinct
        for text in (seen[form, label].heaviest()[0],)
    ]
    clusters = cluster(forms, dedupe)
    name: dict[_Key, str] = {}
    canonical: set[int] = set()
    for head, members in clusters.members().items():
        cluster_id = example_id(" ".join(filter(None, distinct[head])))
        name.update((distinct[i], cluster_id) for i in members)
        best = min(members, key=lambda i: (forms[i].label is None, -forms[i].weight, forms[i].form))
        canonical.add(seen[distinct[best]].heaviest()[1])
    unanswerable = {key for key in distinct if not is_question(key[0])}
    for number, (row, key) in enumerate(zip(listed, keys, strict=True)):
        row["cluster"] = name[key]
        row["canonical"] = number in canonical
        if key in unanswerable:
            row["question"] = False
        yield row


def _row_keys(rows: list[dict[str, Any]]) -> tuple[list[_Key], dict[str, set[str]]]:
    """(form, label) of each row, and each form's spellings with politeness. One label also takes the rows without."""
    by_text: dict[str, str] = {}
    loose: dict[str, set[str]] = {}
    keys: list[_Key] = []
    of_form: dict[str, set[str]] = {}
    for row in rows:
        text = str(row.get("query") or "")
        form = form_of(text, row["history"]) if row.get("history") else by_text.get(text)
        if form is None:
            form, other = both_forms(text)
            by_text[text] = form
            if other != form:
                loose.setdefault(form, set()).add(other)
        label = _label(row)
        if label:
            of_form.setdefault(form, set()).add(label)
        keys.append((form, label))
    if of_form:
        only = {form: next(iter(said)) for form, said in of_form.items() if len(said) == 1}
        keys = [(form, label or only.get(form, "")) for form, label in keys]
    return keys, loose


def _label(row: Mapping[str, Any]) -> str:
    ids, answer = row.get("expected_doc_ids"), row.get("expected_answer")
    if not ids and not answer:
        return ""
    return Label("", tuple(map(str, ids or ())) or None, expected_answer=answer).value
