"""Over all files: re-deliveries, follow-ups, and to which day a bad line belongs."""

import random

import numpy as np

from ragbench_dagster.traffic.scan import scan_logs

GOOD = {"timestamp": "2026-11-20T09:00:00Z", "query": "How?"}


def at(time: str, id_: str | None = None, **more) -> dict:
    return {"timestamp": time, "query": f"q {id_}", "request_id": id_, **more}


def rows(ws, flag: str) -> list[tuple[str, int]]:
    """(file, line) of each row that carries the flag."""
    found = scan_logs(ws).resolved
    return [(found.files[r["file"]].name, int(r["line"])) for r in found.requests if r[flag]]


def bad_days(ws) -> dict[str, int]:
    index = scan_logs(ws)
    days, counts = np.unique(index.resolved.bad["day"], return_counts=True)
    by_number = {int(d): int(c) for d, c in zip(days, counts, strict=True)}
    return {day: by_number[n] for day, n in zip(index.days, index.resolved.days, strict=True) if n in by_number}


def test_an_id_counts_once_across_files_and_days(workspace):
    x = at("2026-11-20T09:00:00Z", "x")
    ws = workspace(
        {
            "b.jsonl": [x, at("2026-11-21T09:00:00Z", "y"), x],
            "a.jsonl": [x, at("2026-11-22T09:00:00Z", "y")],
        }
    )  # fmt: skip
    assert rows(ws, "again") == [("a.jsonl", 2), ("b.jsonl", 1), ("b.jsonl", 3)]
    assert rows(ws, "reused") == []


def test_number_and_text_are_one_id_and_leading_zeros_another(workspace):
    ws = workspace({"a.jsonl": [at("2026-11-20T09:00:00Z", i) for i in (1000, "1000", "01000", "1e3")]})
    assert rows(ws, "again") == [("a.jsonl", 2)]


def test_an_id_with_another_question_is_told(workspace):
    ws = workspace({"a.jsonl": [GOOD | {"request_id": 1}, GOOD | {"request_id": 1, "query": "Why?"}]})
    assert rows(ws, "again") == rows(ws, "reused") == [("a.jsonl", 2)]


def test_lines_without_ids_are_requests_of_their_own_and_a_copied_file_is_not(workspace):
    ws = workspace({"a.jsonl": [GOOD, GOOD], "b.jsonl": [GOOD]})
    assert rows(ws, "again") == [("b.jsonl", 1)]


def test_follow_ups_by_time_then_file_order_across_midnight(workspace):
    ws = workspace(
        {
            "2026-11-21.jsonl": [
                at("2026-11-21T00:01:00Z", "late", conversation_id="c"),
                at("2026-11-21T00:00:30Z", "own", conversation_id="d"),
            ],
            "2026-11-20.jsonl": [
                at("2026-11-20T23:59:00Z", "second", conversation_id="c"),
                at("2026-11-20T23:58:00Z", "first", conversation_id="c"),
                at("2026-11-20T10:00:00Z", "tie 1", conversation_id="e"),
                at("2026-11-20T10:00:00Z", "tie 2", conversation_id="e"),
                at("2026-11-20T10:00:00Z", "tie 1", conversation_id="e"),
                at("2026-11-20T10:00:00Z", "alone"),
                at("2026-11-20T10:00:00Z", "alone too"),
                at("2026-11-20T10:00:00Z", "with history", history=["before"]),
            ],
        }
    )
    assert rows(ws, "follow_up") == [
        ("2026-11-20.jsonl", 1),
        ("2026-11-20.jsonl", 4),
        ("2026-11-20.jsonl", 8),
        ("2026-11-21.jsonl", 1),
    ]


def test_what_lies_before_the_start_still_tells_a_follow_up(workspace):
    files = {
        "a.jsonl": [
            at("2026-11-20T23:59:00Z", "1", conversation_id="c"),
            at("2026-11-21T00:01:00Z", "2", conversation_id="c"),
            at("2026-11-21T00:02:00Z", "1"),
        ]
    }
    ws = workspace(files, "traffic: {start: 2026-11-21}")
    assert scan_logs(ws).days == ["2026-11-21"]
    assert rows(ws, "follow_up") == [("a.jsonl", 2)]
    assert rows(ws, "again") == [("a.jsonl", 3)]


