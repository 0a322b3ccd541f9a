"""Sampling and scrubbing days: what is written, what never is, and that the same input gives the same bytes."""

import hashlib
import json
import shutil

import pyarrow.parquet as pq
import pytest

from ragbench_dagster import records
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic import logs as logs_module
from ragbench_dagster.traffic.ingest import read_facts, sample_days, scrub_days
from ragbench_dagster.traffic.scan import scan_logs
from ragbench_dagster.traffic.scrubbing import safe_id


def at(day: str, n: int, **more) -> dict:
    return {"timestamp": f"{day}T09:00:{n % 60:02}Z", "query": f"q{n}", "request_id": f"{day}-{n}", **more}


DAY = "2026-11-20"
FULL = {
    "timestamp": "2026-11-20 09:00:00.123456",
    "request_id": "raw-request",
    "query": "what of secret-1?",
    "response": "secret-1 is fine",
    "source_nodes": [{"node_id": "doc secret-2", "score": 0.5, "text": "about secret-1"}, "plain-id"],
    "latency_ms": 12,
    "category": "cat secret-3",
    "user_id": "raw-user",
    "model": "m secret-4",
    "conversation_id": "raw-conversation",
    "history": [{"role": "user", "content": "secret-5 before"}],
}
ALL = "traffic: {sample: {rate: 1.0}}"


def table(ws, day, name):
    return pq.read_table(ws.traffic(day) / f"{name}.parquet")


def snapshot(ws):
    return {
        str(p.relative_to(ws.store)): (hashlib.sha256(p.read_bytes()).hexdigest(), p.stat().st_mtime_ns)
        for p in sorted(ws.store.rglob("*"))
        if p.is_file()
    }


def test_a_request_is_stored_scrubbed_and_hashed(workspace, fake_scrubber):
    ws = workspace({"2026-11-20.jsonl": [FULL]}, ALL)
    facts = sample_days(ws, [DAY])[DAY]
    done = scrub_days(ws, [DAY], scrubber=fake_scrubber)
    assert (facts.read, facts.sampled, facts.follow_ups, facts.quarantined) == (1, 1, 1, 0)
    assert facts.warnings == ["1 times without a zone were taken as UTC; set traffic.timezone if they are not"]
    assert done == {DAY: {"rows": 1, "questions": 1, "replaced": {"SECRET": 4}}}
    sampled, scrubbed = table(ws, DAY, "sampled"), table(ws, DAY, "scrubbed")
    assert sampled.schema.equals(records.SAMPLED)
    assert scrubbed.schema.equals(records.SCRUBBED)
    (row,) = scrubbed.to_pylist()
    assert row["timestamp"].isoformat() == "2026-11-20T09:00:00.123456+00:00"
    assert row["day"].isoformat() == DAY
    assert row["request_key"] == ws.keyed("raw-request") == sampled["request_key"][0].as_py()
    assert row["user_key"] == ws.keyed("raw-user")
    assert row["conversation_key"] == ws.keyed("raw-conversation")
    assert (row["query"], row["response"]) == ("what of <SECRET>?", "<SECRET> is fine")
    assert row["history"] == ["user: <SECRET> before"]
    marked = safe_id("doc secret-2", lambda text: text.replace("secret-2", "<SECRET>"), ws.keyed)
    assert row["source_nodes"] == [
        {"node_id": marked, "score": 0.5, "text": "about <SECRET>"},
        {"node_id": "plain-id", "score": None, "text": None},
    ]
    assert (row["category"], row["model"], row["latency_ms"]) == ("cat <SECRET>", "m <SECRET>", 12.0)
    assert (row["weight"], row["follow_up"], row["question"]) == (1.0, True, True)


def test_raw_text_never_lands(workspace, fake_scrubber):
    bad = [b'{"query": "secret-6', json.dumps(FULL | {"latency_ms": "secret-7"}).encode()]
    ws = workspace({"secret-8/2026-11-20.jsonl": [FULL, *bad]}, ALL)
    sample_days(ws, [DAY])
    scrub_days(ws, [DAY], scrubber=fake_scrubber)
    quarantine = table(ws, DAY, "quarantine").to_pylist()
    assert [(q["line"], q["reason"]) for q in quarantine] == [
        (2, "not JSON: truncated"),
        (3, "latency_ms: a number is wanted"),
    ]
    for path in ws.root.rglob("*"):
        if path.is_file() and (ws.root / "logs") not in path.parents:
            data = path.read_bytes() + (repr(pq.read_table(path)).encode() if path.suffix == ".parquet" else b"")
            for word in (b"secret-1", b"secret-6", b"secret-7", b"raw-request", b"raw-user", b"raw-conversation"):
                assert word not in data, (path, word)


