"""The labelling queue: which questions a person should label next, with passages to choose from.

Heavy questions first, balanced over categories, and among them those on which the systems disagree: there a label
decides the most. Passages come from the systems' own retrieval of the last night.
"""

from __future__ import annotations

import json
import math
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.export import to_csv
from ragbench_dagster.dataset.labels import read_corpus
from ragbench_dagster.dataset.release import latest
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, read_table, write_text

CANDIDATES = 5  # passages offered for a question
TOP = 5  # first passages of each system that are compared
_EXCERPT = 400  # characters of a passage
_COLUMNS = [
    "example_id",
    "query",
    "expected_doc_ids",
    "expected_answer",
    "category",
    "history",
    "share",
    "disagreement",
]

_Ranking = list[tuple[str, str | None]]  # passage id, text


def label_queue(ws: Workspace, n: int) -> list[dict[str, Any]]:
    """The `n` questions most worth a label, in the order to label them.

    Each row: example_id, query, history, category, share (of the traffic), disagreement (0 to 1: how far the systems'
    first passages differ), expected_doc_ids and expected_answer (null, to be filled in), candidates [{doc_id, text}]. A
    follow-up comes with its history, never alone; conflicts and synthetic questions are left out.

    Raises:
        UserError: no release yet, or it is broken.
    """
    release = latest(ws)
    if release is None:
        raise UserError("no release yet, so nothing to label; make one with: ragbench run")
    total = math.fsum(release.examples["weight"].to_pylist())
    rankings = _rankings(ws)
    corpus = read_corpus(ws.corpus) if ws.corpus.exists() else {}
    rows = []
    for row in release.examples.to_pylist():
        if row["expected_doc_ids"] or row["expected_answer"] or row["conflict"] or row["synthetic"]:
            continue
        ranked = rankings.get(row["example_id"], [])
        rows.append(
            {
                "example_id": row["example_id"],
                "query": row["query"],
                "history": row["history"],
                "category": row["category"],
                "share": row["weight"] / total if total else 0.0,
                "disagreement": _disagreement(ranked),
                "expected_doc_ids": None,
                "expected_answer": None,
                "candidates": _candidates(ranked, corpus),
            }
        )
    return _balanced(rows, n)


def _balanced(rows: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """Picks in turn from the categories, each in proportion to the root of its unlabelled traffic.

    The root lies between "as the traffic" (a large category takes all) and "all alike".
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda r: (-r["share"] * (1 + r["disagreement"]), r["example_id"])):
        groups.setdefault(row["category"] or "", []).append(row)
    size = {name: math.sqrt(math.fsum(row["share"] for row in group)) for name, group in groups.items()}
    taken = dict.fromkeys(groups, 0)
    queue: list[dict[str, Any]] = []
    while len(queue) < min(n, len(rows)):
        open_groups = [name for name in groups if taken[name] < len(groups[name])]
        name = min(open_groups, key=lambda g: (-size[g] / (taken[g] + 1), g))
        queue.append(groups[name][taken[name]])
        taken[name] += 1
    return queue


def _rankings(ws: Workspace) -> dict[str, list[_Ranking]]:
    """What each system retrieved for each example in the last night that has answers."""
    nights = sorted((ws.store / "nights").glob("????-??-??/*/responses.parquet"))
    found: dict[str, list[_Ranking]] = {}
    for path in (p for p in nights if p.parent.parent == nights[-1].parent.parent):
        columns = read_table(path, ["example_id", "contexts", "retrieved_ids"]).to_pydict()
        for example_id, contexts, ids in zip(
            columns["example_id"], columns["contexts"], columns["retrieved_ids"], strict=True
        ):
            texts = contexts if contexts and len(contexts) == len(ids or ()) else [None] * len(ids or ())
            ranking = [(i, text) for i, text in zip(ids or (), texts, strict=True) if i is not None]
            if ranking:
                found.setdefault(example_id, []).append(ranking)
    return found


def _disagreement(rankings: list[_Ranking]) -> float:
    """Mean Jaccard distance of the systems' first passages; 0 where fewer than two systems retrieved any."""
    sets = [{doc_id for doc_id, _ in ranking[:TOP]} for ranking in rankings]
    distances = [1 - len(a & b) / len(a | b) for a, b in combinations(sets, 2)]
    return math.fsum(distances) / len(distances) if distances else 0.0


def _candidates(rankings: list[_Ranking], corpus: dict[str, str]) -> list[dict[str, str]]:
    """The systems' passages in turn by rank, each id once."""
    found: dict[str, str] = {}
    for rank in zip_longest(*rankings):
        for passage in rank:
            if passage is not None and len(found) < CANDIDATES:
                doc_id, text = passage
                found.setdefault(doc_id, (text or corpus.get(doc_id, ""))[:_EXCERPT])
    return [{"doc_id": doc_id, "text": text} for doc_id, text in found.items()]


def returned_ids(ws: Workspace) -> set[str]:
    """Every passage id that a system returned in the last night that has answers, as stored."""
    return {doc_id for rankings in _rankings(ws).values() for ranking in rankings for doc_id, _ in ranking}


def write_queue(rows: list[dict[str, Any]], to: Path) -> None:
    """Write a queue as `.csv` (for a spreadsheet; no cell runs as a formula) or else as JSON Lines.

    Raises:
        UserError: the file cannot be written.
    """
    if to.suffix.lower() not in (".csv", ".jsonl"):
        raise UserError(f"{to.name}: a queue is written as .csv or .jsonl; name such a file")
    if to.suffix.lower() == ".jsonl":
        write_text(to, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return
    names = [f"candidate_{i}" for i in range(1, CANDIDATES + 1)]
    cells = []
    for row in rows:
        flat = {name: "" if row[name] is None else row[name] for name in _COLUMNS}
        flat["history"] = json.dumps(row["history"], ensure_ascii=False) if row["history"] else ""
        flat |= {name: f"{c['doc_id']}: {c['text']}" for name, c in zip(names, row["candidates"], strict=False)}
        cells.append(flat)
    write_text(to, to_csv(cells, [*_COLUMNS, *names]))
