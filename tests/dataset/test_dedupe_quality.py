"""What deduplication reaches on real questions, and how the nightly report measures it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench_dagster.dataset.dedupe import measure_dedupe, stage_dedupe
from ragbench_dagster.dataset.phrases import read_list
from ragbench_dagster.dataset.release import cut_release
from ragbench_dagster.settings import Dedupe
from tests.bench.bench_dedupe import pairs_merged, score
from tests.support.dataset_days import workspace, write_day, write_labels
from tests.support.planted import code_pairs, plant, real_questions, swapped_pairs


def test_the_report_counts_merges_and_keeps_texts_out_of_the_metadata(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    asks = ["how do i pay in london", "how do i pya in london", "How do I pay in London?", "is the free plan slow"]
    write_day(ws, "2026-11-20", asks)
    write_labels(ws, [{"query": asks[0], "expected_doc_ids": ["a"]}])
    release = cut_release(ws, "2026-11-20")
    found = measure_dedupe(ws, "2026-11-20")
    assert (found["requests"], found["examples"], found["forms"]) == (4, 2, 3)
    assert found["duplicate_rate"] == 0.5
    assert found["cluster_sizes"] == {1: 1, 2: 1}
    assert found["labelled_questions"] == 1
    assert (found["swapped_pairs"], found["swapped_pairs_merged"]) == (3, 0)
    assert "largest_merges" not in found
    report = json.loads((ws.night("2026-11-20") / "dedupe.json").read_text(encoding="utf-8"))
    assert report["release"] == release.id
    assert report["largest_merges"][0]["texts"] == ["how do i pay in london", "how do i pya in london"]
    assert "pay" not in json.dumps(found)


def test_planted_duplicates_of_real_questions(shared: Path) -> None:
    """The targets of deduplication; tests/bench prints the figures, beside the peers."""
    english = pytest.importorskip("english_words", reason="needs the bench extra").get_english_words_set
    words = english(["web2", "gcide"], lower=True)
    listed = (read_list("openings.txt"), read_list("closings.txt"))
    rows = plant(real_questions(shared), 100_000, listed, seed=5)
    done = stage_dedupe(({"id": i, "query": row.text} for i, row in enumerate(rows)), Dedupe())
    found = score(rows, [row["cluster"] for row in done], lambda word: word.replace("'", "") in words)
    recall = found["recall"]
    assert recall["exact"] == 1.0
    assert recall["surface"] == 1.0
    assert recall["typo"] >= 0.93
    assert recall["typo, no word, digit or space"] >= 0.98
    assert recall["polite"] >= 0.95
    assert found["real questions lost, %"] <= 0.2


def test_no_swapped_pair_merges_and_hardly_any_code() -> None:
    assert pairs_merged(swapped_pairs()) == 0
    assert pairs_merged(code_pairs()) <= 0.05 * len(code_pairs())
