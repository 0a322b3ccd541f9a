"""The labelling queue, the way back of what people filled in, and a machine's paraphrases."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path

import pytest

from ragbench_dagster.dataset.labelling import import_labels, label_queue, paraphrase, write_queue
from ragbench_dagster.dataset.labels import read_labels
from ragbench_dagster.dataset.release import cut_release
from ragbench_dagster.errors import UserError
from ragbench_dagster.records import RESPONSES
from ragbench_dagster.store import Workspace, rows_table, write_table
from tests.support.dataset_days import request, workspace, write_day, write_labels


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    ws = workspace(tmp_path)
    asks = [request(f"big question {name} please", weight=10 - i, category="big") for i, name in enumerate("abcdef")]
    asks += [request("small question", weight=2, category="small"), request("labelled one", weight=50, category="big")]
    asks += [request("and that?", follow_up=True), request("and that?", follow_up=True, history=["small question"])]
    write_day(ws, "2026-11-20", asks)
    write_labels(ws, [{"query": "labelled one", "expected_doc_ids": ["d0"]}])
    cut_release(ws, "2026-11-20")
    return ws


def answers(ws: Workspace, system: str, ids: dict[str, list[str]]) -> None:
    rows = [
        {"example_id": key, "status": "scored", "retrieved_ids": found, "contexts": [f"text of {i}" for i in found]}
        for key, found in sorted(ids.items())
    ]
    write_table(ws.night("2026-11-20", system) / "responses.parquet", rows_table(rows, RESPONSES))


def test_the_queue_holds_heavy_unlabelled_questions_of_every_category(ws: Workspace) -> None:
    rows = label_queue(ws, 5)
    assert [row["query"] for row in rows][:1] == ["big question a please"]
    assert {row["category"] for row in rows} >= {"big", "small"}
    assert "labelled one" not in {row["query"] for row in label_queue(ws, 100)}


def test_a_follow_up_is_offered_with_its_history_only(ws: Workspace) -> None:
    follow_ups = [row for row in label_queue(ws, 100) if row["query"] == "and that?"]
    assert [row["history"] for row in follow_ups] == [["small question"]]


def test_disagreement_moves_a_question_up_and_candidates_come_from_the_systems(ws: Workspace) -> None:
    by_query = {row["query"]: row["example_id"] for row in label_queue(ws, 100)}
    a, b = by_query["big question a please"], by_query["big question b please"]
    answers(ws, "one", {a: ["d1", "d2"], b: ["d1", "d2"]})
    answers(ws, "two", {a: ["d1", "d2"], b: ["d3", "d2"]})
    rows = {row["example_id"]: row for row in label_queue(ws, 100)}
    assert rows[a]["disagreement"] == 0
    assert rows[b]["disagreement"] == pytest.approx(2 / 3)  # by hand: 1 of 3 ids in common
    assert rows[b]["candidates"][0] == {"doc_id": "d1", "text": "text of d1"}
    assert [c["doc_id"] for c in rows[b]["candidates"]] == ["d1", "d3", "d2"]
    assert label_queue(ws, 1)[0]["example_id"] == b


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_round_trip_through_a_spreadsheet(ws: Workspace, tmp_path: Path, separator: str) -> None:
    path = tmp_path / "queue.csv"
    write_queue(label_queue(ws, 2), path)
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    rows[0]["expected_doc_ids"] = "d7|d8"
    rows[0]["query"] = rows[0]["query"].upper()  # what a spreadsheet or a person did to it
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(("\ufeff" + out.getvalue()).encode())
    found = import_labels(ws, path)
    assert (found["added"], found["empty"], found["not_in_release"]) == (1, 1, 0)
    assert found["questions_labelled_before"] == pytest.approx(1 / 9)
    assert found["questions_labelled_after"] == pytest.approx(2 / 9)
    assert found["traffic_labelled_after"] > found["traffic_labelled_before"]
    assert read_labels(ws.labels)[-1].expected_doc_ids == ("d7", "d8")
    assert import_labels(ws, path)["added"] == 0  # again: nothing new
    release = cut_release(ws, "2026-11-20")
    assert ["d7", "d8"] in release.examples["expected_doc_ids"].to_pylist()


def test_a_contradiction_is_refused_and_nothing_is_written(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "more.jsonl"
    rows = [
        {"query": "small question", "expected_doc_ids": ["d1"]},
        {"query": "Labelled one?", "expected_doc_ids": ["other"]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    before = ws.labels.read_bytes()
    with pytest.raises(UserError, match=r"more\.jsonl: row 2: .*labels\.jsonl row 1"):
        import_labels(ws, path)
    assert ws.labels.read_bytes() == before


def test_two_rows_of_one_file_that_contradict_each_other_are_refused(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "more.jsonl"
    rows = [{"query": "small question", "expected_doc_ids": [i]} for i in ("d1", "d2")]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(UserError, match=r"row 2: another label than row 1"):
        import_labels(ws, path)


def test_the_first_labels_make_the_file(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    path = tmp_path / "more.csv"
    path.write_text("query;expected_doc_ids\nq one;d1\n", encoding="utf-8")
    assert import_labels(ws, path) == {"added": 1, "unchanged": 0, "empty": 0}
    assert json.loads(ws.labels.read_text(encoding="utf-8")) == {"query": "q one", "expected_doc_ids": ["d1"]}


def test_a_queue_before_any_release_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no release yet"):
        label_queue(workspace(tmp_path), 5)


def test_paraphrases_are_marked_and_wrong_ones_thrown_away(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    asks = ["how do i pay 50 eur", "can i not cancel", "where is my invoice", "who pays the fee"]
    write_day(ws, "2026-11-20", asks)
    write_labels(ws, [{"query": ask, "expected_doc_ids": ["d"], "category": "c"} for ask in asks])
    cut_release(ws, "2026-11-20")
    replies = {
        asks[0]: "What is the way to pay 60 eur?",  # another number
        asks[1]: "Can I cancel?",  # the negation lost
        asks[2]: '"Where can I find my invoice?"',
        asks[3]: "Sure!\nWho has to pay the fee?",  # more than a question
    }

    async def ask(prompt: str) -> str:
        return next(reply for query, reply in replies.items() if query in prompt)

    assert asyncio.run(paraphrase(ws, 4, ask)) == {"asked": 4, "added": 1, "rejected": 3}
    added = read_labels(ws.labels)[-1]
    assert (added.query, added.synthetic, added.expected_doc_ids) == ("Where can I find my invoice?", True, ("d",))
    rows = {row["query"]: row for row in cut_release(ws, "2026-11-20").examples.to_pylist()}
    assert rows["Where can I find my invoice?"]["synthetic"] is True
    assert rows["where is my invoice"]["synthetic"] is False


IDS = [
    # what a person filled in, whether the corpus {d0, d1, 7, a b} or the last night's answers {n1} hold it
    (["d1"], True),
    (["d0", "d1"], True),
    ("d0|d1", True),
    ({"d1": 2}, True),
    ([{"doc_id": "d1", "grade": 1}], True),
    ([{"id": "d1"}], True),
    ([7], True),
    (["a b"], True),
    (["n1"], True),
    ([], True),
    (None, True),
    (["D1"], False),
    (["d1 "], False),
    (["d9"], False),
    (["d1", "d9"], False),
    ("d1;d9", False),
    ({"d9": 1}, False),
    ([{"doc_id": "d9", "grade": 0}], False),
    ([8], False),
    (["text of d1"], False),
]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("ids", "known"), IDS)
def test_an_id_that_no_corpus_and_no_system_has_is_refused_with_its_row(ws: Workspace, tmp_path, ids, known, force):
    ws.corpus.write_text(
        "".join(json.dumps({"doc_id": name, "text": "t"}) + "\n" for name in ("d0", "d1", 7, "a b")), encoding="utf-8"
    )
    queue = label_queue(ws, 2)
    answers(ws, "one", {queue[0]["example_id"]: ["n1"]})
    path = tmp_path / "queue.jsonl"
    rows = [{**queue[0], "expected_doc_ids": ["d0"]}, {**queue[1], "expected_doc_ids": ids}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    before = ws.labels.read_bytes()
    if known or force:
        assert import_labels(ws, path, force)["added"] == (2 if ids else 1)
        return
    with pytest.raises(UserError, match=r"^queue\.jsonl: row 2: no corpus and no system has the id '.*--force$"):
        import_labels(ws, path)
    assert ws.labels.read_bytes() == before  # the good row was not taken either


def test_without_a_corpus_nobody_can_tell_an_unknown_id(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "filled.jsonl"
    path.write_text(
        json.dumps({"query": "big question a", "expected_doc_ids": ["never seen"]}) + "\n", encoding="utf-8"
    )
    assert import_labels(ws, path)["added"] == 1


@pytest.mark.parametrize("name", ["query", "expected_doc_ids", "expected_answer", "category"])
def test_two_columns_of_one_name_are_told_and_none_is_taken(ws: Workspace, tmp_path: Path, name: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"query,expected_doc_ids,expected_answer,category,{name}\nq,d0,a,c,other\n", encoding="utf-8")
    with pytest.raises(UserError, match=f"labels.csv: row 1: two columns are called {name}; rename one"):
        read_labels(path)
