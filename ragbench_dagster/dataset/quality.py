"""How good deduplication was: what merged, and whether anything merged that means something else.

The counts are metadata; the texts of the largest merges are for a person's review and stay in the store.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.cluster import Form, cluster
from ragbench_dagster.dataset.frozen import Release, resolve
from ragbench_dagster.dataset.normal import form_of
from ragbench_dagster.dataset.phrases import read_list
from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Dedupe
from ragbench_dagster.store import Workspace, write_json

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
