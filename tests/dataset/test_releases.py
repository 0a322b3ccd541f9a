"""Releases: a pure function of the window and the labels, frozen, verified, and the same however it was reached."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragbench_dagster.dataset.release import cut_release, list_releases, load_release, resolve
from ragbench_dagster.dataset.window import refresh_day
from ragbench_dagster.errors import UserError
from ragbench_dagster.records import EXAMPLES, FORMS
from tests.support.dataset_days import request, tree, workspace, write_day, write_labels

# 2026-11-16 and 2026-11-23 are Mondays.
ASK = ["How do I reset?", "how do i reset", "How do I rest the router?", "Where is my invoice?"]


@pytest.mark.parametrize(
    ("day", "first", "refresh", "expected"),
    [
        ("2026-11-23", "2026-11-01", "weekly", "2026-11-23"),
        ("2026-11-29", "2026-11-01", "weekly", "2026-11-23"),
        ("2026-11-29", "2026-11-01", "monday", "2026-11-23"),
        ("2026-11-29", "2026-11-01", "daily", "2026-11-29"),
        ("2026-11-25", "2026-11-25", "weekly", "2026-11-25"),  # a newcomer's first days
        ("2026-11-27", "2026-11-25", "weekly", "2026-11-27"),
        ("2026-11-29", "2026-11-25", "monday", "2026-11-29"),
        ("2026-11-26", "2026-11-23", "weekly", "2026-11-26"),  # whose first day is a Monday
        ("2026-12-01", "2026-11-23", "weekly", "2026-11-30"),
        ("2026-11-30", "2026-11-25", "weekly", "2026-11-30"),
        ("2026-11-20", "2026-11-25", "weekly", "2026-11-16"),  # before any data
        ("2026-01-01", "2025-12-01", "weekly", "2025-12-29"),
    ],
)
def test_refresh_days_are_mondays_and_every_day_of_the_first_week(
    day: str, first: str, refresh: str, expected: str
) -> None:
    assert refresh_day(day, first, refresh) == expected


@given(st.dates(dt.date(2020, 1, 1), dt.date(2030, 1, 1)), st.integers(0, 40), st.sampled_from(["weekly", "monday"]))
def test_a_release_ends_at_the_night_until_the_first_monday_after_the_first_day(first, later, refresh) -> None:
    day = first + dt.timedelta(later)
    mondays = [d for n in range(1, later + 1) if (d := first + dt.timedelta(n)).weekday() == 0]
    assert refresh_day(day.isoformat(), first.isoformat(), refresh) == max(mondays, default=day).isoformat()


@pytest.mark.parametrize("first", [f"2026-11-{day}" for day in range(16, 23)])  # a week of first days
def test_the_first_days_are_all_in_the_release_of_the_night(tmp_path: Path, first: str) -> None:
    """Three days of logs gave one example of three, and the gate asked for more days."""
    ws = workspace(tmp_path)
    days = [(dt.date.fromisoformat(first) + dt.timedelta(n)).isoformat() for n in range(10)]
    questions = ["How do I pay?", "Where is my invoice?", "Can I cancel?", "What is a seat?", "Who may log in?",
                 "When is it due?", "Why was it refused?", "Does it export?", "Is it safe?", "Are there limits?"]  # fmt: skip
    for number, day in enumerate(days):
        write_day(ws, day, [questions[number]])
        held = cut_release(ws, day).examples.num_rows
        mondays = [d for d in days[1 : number + 1] if dt.date.fromisoformat(d).weekday() == 0]
        assert held == (days.index(mondays[-1]) + 1 if mondays else number + 1)


def test_what_a_release_holds(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", [request(ASK[0], weight=2.0), ASK[2], request("who is <PERSON_1>")])
    write_day(
        ws,
        "2026-11-22",
        [
            request(ASK[1], weight=5.0, category="d"),
            "How do I rset?",
            request("removed", question=False),
            request("and then?", follow_up=True),
            request("and then?", follow_up=True, history=["How do I pay?"]),
            request("And then", follow_up=True, history=["How do I cancel?"]),
        ],
    )
    write_day(ws, "2026-11-24", ["too late for this window"])
    write_labels(
        ws, [{"query": "how do I RESET", "expected_doc_ids": ["d1"], "expected_answer": "Hold.", "category": "x"}]
    )
    release = cut_release(ws, "2026-11-23")
    assert release.examples.schema.equals(EXAMPLES)
    assert release.forms.schema.equals(FORMS)
    rows = {row["query"]: row for row in release.examples.to_pylist()}
    assert set(rows) == {"how do i reset", ASK[2], "and then?", "And then"}
    reset = rows["how do i reset"]  # the heaviest spelling of the labelled form
    assert reset["count"] == 3
    assert reset["weight"] == 8.0
    assert (reset["first_day"], reset["last_day"]) == (dt.date(2026, 11, 20), dt.date(2026, 11, 22))
    assert (reset["category"], reset["expected_doc_ids"], reset["expected_answer"]) == ("x", ["d1"], "Hold.")
    assert rows[ASK[2]]["expected_doc_ids"] is None
    assert rows["and then?"]["history"] == ["How do I pay?"]
    manifest = release.manifest
    assert (manifest["follow_ups"], manifest["follow_ups_without_history"], manifest["not_questions"]) == (3, 1, 2)
    assert manifest["examples"] == 4
    assert manifest["window"]["present"] == ["2026-11-20", "2026-11-22"]
    assert "2026-11-21" in manifest["window"]["missing"]
    assert manifest["duplicate_rate"] == pytest.approx(1 - 4 / 6)
    forms = dict(zip(release.forms["form"].to_pylist(), release.forms["example_id"].to_pylist(), strict=True))
    assert forms["how do i rset"] == forms["how do i reset"] == reset["example_id"]


def test_the_category_of_an_unlabelled_example_is_the_heaviest(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    asks = [request("q w", category="a"), request("q w", category="b", weight=1.5), request("q w", category=None)]
    write_day(ws, "2026-11-23", asks)
    assert cut_release(ws, "2026-11-23").examples["category"].to_pylist() == ["b"]


def test_cutting_again_changes_nothing(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ASK)
    first = cut_release(ws, "2026-11-24")
    before = tree(ws.store)
    assert cut_release(ws, "2026-11-24").id == cut_release(ws, "2026-11-26").id == first.id
    assert tree(ws.store) == before
    shutil.rmtree(ws.store / "releases")
    shutil.rmtree(ws.store / "cache")
    assert cut_release(ws, "2026-11-24").id == first.id
    assert tree(ws.store) == before


def test_a_changed_past_day_makes_a_new_release_only_if_the_content_changes(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ASK)
    first = cut_release(ws, "2026-11-23")
    write_day(ws, "2026-11-20", [request(ask, user_key="u") for ask in ASK])  # other bytes, the same questions
    assert cut_release(ws, "2026-11-23").id == first.id
    write_day(ws, "2026-11-20", [*ASK, "And something new?"])
    second = cut_release(ws, "2026-11-23")
    assert second.id != first.id
    assert {row["id"] for row in list_releases(ws)} == {first.id, second.id}  # the old one stays
    assert resolve(ws, "2026-11-25").id == second.id  # type: ignore[union-attr]
    assert load_release(ws, first.id).examples.equals(first.examples)


@pytest.mark.parametrize("damage", ["examples.parquet", "forms.parquet", "manifest.json"])
def test_a_changed_release_is_refused(tmp_path: Path, damage: str) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ASK)
    release = cut_release(ws, "2026-11-23")
    path = ws.release(release.id) / damage
    if damage == "manifest.json":
        path.write_text(path.read_text(encoding="utf-8").replace('"sha256": "', '"sha256": "0'), encoding="utf-8")
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match=release.id):
        load_release(ws, release.id)
    with pytest.raises(UserError, match=release.id):
        cut_release(ws, "2026-11-23")


def test_a_release_in_another_releases_folder_is_refused(tmp_path: Path) -> None:
    """Files and manifest may agree with each other and still not be what the name says."""
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ASK)
    first = cut_release(ws, "2026-11-23")
    write_day(ws, "2026-11-20", ASK[:1])
    second = cut_release(ws, "2026-11-23")
    shutil.rmtree(ws.release(first.id))
    shutil.copytree(ws.release(second.id), ws.release(first.id))
    with pytest.raises(UserError, match=first.id):
        load_release(ws, first.id)


@pytest.mark.parametrize("name", ["2026-11-23-none", "../x", "", "2026-11-23-../../etc"])
def test_no_such_release(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="no such release"):
        load_release(workspace(tmp_path), name)


def test_a_day_without_logs_is_served_by_the_current_release(tmp_path: Path) -> None:
    ws = workspace(tmp_path, window_days=5)
    write_day(ws, "2026-11-16", ASK)
    current = cut_release(ws, "2026-11-16")
    assert cut_release(ws, "2026-11-25").id == current.id  # the window of 2026-11-23 holds no day
    assert resolve(ws, "2026-11-25").id == current.id  # type: ignore[union-attr]


def test_no_data_at_all_is_one_line(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    assert resolve(ws, "2026-11-25") is None
    with pytest.raises(UserError, match="no scrubbed requests"):
        cut_release(ws, "2026-11-25")


def test_conflicting_labels_are_listed_and_left_out_of_the_gate(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ["How do I reset it?", "where is the invoice", "who is <PERSON_1>"])
    write_labels(
        ws,
        [
            {"query": "how do I reset it", "expected_doc_ids": ["a"]},
            {"query": "How do I reset it?", "expected_doc_ids": ["b"]},
            {"query": "who is <PERSON>", "expected_doc_ids": ["n1"]},
            {"query": "Who is <PERSON>?", "expected_doc_ids": ["n2"]},
        ],
    )
    release = cut_release(ws, "2026-11-20")
    rows = {row["query"]: row for row in release.examples.to_pylist()}
    assert set(rows) == {"How do I reset it?", "where is the invoice"}
    assert rows["How do I reset it?"]["conflict"] is True
    assert rows["How do I reset it?"]["expected_doc_ids"] is None
    assert rows["where is the invoice"]["conflict"] is False
    listed = {tuple(c["label_rows"]): c["example_id"] for c in release.manifest["conflicts"]}
    assert listed == {(1, 2): rows["How do I reset it?"]["example_id"], (3, 4): None}


def test_a_label_reaches_a_question_that_was_only_ever_mistyped(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ["how do i chnage my password"])
    write_labels(ws, [{"query": "How do I change my password?", "expected_doc_ids": {"a": 2}}])
    (row,) = cut_release(ws, "2026-11-20").examples.to_pylist()
    assert row["query"] == "how do i chnage my password"  # only what was asked
    assert (row["expected_doc_ids"], row["expected_grades"]) == (["a"], [2.0])


def test_a_label_nobody_asked_for_adds_no_example_but_a_paraphrase_does(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ["how do i pay"])
    write_labels(
        ws,
        [
            {"query": "never asked", "expected_doc_ids": ["a"]},
            {"query": "in which way do i pay", "expected_doc_ids": ["b"], "synthetic": True},
        ],
    )
    rows = {row["query"]: row for row in cut_release(ws, "2026-11-20").examples.to_pylist()}
    assert set(rows) == {"how do i pay", "in which way do i pay"}
    assert (rows["in which way do i pay"]["synthetic"], rows["in which way do i pay"]["weight"]) == (True, 0.0)


def test_personal_data_in_labels_is_scrubbed_as_in_the_traffic(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    write_day(ws, "2026-11-20", ["send the invoice to <EMAIL_ADDRESS_1> again"])
    label = {"query": "Send the invoice to a.tester@example.com again", "expected_answer": "Mail a.tester@example.com."}
    write_labels(ws, [label])
    release = cut_release(ws, "2026-11-20")
    assert release.examples["expected_answer"].to_pylist() == ["Mail <EMAIL_ADDRESS_1>."]
    assert all(b"a.tester" not in data for data in tree(ws.store).values())


QUERIES = st.sampled_from(
    ["how do i reset", "How do I reset?", "how do i rset", "hi, how do i reset", "how do i rest", "where is it",
     "thanks", "is 5 ok", "is 6 ok", "who is <PERSON_1>", "how do i reset my pasword", "how do i reset my password"]
)  # fmt: skip
DAYS = st.dictionaries(
    st.integers(0, 20),
    st.lists(st.tuples(QUERIES, st.sampled_from([1.0, 1.1, 3.7]), st.sampled_from(["a", "b", None])), max_size=6),
    min_size=1,
    max_size=5,
)


@given(DAYS, st.lists(st.integers(0, 20), max_size=5))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_refresh_of_the_new_days_gives_what_a_cut_from_scratch_gives(
    tmp_path_factory: pytest.TempPathFactory, days: dict[int, list], stops: list[int]
) -> None:
    """However the days came and wherever releases were cut on the way, the last release is the same, byte for byte."""

    def name(number: int) -> str:
        return (dt.date(2026, 11, 2) + dt.timedelta(days=number)).isoformat()

    def asks(rows: list) -> list:
        return [request(query, weight=weight, category=category) for query, weight, category in rows]

    grown = workspace(tmp_path_factory.mktemp("grown"), window_days=14, refresh="daily")
    scratch = workspace(tmp_path_factory.mktemp("scratch"), window_days=14, refresh="daily")
    last = max(days)
    for number in sorted(days):
        write_day(grown, name(number), asks(days[number]))
        write_day(scratch, name(number), asks(days[number]))
        if number in stops:
            cut_release(grown, name(number))
    one, other = cut_release(grown, name(last)), cut_release(scratch, name(last))
    assert one.id == other.id
    assert tree(grown.release(one.id)) == tree(scratch.release(other.id))
