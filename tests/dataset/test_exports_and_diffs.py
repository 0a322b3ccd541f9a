"""Releases in other formats, and what changed between two."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ragbench_dagster.dataset.diff import diff_releases
from ragbench_dagster.dataset.export import FORMATS, export_release
from ragbench_dagster.dataset.labels import read_labels
from ragbench_dagster.dataset.release import Release, cut_release
from ragbench_dagster.errors import UserError
from tests.support.dataset_days import request, tree, workspace, write_day, write_labels


@pytest.fixture
def release(tmp_path: Path) -> Release:
    ws = workspace(tmp_path)
    asks = ["How do I pay?", "=1+1 gives what", request("And then?", follow_up=True, history=["How do I pay?"])]
    write_day(ws, "2026-11-20", asks)
    write_labels(
        ws,
        [
            {
                "query": "how do i pay",
                "expected_doc_ids": {"a": 2, "b": 1},
                "expected_answer": "@card",
                "category": "p",
            },
            {"query": "=1+1 gives what", "expected_doc_ids": ["z"]},
        ],
    )
    return cut_release(ws, "2026-11-20")


def test_json_lines_have_the_fixed_fields(release: Release, tmp_path: Path) -> None:
    path = export_release(release, tmp_path / "out")
    rows = {row["query"]: row for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    assert rows["How do I pay?"] == {
        "query": "How do I pay?",
        "expected_doc_ids": {"a": 2.0, "b": 1.0},
        "expected_answer": "@card",
        "category": "p",
    }
    assert rows["And then?"]["history"] == ["How do I pay?"]


def test_exported_labels_read_back_as_they_were(release: Release, tmp_path: Path) -> None:
    for format in ("jsonl", "csv"):
        path = export_release(release, tmp_path / "out", format)
        labels = {label.query: label for label in read_labels(path)}
        assert labels["How do I pay?"].expected_doc_ids == ("a", "b")
        assert labels["How do I pay?"].expected_grades == (2.0, 1.0)
        assert labels["How do I pay?"].expected_answer == "@card"
        assert labels["=1+1 gives what"].expected_doc_ids == ("z",)
        assert labels["And then?"].history == ("How do I pay?",)


def test_no_cell_of_a_csv_runs_as_a_formula(release: Release, tmp_path: Path) -> None:
    text = export_release(release, tmp_path / "out", "csv").read_bytes().decode("utf-8-sig")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert "'=1+1 gives what" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_parquet_and_hugging_face_hold_all_columns(release: Release, tmp_path: Path) -> None:
    assert (
        pq.read_table(export_release(release, tmp_path / "p", "parquet")).column_names == release.examples.column_names
    )
    folder = export_release(release, tmp_path / "h", "hf")
    assert pq.read_table(folder / "data" / "test-00000-of-00001.parquet").num_rows == 3
    assert "path: data/test-*.parquet" in (folder / "README.md").read_text(encoding="utf-8")


def test_ragas_and_llama_index_field_names(release: Release, tmp_path: Path) -> None:
    lines = export_release(release, tmp_path, "ragas").read_text(encoding="utf-8").splitlines()
    assert {tuple(json.loads(line)) for line in lines} == {("user_input", "reference", "reference_context_ids")}
    whole = json.loads(export_release(release, tmp_path, "llama_index").read_text(encoding="utf-8"))
    pay = next(row for row in whole["examples"] if row["query"] == "How do I pay?")
    assert pay["reference_contexts"] == ["a", "b"]
    assert pay["reference_answer"] == "@card"


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_release_gives_the_same_bytes(release: Release, tmp_path: Path, format: str) -> None:
    export_release(release, tmp_path / "a", format)
    export_release(release, tmp_path / "b", format)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_an_unknown_format_is_named(release: Release, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="xml: no such export format"):
        export_release(release, tmp_path, "xml")


def test_a_diff_names_what_changed(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(
        ws, "2026-11-20", [request("stays here", weight=3), request("gets heavy"), request("goes away", category="d")]
    )
    a = cut_release(ws, "2026-11-20")
    asks = [request("stays here", weight=3), request("gets heavy", weight=9), request("comes new", category="e")]
    write_day(ws, "2026-11-20", asks)
    write_labels(ws, [{"query": "stays here", "expected_doc_ids": ["x"]}])
    found = diff_releases(a, cut_release(ws, "2026-11-20"))
    names = {kind: [row["query"] for row in found[kind]] for kind in ("added", "removed", "relabelled", "reweighted")}
    assert names["added"] == ["comes new"]
    assert names["removed"] == ["goes away"]
    assert names["relabelled"] == ["stays here"]
    assert found["relabelled"][0]["fields"] == ["expected_doc_ids"]
    assert "gets heavy" in names["reweighted"]
    # by hand: d had 1 of 5, and is gone; e has 1 of 13
    assert found["categories"]["d"] == {"a": pytest.approx(1 / 5), "b": 0.0, "change": pytest.approx(-1 / 5)}
    assert found["categories"]["e"]["b"] == pytest.approx(1 / 13)
    assert diff_releases(a, a)["added"] == []