def test_flags_do_not_depend_on_how_lines_are_spread_over_files(workspace, tmp_path):
    chance = random.Random(7)
    lines = [
        at(f"2026-11-{chance.randrange(18, 24)}T{chance.randrange(24):02}:{chance.randrange(60):02}:00Z",
           str(chance.randrange(60)), conversation_id=chance.choice([None, "a", "b", "c"]))
        for _ in range(120)
    ]  # fmt: skip
    # An independent reckoning: walk the lines by time.
    seen, talks, want = set(), set(), {}
    for n, line in sorted(enumerate(lines), key=lambda x: (x[1]["timestamp"], x[0])):
        again = line["request_id"] in seen
        seen.add(line["request_id"])
        talk = line["conversation_id"]
        want[n] = (again, not again and talk is not None and talk in talks)
        if not again and talk:
            talks.add(talk)
    found = scan_logs(workspace({"all.jsonl": lines})).resolved.requests
    assert {int(r["line"]) - 1: (bool(r["again"]), bool(r["follow_up"])) for r in found} == want


def test_bad_lines_belong_to_exactly_one_day(workspace):
    ws = workspace(
        {
            "2026-11-20.jsonl": [b"{", at("2026-11-20T09:00:00Z", "1"), b"{", at("2026-11-21T01:00:00Z", "2"), b"{"],
            "eu-2026-11-25.jsonl": [at("2026-11-24T22:00:00Z", "3"), b"{"],  # named by local time
            "2026-11-27.jsonl": [b"{", b"["],  # nothing good
            "stream.jsonl": [b"{", at("2026-11-22T09:00:00Z", "4"), b"{", at("2026-11-23T09:00:00Z", "5"), b"{"],
            "z.jsonl": [b"{"],
        }
    )
    assert bad_days(ws) == {
        "2026-11-20": 3 + 1,
        "2026-11-22": 2,
        "2026-11-23": 1,
        "2026-11-24": 1,
        "2026-11-27": 2,
    }
    assert scan_logs(ws).unplaced == 0


def test_bad_lines_before_the_start_are_none_of_ours(workspace):
    files = {"2026-11-19.jsonl": [b"{", at("2026-11-19T09:00:00Z", "0")], "2026-11-20.jsonl": [b"{"]}
    assert bad_days(workspace(files, "traffic: {start: 2026-11-20}")) == {"2026-11-20": 1}


def test_logs_that_hold_nothing_good_say_why(workspace):
    index = scan_logs(workspace({"a.jsonl": [b"{", {"time": 1, "text": "x"}]}))
    assert index.days == []
    assert index.unplaced == 2
    assert index.first_bad == "a.jsonl: line 1: not JSON: truncated"


def test_truncated_gzip_is_one_bad_line_of_its_day(workspace, lines):
    import gzip

    rows_ = [at("2026-11-20T09:00:00Z", str(n), response=str(n * 7919)) for n in range(2000)]
    whole = gzip.compress(lines(*rows_))
    ws = workspace({"2026-11-20.jsonl.gz": whole[: len(whole) * 2 // 3]})
    found = scan_logs(ws).resolved
    assert bad_days(ws) == {"2026-11-20": 1}
    assert 500 < len(found.requests) < 2000
    assert int(found.bad["line"][0]) == len(found.requests) + 1
    assert found.reasons == ["truncated gzip"]


def test_gzip_that_lost_only_its_trailer_keeps_every_row(workspace, lines):
    import gzip

    rows_ = [at("2026-11-20T09:00:00Z", str(n)) for n in range(50)]
    ws = workspace({"2026-11-20.jsonl.gz": gzip.compress(lines(*rows_))[:-4]})
    assert len(scan_logs(ws).resolved.requests) == 50
    assert bad_days(ws) == {"2026-11-20": 1}
