"""Logged answers: the latest of the example's cluster, on the night or in the days before."""

from pathlib import Path

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.answers import answer_release
from ragbench_dagster.evaluation.systems import configured_systems, default_systems, system_settings
from tests.support.small_nights import answers, log, release, workspace

LOGGED = "systems: {logged: {kind: logged}}"


def test_the_latest_answer_of_the_cluster_wins_and_latency_is_the_logged_one(tmp_path: Path) -> None:
    ws = workspace(tmp_path, LOGGED)
    small = release("How do I cancel a seat?", "never asked", more={"How do I cancel a seat?": ["cancel a saet"]})
    node = {"node_id": "n1", "score": 0.5, "text": "t"}
    log(ws, "2026-11-18", {"query": "How do I cancel a seat?", "response": "old"})
    log(
        ws,
        "2026-11-20",
        {"query": "how do i cancel a seat", "response": "first", "hour": 9},
        {"query": "cancel a saet", "response": "latest", "hour": 12, "latency_ms": 321.0, "source_nodes": [node]},
        {"query": "HOW do I cancel a seat??", "response": "morning", "hour": 3},
    )
    run = answer_release(ws, "2026-11-20", "logged", small)
    found = answers(run.responses, small)
    assert found["How do I cancel a seat?"]["response"] == "latest"
    assert found["How do I cancel a seat?"]["retrieved_ids"] == ["n1"]
    assert found["How do I cancel a seat?"]["contexts"] == ["t"]
    assert found["never asked"]["status"] == "not_applicable"
    assert found["never asked"]["answer_hash"] is None
    assert sorted(run.timings["latency_ms"].to_pylist(), key=str) == [321.0, None]
    assert run.calls == 0


def test_a_logged_answer_without_a_latency_has_none(tmp_path: Path) -> None:
    """It was looked up in microseconds: that is not the time a user waited."""
    ws = workspace(tmp_path, LOGGED)
    log(ws, "2026-11-20", {"query": "a question", "response": "said"})
    run = answer_release(ws, "2026-11-20", "logged", release("a question"))
    assert run.timings["latency_ms"].to_pylist() == [None]


@pytest.mark.parametrize(("age", "counts"), [(0, True), (6, True), (7, False), (-1, False)])
def test_answers_of_the_six_days_before_count_and_no_others(age: int, counts: bool, tmp_path: Path) -> None:
    ws = workspace(tmp_path, LOGGED)
    small = release("a question")
    log(ws, f"2026-11-{20 - age:02d}", {"query": "a question", "response": "said"})
    (row,) = answer_release(ws, "2026-11-20", "logged", small).responses.to_pylist()
    assert (row["status"] == "scored") is counts


def test_how_old_an_answer_may_be_is_a_setting(tmp_path: Path) -> None:
    ws = workspace(tmp_path, "systems: {logged: {kind: logged, max_age_days: 0}}")
    log(ws, "2026-11-19", {"query": "a question", "response": "said"})
    (row,) = answer_release(ws, "2026-11-20", "logged", release("a question")).responses.to_pylist()
    assert row["status"] == "not_applicable"


def test_an_answer_is_preferred_to_a_later_line_with_passages_alone(tmp_path: Path) -> None:
    ws = workspace(tmp_path, LOGGED)
    node = {"node_id": "n1", "score": None, "text": None}
    log(
        ws,
        "2026-11-20",
        {"query": "both", "response": "said", "hour": 1},
        {"query": "both", "source_nodes": [node], "hour": 2},
        {"query": "passages", "source_nodes": [node]},
        {"query": "neither"},
    )
    small = release("both", "passages", "neither")
    found = answers(answer_release(ws, "2026-11-20", "logged", small).responses, small)
    assert found["both"]["response"] == "said"
    assert (found["passages"]["status"], found["passages"]["retrieved_ids"]) == ("scored", ["n1"])
    assert found["neither"]["status"] == "not_applicable"


def test_a_follow_up_without_its_history_answers_nobodys_question(tmp_path: Path) -> None:
    ws = workspace(tmp_path, LOGGED)
    log(ws, "2026-11-20", {"query": "and now?", "response": "of another talk", "follow_up": True})
    (row,) = answer_release(ws, "2026-11-20", "logged", release("and now?")).responses.to_pylist()
    assert row["status"] == "not_applicable"


def test_new_lines_of_a_day_in_reach_are_seen_and_others_change_nothing(tmp_path: Path) -> None:
    ws = workspace(tmp_path, LOGGED)
    small = release("a question")
    log(ws, "2026-11-19", {"query": "a question", "response": "one"})
    answer_release(ws, "2026-11-20", "logged", small)
    path = ws.night("2026-11-20", "logged") / "responses.parquet"
    before = path.read_bytes()
    log(ws, "2026-11-01", {"query": "a question", "response": "far away"})
    answer_release(ws, "2026-11-20", "logged", small)
    assert path.read_bytes() == before
    log(ws, "2026-11-20", {"query": "a question", "response": "two"})
    (row,) = answer_release(ws, "2026-11-20", "logged", small).responses.to_pylist()
    assert row["response"] == "two"


def test_an_empty_settings_file_has_the_systems_that_can_answer(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    assert default_systems(ws, has_logged_answers=False) == {}
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "text": "b"}\n', encoding="utf-8")
    assert sorted(default_systems(ws, has_logged_answers=True)) == ["bm25", "logged"]
    assert system_settings(ws, "bm25").params == {"top_k": 10}
    named = workspace(tmp_path, LOGGED)
    assert list(default_systems(named, has_logged_answers=False)) == ["logged"]
    with pytest.raises(UserError, match=r"systems\.bm25: no such system; ragbench\.yaml has logged"):
        system_settings(named, "bm25")


@pytest.mark.parametrize(
    ("line", "systems"),
    [
        ('{"timestamp": "2026-11-20T09:00:00Z", "query": "q", "response": "a"}', ["logged"]),
        ('{"timestamp": "2026-11-20T09:00:00Z", "query": "q", "source_nodes": ["n1"]}', ["logged"]),
        ('{"timestamp": "2026-11-20T09:00:00Z", "query": "q"}', []),
    ],
)
def test_logged_is_a_system_where_the_logs_hold_answers(line: str, systems: list[str], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "2026-11-20.jsonl").write_text(line + "\nbroken\n", encoding="utf-8")
    assert list(configured_systems(workspace(tmp_path))) == systems
