"""`ragbench stage dedupe`: deduplication of plain rows; a workspace only lends its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.canonical import both_forms, example_id, form_of
from ragbench_dagster.dataset.clusters import Form, cluster, is_question
from ragbench_dagster.dataset.dictionary import known_words
from ragbench_dagster.dataset.labels import Label, read_labels
from ragbench_dagster.dataset.phrases import read_list
from ragbench_dagster.dataset.release import Release, resolve
from ragbench_dagster.dataset.typos import collector_paused
from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Dedupe
from ragbench_dagster.store import Workspace, write_json

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
        value = row.get
        history = value("history")
        labelled = "expected_doc_ids" in row or "expected_answer" in row
        ask = (str(value("query") or ""), tuple(history) if history else (), _label(row) if labelled else "")
        i = number.setdefault(ask, len(weights))
        weight = float(value("weight") or 1.0)
        if i == len(weights):
            weights.append(weight)
            counts.append(1)
            first_row.append(at)
        else:
            weights[i] += weight
            counts[i] += 1
        asks.append(i)
    keys, loose = _keys(list(number))
    texts = [ask[0] for ask in number]
    del number  # memory peaks while clusters are made
    spellings: dict[_Key, list[int]] = {}
    for i, key in enumerate(keys):
        spellings.setdefault(key, []).append(i)
    distinct = sorted(spellings)
    groups = [spellings[key] for key in distinct]
    heaviest = [g[0] if len(g) == 1 else min(g, key=lambda i: (-weights[i], first_row[i])) for g in groups]
    forms = [
        Form(
            form=key[0],
            weight=weights[best] if len(group) == 1 else sum([weights[i] for i in group]),
            loose=tuple(sorted(loose[key[0]])) if key[0] in loose else (),
            label=key[1] or None,
            text=texts[best],
            requests=counts[best] if len(group) == 1 else sum([counts[i] for i in group]),
        )
        for key, group, best in zip(distinct, groups, heaviest, strict=True)
    ]
    names: dict[_Key, str] = {}
    canonical: set[int] = set()
    vocabulary = known_words(ws, (form.form for form in forms), _label_texts(ws)) if ws else frozenset()
    for head, members in cluster(forms, dedupe, vocabulary=vocabulary).members().items():
        cluster_id = example_id(" ".join(filter(None, distinct[head])))
        names.update((distinct[i], cluster_id) for i in members)
        best = head
        if len(members) > 1:
            best = min(members, key=lambda i: (forms[i].label is None, -forms[i].weight, forms[i].form))
        canonical.add(first_row[heaviest[best]])
    for at, (row, i) in enumerate(zip(rows, asks, strict=True)):
        key = keys[i]
        row["cluster"] = names[key]
        row["canonical"] = at in canonical
        if "<" in key[0] and not is_question(key[0]):
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


# How good deduplication was: what merged, and whether anything merged that means something else.
#
# The counts are metadata; the texts of the largest merges are for a person's review and stay in the store.

LARGEST = 20  # merges shown for review
SHOWN = 10  # forms shown of each
PAIRS = 1000  # generated pairs, at most


def measure_dedupe(ws: Workspace, day: str) -> dict[str, Any]:
    """`dedupe_quality` of the release that serves `day`; the report with its texts goes to `dedupe.json` of the night.

    Returns:
        The figures without any text.

    Raises:
        UserError: no release serves the day.
    """
    release = resolve(ws, day)
    if release is None:
        raise UserError(f"{day}: no release serves this day; run the day first")
    return measure_release(ws, day, release)


def measure_release(ws: Workspace, day: str, release: Release) -> dict[str, Any]:
    """The same of a release that is at hand."""
    report = dedupe_quality(ws, release)
    write_json(ws.night(day) / "dedupe.json", report)
    return {name: value for name, value in report.items() if name != "largest_merges"}


def dedupe_quality(ws: Workspace, release: Release) -> dict[str, Any]:
    """Figures on a release.

    Returns:
        release, requests, examples, forms, duplicate_rate (share of requests that repeat another);
        cluster_sizes {forms in a cluster: clusters};
        labelled_questions, and labelled_pairs_merged and labelled_pairs_wrong: the pairs of them that would merge if
        their labels did not part them, and those of them with different labels;
        swapped_pairs and swapped_pairs_merged: generated pairs that differ in one name, number or polarity;
        largest_merges: the clusters with most forms {example_id, forms, count, texts}.
    """
    dedupe = ws.settings.dataset.dedupe
    rows = release.examples.to_pylist()
    members: dict[str, list[str]] = {}
    for form in release.forms.to_pylist():
        members.setdefault(form["example_id"], []).append(form["form"])
    labelled, merged, wrong = _labelled_pairs(rows, dedupe)
    cache = ws.store / "cache" / "embeddings-swapped.parquet"
    pairs, swapped = _swapped_pairs(release, dedupe, cache)
    count = {row["example_id"]: row["count"] for row in rows}
    largest = sorted(members, key=lambda key: (-len(members[key]), -count[key], key))[:LARGEST]
    return {
        "release": release.id,
        "requests": sum(count.values()),
        "examples": len(rows),
        "forms": release.forms.num_rows,
        "duplicate_rate": release.manifest["duplicate_rate"],
        "cluster_sizes": dict(sorted(Counter(map(len, members.values())).items())),
        "labelled_questions": labelled,
        "labelled_pairs_merged": merged,
        "labelled_pairs_wrong": wrong,
        "swapped_pairs": pairs,
        "swapped_pairs_merged": swapped,
        "largest_merges": [
            {"example_id": key, "forms": len(members[key]), "count": count[key], "texts": members[key][:SHOWN]}
            for key in largest
            if len(members[key]) > 1
        ],
    }


def _labelled_pairs(rows: list[dict[str, Any]], dedupe: Dedupe) -> tuple[int, int, int]:
    """(labelled questions, pairs of them that merge without their labels, those of these with other labels)."""
    said = {
        form_of(row["query"], row["history"]): (frozenset(row["expected_doc_ids"] or ()), row["expected_answer"])
        for row in rows
        if row["expected_doc_ids"] or row["expected_answer"]
    }
    texts = sorted(said)
    merged = wrong = 0
    for group in cluster([Form(text) for text in texts], dedupe).members().values():
        labels = Counter(said[texts[i]] for i in group)
        together = len(group) * (len(group) - 1) // 2
        merged += together
        wrong += together - sum(n * (n - 1) // 2 for n in labels.values())
    return len(said), merged, wrong


def _swapped_pairs(release: Release, dedupe: Dedupe, cache: Path) -> tuple[int, int]:
    """(pairs made by putting another name in a question's place, those that became one cluster)."""
    forms = release.forms["form"].to_pylist()
    pairs = _generate(forms)
    texts = sorted({*forms, *(text for pair in pairs for text in pair)})
    at = {text: i for i, text in enumerate(texts)}
    root = cluster([Form(text) for text in texts], dedupe, cache).root
    return len(pairs), sum(root[at[one]] == root[at[other]] for one, other in pairs)


def _generate(forms: list[str]) -> list[tuple[str, str]]:
    """Real questions beside the same with the next name of a group, in the order of the forms."""
    other: dict[str, str] = {}
    for line in read_list("swaps.txt"):
        names = line.split()
        other.update(zip(names, [*names[1:], names[0]], strict=True))
    pairs = []
    for form in forms:
        tokens = form.split(" ")
        for place, token in enumerate(tokens):
            if token in other and len(tokens) > 1:
                pairs.append((form, " ".join((*tokens[:place], other[token], *tokens[place + 1 :]))))
                break
        if len(pairs) == PAIRS:
            break
    return pairs