def test_the_same_input_gives_the_same_bytes_and_touches_nothing(workspace, fake_scrubber):
    days = ["2026-11-20", "2026-11-21"]
    ws = workspace({"a.jsonl": [at(d, n, category="abc"[n % 3]) for d in days for n in range(40)] + [b"{"]})
    sample_days(ws, days)
    scrub_days(ws, days, scrubber=fake_scrubber)
    before = snapshot(ws)
    sample_days(ws, days[::-1])
    scrub_days(ws, days[::-1], scrubber=fake_scrubber)
    assert snapshot(ws) == before
    calls = fake_scrubber.calls
    assert scrub_days(ws, days) == {d: {"rows": 15, "questions": 15, "replaced": {}} for d in days}
    assert fake_scrubber.calls == calls


def test_one_day_alone_is_what_it_is_among_others(workspace, fake_scrubber, tmp_path):
    days = [f"2026-11-{d}" for d in range(20, 25)]
    rows = [at(d, n, conversation_id=f"c{n % 7}") for d in days for n in range(30)]
    together = workspace({"a.jsonl": rows[:77], "b.jsonl": rows[77:]})
    sample_days(together, days)
    scrub_days(together, days, scrubber=fake_scrubber)
    before = snapshot(together)
    for path in (together.store / "traffic").rglob("*.*"):
        path.unlink()
    for day in days:
        sample_days(together, [day])
        scrub_days(together, [day], scrubber=fake_scrubber)
    assert {k: v[0] for k, v in snapshot(together).items()} == {k: v[0] for k, v in before.items()}


def test_the_sample_does_not_depend_on_the_key_or_the_file(workspace, fake_scrubber, tmp_path):
    """Two machines have different `.key` files; their releases must hold the same questions."""
    rows = [at(DAY, n) for n in range(200)]
    found = []
    for name, content in (("one", {"a.jsonl": rows}), ("two", {"b.jsonl": rows[100:], "c.jsonl": rows[:100]})):
        ws = workspace(content)
        sample_days(ws, [DAY])
        scrub_days(ws, [DAY], scrubber=fake_scrubber)
        found.append((ws.keyed("x"), sorted(table(ws, DAY, "scrubbed")["query"].to_pylist())))
        ws.root.rename(tmp_path / name)
    (key, queries), (other_key, other) = found
    assert key != other_key
    assert len(queries) == 20
    assert queries == other


def test_each_file_is_read_once_however_many_days_are_asked_for(workspace, fake_scrubber, monkeypatch):
    days = [f"2026-11-{d}" for d in range(10, 20)]
    ws = workspace({"a.jsonl": [at(d, n) for d in days for n in range(10)], "b.jsonl": [at(days[0], 99)]})
    scan_logs(ws)
    opened = []
    real = logs_module.Reader.read

    def counted(self, file, only=None):
        opened.append(file.name)
        return real(self, file, only)

    monkeypatch.setattr(logs_module.Reader, "read", counted)
    sample_days(ws, days)
    assert sorted(opened) == ["a.jsonl", "b.jsonl"]
    opened.clear()
    scrub_days(ws, days, scrubber=fake_scrubber)
    assert sorted(opened) == ["a.jsonl", "b.jsonl"]
    opened.clear()
    sample_days(ws, [days[5]])
    assert opened == ["a.jsonl"]


def test_a_day_without_lines_and_an_unknown_day_are_empty(workspace):
    ws = workspace({"2026-11-20.jsonl": b"\n\n"})
    facts = sample_days(ws, [DAY])[DAY]
    assert (facts.read, facts.sampled, facts.quarantined) == (0, 0, 0)
    assert scrub_days(ws, [DAY]) == {DAY: {"rows": 0, "questions": 0, "replaced": {}}}
    assert table(ws, DAY, "scrubbed").num_rows == table(ws, DAY, "quarantine").num_rows == 0


def test_a_day_whose_logs_were_deleted_keeps_what_is_stored(workspace, fake_scrubber):
    ws = workspace({"2026-11-20.jsonl": [at(DAY, 1)], "2026-11-21.jsonl": [at("2026-11-21", 1)]}, ALL)
    sample_days(ws, [DAY])
    scrub_days(ws, [DAY], scrubber=fake_scrubber)
    before = {k: v for k, v in snapshot(ws).items() if k.startswith("traffic")}
    (ws.root / "logs/2026-11-20.jsonl").unlink()
    assert sample_days(ws, [DAY])[DAY].read == 1
    assert scrub_days(ws, [DAY])[DAY]["rows"] == 1
    assert {k: v for k, v in snapshot(ws).items() if k.startswith("traffic")} == before


