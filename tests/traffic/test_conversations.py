"""Follow-ups that were logged without the turns before them get these from the log, where it knows them."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragbench_dagster.dataset.canonical import form_of
from ragbench_dagster.traffic.conversations import TURNS, with_turns
from ragbench_dagster.traffic.ingest import sample_days, scrub_days
from ragbench_dagster.traffic.requests import LogRequest
from ragbench_dagster.traffic.scan import scan_logs

DAY, NEXT = "2026-11-20", "2026-11-21"
ALL = "traffic: {sample: {rate: 1.0}}"


def turn(n: int, day: str = DAY, **more: Any) -> dict[str, Any]:
    base = {"timestamp": f"{day}T09:{n:02}:00Z", "request_id": f"{day}-{n}", "query": f"q{n}?", "response": f"a{n}."}
    return {**base, "conversation_id": "c", **more}


def said(*numbers: int) -> list[str]:
    return [text for n in numbers for text in (f"user: q{n}?", f"assistant: a{n}.")]


def scrubbed(ws, scrubber) -> dict[str, dict[str, Any]]:
    index = scan_logs(ws)
    sample_days(ws, index.days)
    scrub_days(ws, index.days, scrubber=scrubber)
    files = [ws.traffic(day) / "scrubbed.parquet" for day in index.days]
    return {row["query"]: row for file in files for row in pq.read_table(file).to_pylist()}


LATE = [turn(n) for n in (1, 2)] + [turn(3, NEXT)]
# rows of a log -> history of some questions
LOGS: dict[str, tuple[list[dict[str, Any]], dict[str, list[str]]]] = {
    "one after another": ([turn(1), turn(2), turn(3)], {"q1?": [], "q2?": said(1), "q3?": said(1, 2)}),
    "in any order of lines": ([turn(3), turn(1), turn(2)], {"q1?": [], "q2?": said(1), "q3?": said(1, 2)}),
    "across midnight": (LATE, {"q3?": said(1, 2)}),
    "of one time, in the order of lines": (
        [turn(n, timestamp=DAY) for n in (1, 2, 3)], {"q1?": [], "q2?": said(1), "q3?": said(1, 2)}),
    "a turn without an answer": ([turn(1, response=None), turn(2)], {"q2?": ["user: q1?"]}),
    "a turn with a blank answer": ([turn(1, response="  "), turn(2)], {"q2?": ["user: q1?"]}),
    "without a conversation": ([turn(1, conversation_id=None), turn(2, conversation_id="")], {"q1?": [], "q2?": []}),
    "two conversations": (
        [turn(1), turn(2, conversation_id="d"), turn(3), turn(4, conversation_id="d")],
        {"q3?": said(1), "q4?": said(2)}),
    "its own history stays": ([turn(1), turn(2, history=["before"])], {"q2?": ["before"]}),
    "a history that holds what lay before": (
        [turn(1), turn(2, history=["before"]), turn(3)], {"q3?": ["before", *said(2)]}),
    "messages as a history": (
        [turn(1), turn(2, history=[{"role": "user", "content": "before"}]), turn(3)], {"q3?": ["user: before", *said(2)]}),
    "another user's turn": ([turn(1, user_id="u"), turn(2, user_id="v")], {"q2?": []}),
    "another user's turn in between": (
        [turn(1, user_id="u"), turn(2, user_id="v"), turn(3, user_id="v")], {"q3?": said(2)}),
    "a user who is not always known": ([turn(1), turn(2, user_id="v")], {"q2?": said(1)}),
    "the same question again": ([turn(1), turn(2, query="q1?", request_id="again"), turn(3)], {"q3?": [*said(1), "user: q1?", "assistant: a2."]}),
    "a line delivered twice": ([turn(1), turn(1), turn(2)], {"q2?": said(1)}),
    "a bad line in between": ([turn(1), turn(2, query=7), turn(3)], {"q3?": said(1)}),
    "more turns than are kept": ([turn(n) for n in range(15)], {"q14?": said(*range(14 - TURNS, 14))}),
}  # fmt: skip


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("kind", LOGS)
def test_the_turns_before_a_follow_up(workspace, fake_scrubber, kind, files) -> None:
    rows, expected = LOGS[kind]
    if files > 1 and kind == "of one time, in the order of lines":
        files = 1
    ws = workspace({f"{n}.jsonl": rows[n::files] for n in range(files)}, ALL)
    found = scrubbed(ws, fake_scrubber)
    for query, history in expected.items():
        assert found[query]["history"] == history, query


def test_turns_are_scrubbed_with_the_follow_up(workspace, fake_scrubber) -> None:
    ws = workspace({"a.jsonl": [turn(1, query="my secret-1?", response="secret-1 it is"), turn(2)]}, ALL)
    assert scrubbed(ws, fake_scrubber)["q2?"]["history"] == ["user: my <SECRET>?", "assistant: <SECRET> it is"]


def test_turns_that_are_not_in_the_sample_are_read_all_the_same(workspace, fake_scrubber) -> None:
    rows = [
        turn(n, conversation_id=f"c{n // 2}", request_id=f"r{n}", timestamp=f"{DAY}T09:00:{n:02}Z") for n in range(60)
    ]
    ws = workspace({"a.jsonl": rows}, "traffic: {sample: {rate: 0.2, min_per_category: 0}}")
    found = scrubbed(ws, fake_scrubber)
    assert len(found) == 12
    for query, row in found.items():
        n = int(query[1:-1])
        assert row["history"] == (said(n - 1) if n % 2 else [])


def test_turns_before_the_first_day_are_read_too(workspace, fake_scrubber) -> None:
    ws = workspace({"a.jsonl": LATE}, f"traffic: {{start: {NEXT}, sample: {{rate: 1.0}}}}")
    found = scrubbed(ws, fake_scrubber)
    assert {query: row["history"] for query, row in found.items()} == {"q3?": said(1, 2)}


def test_a_changed_turn_of_another_day_runs_the_follow_ups_day_again(workspace, fake_scrubber) -> None:
    ws = workspace(
        {"a.jsonl": LATE[:2], "b.jsonl": LATE[2:], "c.jsonl": [turn(9, "2026-11-22", conversation_id="e")]}, ALL
    )
    scrubbed(ws, fake_scrubber)
    before = {day: scan_logs(ws).fingerprint(day) for day in (DAY, NEXT, "2026-11-22")}
    ws = workspace({"a.jsonl": [LATE[0], turn(2, response="another answer")]}, ALL)
    after = {day: scan_logs(ws).fingerprint(day) for day in before}
    assert [day for day in before if before[day] != after[day]] == [DAY, NEXT]
    assert scrubbed(ws, fake_scrubber)["q3?"]["history"] == [*said(1), "user: q2?", "assistant: another answer"]


@pytest.mark.parametrize("form", ["langfuse", "openinference"])
def test_traces_of_one_session_are_a_conversation(workspace, fake_scrubber, form) -> None:
    rows = []
    for n in (1, 2):
        time = f"{DAY}T09:0{n}:00Z"
        if form == "langfuse":
            rows.append({"id": f"t{n}", "timestamp": time, "session_id": "s", "input": f"q{n}?", "output": f"a{n}."})
        else:
            attributes = {
                "openinference.span.kind": "CHAIN",
                "input.value": f"q{n}?",
                "output.value": f"a{n}.",
                "session.id": "s",
            }
            rows.append(
                {"context": {"trace_id": f"t{n}", "span_id": f"s{n}"}, "start_time": time, "attributes": attributes}
            )
    ws = workspace({"a.jsonl": rows}, f"traffic: {{format: {form}, sample: {{rate: 1.0}}}}")
    assert scrubbed(ws, fake_scrubber)["q2?"]["history"] == said(1)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=25), st.randoms())
def test_any_order_of_reading_gives_the_turns_in_the_order_of_time(rows, random) -> None:
    """`with_turns` waits for turns that come later and lets go of what nobody waits for."""
    made = [
        LogRequest(n, 0, b"d", n, False, f"r{n}", f"q{n}?", f"a{n}.", history=("own",) if own else ())
        for n, (_, own) in enumerate(rows)
    ]
    talks = [talk for talk, _ in rows]
    before, expected = {}, {}
    for n, (talk, own) in enumerate(rows):
        earlier = [m for m in range(n) if talks[m] == talk]
        if own or not earlier:
            continue
        last = max((m for m in earlier if rows[m][1]), default=earlier[0])
        before[n] = [m for m in earlier if m >= last][-TURNS:]
        expected[n] = (["own"] if rows[before[n][0]][1] else []) + said(*before[n])
    placed = list(enumerate(made))
    random.shuffle(placed)
    found = dict(with_turns(iter(placed), len(made), before))
    assert sorted(found) == list(range(len(made)))
    for n, request in found.items():
        assert list(request.history) == expected.get(n, list(made[n].history))
    wanted = len(made) // 2
    assert sorted(
        at for at, _ in with_turns(iter(placed), wanted, {k: v for k, v in before.items() if k < wanted})
    ) == list(range(wanted))


def test_texts_and_messages_of_one_conversation_have_one_form() -> None:
    texts, messages = ["How do I pay?", "By card."], ["user: How do I pay?", "assistant: By card."]
    assert form_of("And by cheque?", texts) == form_of("And by cheque?", messages)
    assert form_of("And by cheque?", texts) != form_of("And by cheque?", [*texts, "So?"])
    assert form_of("user: root", []) != form_of("root", [])  # a question is taken as it stands


def test_many_conversations_of_one_time_are_found(workspace, fake_scrubber) -> None:
    rows = [turn(n, conversation_id=f"c{n % 7}", timestamp=DAY, request_id=f"r{n}") for n in range(50)]
    found = scrubbed(workspace({"a.jsonl": rows}, ALL), fake_scrubber)
    for query, row in found.items():
        n = int(query[1:-1])
        assert row["history"] == said(*range(n % 7, n, 7))[-2 * TURNS :]
    assert np.mean([row["follow_up"] for row in found.values()]) == 43 / 50
