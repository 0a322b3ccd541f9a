"""The embedding step: it finds questions in other words, and its guards part what only looks alike."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ragbench_dagster.dataset import semantic
from ragbench_dagster.dataset.canonical import normalise
from ragbench_dagster.dataset.dedupe import stage_dedupe
from ragbench_dagster.dataset.release import cut_release
from ragbench_dagster.dataset.semantic import may_mean_the_same, same_facts
from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Dedupe
from tests.support.dataset_days import workspace, write_day
from tests.support.planted import swapped_pairs

ON = Dedupe(semantic=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("convert a sheet from csv to xlsx", "convert a sheet from xlsx to csv"),
        ("how do i switch on read receipts", "how do i switch off read receipts"),
        ("limits of 2023", "limits of 2024"),
        ("can i pay with a card", "can i not pay with a card"),
        ("how do i import users", "export of users how"),
        ("is the us region slower", "is the uk region slower"),
        ("deploy to staging", "deploy to production"),
        ("what does --max-age do", "what is --max-size for"),
        ("is c++ supported", "does it support c#"),
    ],
)
def test_guards_part_what_an_embedding_cannot(one: str, other: str) -> None:
    assert not may_mean_the_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("how can i protect my child from infection", "what can i do to protect my child from infection"),
        ("where is my new card", "my new card where is it"),
        ("what is the fee for 50 eur", "for 50 eur what is the fee"),
    ],
)
def test_other_words_for_the_same_pass_the_guards(one: str, other: str) -> None:
    assert may_mean_the_same(one, other)


def test_facts_of_a_paraphrase() -> None:
    assert same_facts("how do i pay 50 eur", "in which way can i pay 50 eur")
    assert not same_facts("how do i pay 50 eur", "how do i pay 50 usd")
    assert not same_facts("can <person> see it", "can i see it")


def _recall_at(precision: float, score: np.ndarray, duplicate: np.ndarray) -> float:
    """Largest recall at a threshold whose precision is at least `precision`; a score of 0 is never a merge."""
    best = 0.0
    for threshold in np.unique(score[score > 0]):
        taken = score >= threshold
        if duplicate[taken].mean() >= precision:
            best = max(best, float(duplicate[taken].sum() / duplicate.sum()))
    return best


def test_recall_on_labelled_pairs_is_above_that_of_shared_words(shared: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the semantic extra")
    path = shared / "data" / "pairs_covid_faq" / "rows.jsonl"
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]
    duplicate = np.array([row["duplicate"] for row in rows])
    one = semantic.embed([row["a"] for row in rows]).astype(np.float32)
    other = semantic.embed([row["b"] for row in rows]).astype(np.float32)
    passed = np.array([may_mean_the_same(normalise(row["a"]), normalise(row["b"])) for row in rows])
    ours = np.where(passed, (one * other).sum(axis=1), 0.0)

    def jaccard(row: dict[str, str]) -> float:
        a, b = (set(re.findall(r"\w+", row[name].lower())) for name in ("a", "b"))
        return len(a & b) / len(a | b)

    shared_words = np.array([jaccard(row) for row in rows])
    assert _recall_at(0.98, ours, duplicate) > _recall_at(0.98, shared_words, duplicate)
    # At the default threshold the labelled pairs that merge are all duplicates.
    assert duplicate[ours >= Dedupe().semantic_threshold].all()
    assert (ours >= Dedupe().semantic_threshold).sum() >= 10


def test_hardly_any_swapped_pair_merges() -> None:
    pytest.importorskip("onnxruntime", reason="needs the semantic extra")
    pairs = swapped_pairs(300)
    texts = sorted({text for pair in pairs for text in pair})
    at = {text: i for i, text in enumerate(texts)}
    near = set(semantic.semantic_pairs(texts, [normalise(text) for text in texts], 0.7))
    merged = sum(tuple(sorted((at[a], at[b]))) in near for a, b in pairs)
    assert merged <= 0.06 * len(pairs)


def test_a_paraphrase_joins_and_the_manifest_names_model_and_threshold(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the semantic extra")
    ws = workspace(tmp_path, dedupe={"semantic": True})
    write_day(ws, "2026-11-20", ["How can I help protect myself?", "What can I do to protect myself?", "Who pays?"])
    release = cut_release(ws, "2026-11-20")
    assert release.examples.num_rows == 2
    assert release.manifest["dedupe"]["model_sha256"] == semantic.MODEL_SHA256
    assert release.manifest["dedupe"]["threshold"] == Dedupe().semantic_threshold
    assert release.manifest["joined"]["semantic"] == 1


def test_cached_embeddings_equal_fresh_ones_whatever_stands_beside_them(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the semantic extra")
    texts = ["where is my card", "a much longer question about something else entirely, is it not?", "x"]
    cache = tmp_path / "embeddings.parquet"
    fresh = semantic.embed(texts)
    assert np.array_equal(semantic.embed(texts[:1], cache)[0], fresh[0])
    assert np.array_equal(semantic.embed(texts, cache), fresh)
    assert np.array_equal(semantic.embed(texts[::-1], cache), fresh[::-1])
    assert fresh.shape == (3, semantic.WIDTH)
    assert np.allclose(np.linalg.norm(fresh.astype(np.float64), axis=1), 1, atol=1e-3)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    semantic._model.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match=r"ragbench-dagster\[semantic\]"):
        list(stage_dedupe([{"id": 1, "query": "a b"}, {"id": 2, "query": "c d"}], ON))


def test_another_model_than_the_pinned_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="needs the semantic extra")
    semantic._model.cache_clear()
    monkeypatch.setattr(semantic, "MODEL_SHA256", "0" * 64)
    with pytest.raises(UserError, match="pinned"):
        semantic.embed(["a"])