def test_scrubbing_refuses_a_day_that_is_not_sampled_or_has_changed(workspace, fake_scrubber, lines):
    ws = workspace({"2026-11-20.jsonl": [at(DAY, 1)]})
    with pytest.raises(UserError, match="2026-11-20: not sampled yet"):
        scrub_days(ws, [DAY], scrubber=fake_scrubber)
    sample_days(ws, [DAY])
    (ws.root / "logs/2026-11-20.jsonl").write_bytes(lines(at(DAY, 2)))
    with pytest.raises(UserError, match="2026-11-20: its logs or the settings changed"):
        scrub_days(ws, [DAY], scrubber=fake_scrubber)


def test_a_file_that_changes_while_it_is_read_is_told(workspace, fake_scrubber, lines, monkeypatch):
    ws = workspace({"2026-11-20.jsonl": [at(DAY, 1), at(DAY, 2)]})
    index = scan_logs(ws)
    monkeypatch.setattr("ragbench_dagster.traffic.ingest.scan_logs", lambda *_: index)
    (ws.root / "logs/2026-11-20.jsonl").write_bytes(lines(at(DAY, 1), at(DAY, 3)))
    with pytest.raises(UserError, match=r"^2026-11-20\.jsonl: changed while it was read; run again"):
        sample_days(ws, [DAY])
    assert not (ws.traffic(DAY) / "facts.json").exists()


def test_several_categories_and_days_weigh_what_they_were(workspace):
    rows = [at("2026-11-20", n, category="big") for n in range(97)]
    rows += [at("2026-11-20", 1000 + n, category="small") for n in range(3)] + [at("2026-11-20", 2000)]
    ws = workspace({"a.jsonl": rows})
    assert sample_days(ws, [DAY])[DAY].sampled == 10 + 3 + 1
    weights = table(ws, DAY, "sampled")["weight"].to_pylist()
    assert sorted(set(weights)) == [1.0, 9.7]
    assert sum(weights) == pytest.approx(101)


def test_reused_ids_and_half_emojis_are_told(workspace):
    half = rb'{"timestamp": "2026-11-20T09:00:00Z", "query": "a \ud83d", "request_id": "e"}'
    ws = workspace({"a.jsonl": [at(DAY, 1), at(DAY, 1) | {"query": "other"}, half]}, "traffic: {timezone: UTC}")
    facts = sample_days(ws, [DAY])[DAY]
    assert (facts.read, facts.redelivered) == (2, 1)
    assert facts.warnings == [
        "1 lines held half an emoji; it was replaced by U+FFFD",
        "1 request_ids came again with another question; an id must be unique over all days",
    ]
    assert read_facts(ws, DAY) == facts


def test_worker_processes_give_the_same_rows(workspace, monkeypatch):
    monkeypatch.setattr("ragbench_dagster.traffic.scrubbing.pool.WORTH", 10)
    rows = [at(DAY, n, response=f"write to user{n}@example.com") for n in range(150)]
    quick = "traffic: {sample: {rate: 1.0}}\nscrub: {ner: 'off', entities: [EMAIL_ADDRESS], processes: %d}"
    one = workspace({"2026-11-20.jsonl": rows}, quick % 1)
    sample_days(one, [DAY])
    scrub_days(one, [DAY])
    before = table(one, DAY, "scrubbed")
    assert before["response"].to_pylist() == ["write to <EMAIL_ADDRESS_1>"] * 150
    (one.traffic(DAY) / "scrubbed.parquet").unlink()
    two = workspace({}, quick % 2)
    scrub_days(two, [DAY])
    assert table(two, DAY, "scrubbed").equals(before, check_metadata=True)


def test_progress_ends_at_the_total(workspace, fake_scrubber):
    ws: Workspace = workspace({"a.jsonl": [at(DAY, n) for n in range(100)]}, ALL)
    seen: list[tuple[str, int, int]] = []
    sample_days(ws, [DAY], lambda *step: seen.append(step))
    scrub_days(ws, [DAY], lambda *step: seen.append(step), fake_scrubber)
    assert {label: (done, total) for label, done, total in seen} == {
        "scan": (1, 1),
        "sample": (100, 100),
        "scrub": (100, 100),
    }


def test_read_only_store_is_one_clear_line(workspace):
    ws = workspace({"2026-11-20.jsonl": [at(DAY, 1)]})
    assert ws.secret
    shutil.rmtree(ws.root / "store")
    (ws.root / "store").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(UserError) as fault:
        sample_days(ws, [DAY])
    assert "\n" not in str(fault.value)
