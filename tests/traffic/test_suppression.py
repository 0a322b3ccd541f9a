"""Whose requests stay out: by user, request, talk and text, in plain logs and in traces; nobody else is touched."""

import json

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.ingest import sample_days
from ragbench_dagster.traffic.scan import scan_logs
from ragbench_dagster.traffic.suppression import bare, list_file, read_suppression, suppress, text_mark

DAY = "2026-11-20"


def line(n: int, **more) -> dict:
    return {"timestamp": f"{DAY}T10:00:{n:02}Z", "request_id": f"r{n}", "query": f"question number {n}", **more}


ROWS = [
    line(0, user_id="ann"), line(1, user_id="ann", conversation_id="c"), line(2, conversation_id="c"),
    line(3, user_id="bob", conversation_id="c"), line(4, user_id="bob", conversation_id="c", history=["question number 1"]),
    line(5, user_id="bob"), line(6, query="My name is Ann!"),
]  # fmt: skip


@pytest.fixture
def ws(tmp_path) -> Workspace:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    (tmp_path / "ragbench.yaml").write_text("traffic: {sample: {rate: 1.0}}\nscrub: {ner: 'off'}\n")
    return Workspace.open(tmp_path)


def lines_read(ws: Workspace) -> list[int]:
    return sorted(scan_logs(ws).resolved.requests["line"].tolist())


@pytest.mark.parametrize(
    ("marks", "gone"),
    [
        ([], []),
        ([("user", "ann")], [1, 2]),
        ([("user", "ann"), ("conversation", "c")], [1, 2, 3]),
        ([("request", "r5")], [6]),
        ([("request", "r1"), ("talk", "c")], [2, 5]),
        ([("user", "r5"), ("request", "ann"), ("conversation", "ann")], []),
    ],
)
def test_a_forgotten_request_is_none_as_if_it_had_never_been_logged(ws, marks, gone):
    suppress(ws, [(kind, ws.keyed(value)) for kind, value in marks])
    assert lines_read(ws) == [n for n in range(1, 8) if n not in gone]
    assert sample_days(ws, [DAY])[DAY].read == 7 - len(gone)


@pytest.mark.parametrize("text", ["my name is ANN", "question number 1"])
def test_a_text_goes_whoever_said_it_in_a_question_or_a_history(ws, text):
    suppress(ws, [text_mark(ws, text)])
    assert lines_read(ws) == ([1, 2, 3, 4, 5, 6] if "ANN" in text else [1, 3, 4, 6, 7])


def test_an_empty_list_changes_no_fingerprint_and_a_list_only_the_days_it_touches(ws):
    other = line(8, user_id="bob") | {"timestamp": "2026-11-21T10:00:00Z"}
    with open(ws.root / "logs" / "a.jsonl", "a") as file:
        file.write(json.dumps(other) + "\n")
    before = scan_logs(ws)
    suppress(ws, [("user", ws.keyed("ann"))])
    after = scan_logs(ws)
    assert after.fingerprint("2026-11-21") == before.fingerprint("2026-11-21")
    assert after.fingerprint(DAY) != before.fingerprint(DAY)


def test_the_list_holds_no_id_and_a_damaged_one_stops_the_reading(ws):
    assert suppress(ws, [("user", ws.keyed("ann")), ("user", ws.keyed("ann"))]) == 1
    assert "ann" not in list_file(ws).read_text()
    assert len(read_suppression(ws).marks) == 1
    list_file(ws).write_text("{\n")
    with pytest.raises(UserError, match="restore it"):
        scan_logs(ws)


def test_one_span_of_a_person_takes_its_trace_along(tmp_path):
    spans = [
        {"context": {"trace_id": t, "span_id": f"{t}-{n}"}, "parent_id": None if n == 0 else f"{t}-0", "name": "x",
         "start_time": f"{DAY}T10:00:0{n}Z", "end_time": f"{DAY}T10:00:0{n}Z",
         "attributes": {"openinference.span.kind": "CHAIN", "input.value": f"what is {t}", "output.value": "this",
                        **({"user.id": "ann"} if (t, n) == ("one", 1) else {})}}
        for t in ("one", "two") for n in (0, 1)
    ]  # fmt: skip
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text("".join(json.dumps(s) + "\n" for s in spans))
    (tmp_path / "ragbench.yaml").write_text("traffic: {format: openinference}\n")
    ws = Workspace.open(tmp_path)
    assert len(lines_read(ws)) == 2
    suppress(ws, [("user", ws.keyed("ann"))])
    assert lines_read(ws) == [3]


def test_a_placeholders_number_case_and_punctuation_do_not_hide_a_text():
    assert bare("My name is <PERSON_1>, hello!") == bare("my name is <PERSON_7> HELLO")
    assert bare("a b") != bare("a c")
