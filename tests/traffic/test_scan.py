"""Which days there are, when a day must be run again, and what an unreadable source says."""

import os
import time

import pytest

from ragbench_dagster.traffic import log_index as index_module
from ragbench_dagster.traffic.ingest import sample_days, scrub_days
from ragbench_dagster.traffic.privacy import verify_days
from ragbench_dagster.traffic.scan import scan_logs, stale_days


def at(day: str, n: int = 0, **more) -> dict:
    return {"timestamp": f"{day}T09:00:00Z", "query": f"q{n}", "request_id": f"{day}-{n}", **more}


FILES = {
    "2026-11-20.jsonl": [at("2026-11-20", n) for n in range(3)],
    "2026-11-21.jsonl": [at("2026-11-21")],
    "2026-11-22.csv": b"timestamp,query\n2026-11-22T01:00:00Z,a\n",
}


def run(ws, days, scrubber):
    sample_days(ws, days)
    scrub_days(ws, days, scrubber=scrubber)


def marks(ws):
    index = scan_logs(ws)
    return {day: index.fingerprint(day) for day in index.days}


def changed(before, after):
    return sorted(day for day in before.keys() | after.keys() if before.get(day) != after.get(day))


def touch_later(path):
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


@pytest.fixture
def reads(monkeypatch):
    """How many log files were really read."""
    found = []
    real = index_module.collect

    def counted(entries, hasher, forgotten):
        found.append(1)
        return real(entries, hasher, forgotten)

    monkeypatch.setattr(index_module, "collect", counted)
    return found


def test_days_are_those_that_hold_lines_future_ones_too(workspace):
    ws = workspace(FILES | {"part-2.jsonl": [at("2100-01-01")], "empty.jsonl": b""})
    index = scan_logs(ws)
    assert index.days == ["2026-11-20", "2026-11-21", "2026-11-22", "2100-01-01"]
    assert stale_days(ws, index, "2026-11-21") == ["2026-11-20", "2026-11-21"]
    assert len(index.files) == 5


def test_unchanged_files_are_not_read_again(workspace, reads):
    ws = workspace(FILES)
    first = marks(ws)
    assert len(reads) == 3
    assert marks(ws) == first
    touch_later(ws.root / "logs/2026-11-20.jsonl")
    assert marks(ws) == first  # read again, found the same
    assert len(reads) == 4
    assert scan_logs(ws).resolved.requests.size == 5
    assert len(reads) == 4


def test_a_changed_file_changes_only_its_days(workspace, lines):
    ws = workspace(FILES)
    before = marks(ws)
    path = ws.root / "logs/2026-11-20.jsonl"
    path.write_bytes(path.read_bytes() + lines(at("2026-11-20", 9)))
    assert changed(before, marks(ws)) == ["2026-11-20"]
    path.write_bytes(path.read_bytes() + lines(at("2026-11-25")))
    assert changed(before, marks(ws)) == ["2026-11-20", "2026-11-25"]  # 20 only for its own new line
    (ws.root / "logs/part-9.jsonl").write_bytes(lines(at("2026-11-21", 5)))
    assert changed(before, marks(ws)) == ["2026-11-20", "2026-11-21", "2026-11-25"]
    path.unlink()
    assert scan_logs(ws).days == ["2026-11-21", "2026-11-22"]


def test_appending_to_one_long_file_changes_only_the_new_day(workspace, lines):
    ws = workspace({"all.jsonl": [at(f"2026-11-{d}") for d in range(10, 20)]})
    before = marks(ws)
    path = ws.root / "logs/all.jsonl"
    path.write_bytes(path.read_bytes() + lines(at("2026-11-20"), b"{"))
    assert changed(before, marks(ws)) == ["2026-11-20"]


def test_a_rewrite_of_equal_size_and_time_is_seen(workspace):
    ws = workspace(FILES)
    before = marks(ws)
    path = ws.root / "logs/2026-11-21.jsonl"
    stat = path.stat()
    time.sleep(0.02)
    path.write_bytes(path.read_bytes().replace(b"q0", b"q1"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert changed(before, marks(ws)) == ["2026-11-21"]


def test_a_turn_that_makes_tomorrows_a_follow_up_runs_tomorrow_again(workspace, lines):
    ws = workspace({"b.jsonl": [at("2026-11-21", conversation_id="c")], "a.jsonl": [at("2026-11-20")]})
    before = marks(ws)
    path = ws.root / "logs/a.jsonl"
    path.write_bytes(path.read_bytes() + lines(at("2026-11-20", 2, conversation_id="c")))
    assert changed(before, marks(ws)) == ["2026-11-20", "2026-11-21"]


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ("traffic: {start: 2026-11-20, quarantine_max: 0.5}", True),
        ("scrub: {floor: {all: 0.5}, processes: 2}", True),
        ("dataset: {window_days: 3}", True),
        ("traffic: {sample: {rate: 0.2}}", False),
        ("traffic: {sample: {salt: v2}}", False),
        ("traffic: {timezone: Europe/Berlin}", False),
        ("traffic: {fields: {category: model}}", False),
        ("scrub: {allow: [Acme]}", False),
    ],
)
def test_which_settings_run_a_day_again(workspace, settings, same):
    before = marks(workspace(FILES))
    after = marks(workspace({}, settings))
    assert (after == before) is same


def test_start_moved_runs_no_day_again(workspace, fake_scrubber):
    ws = workspace(FILES)
    run(ws, scan_logs(ws).days, fake_scrubber)
    verify_days(ws, scan_logs(ws).days)
    later = workspace({}, "traffic: {start: 2026-11-21}")
    assert scan_logs(later).days == ["2026-11-21", "2026-11-22"]
    assert stale_days(later, scan_logs(later), "2026-12-01") == []
    earlier = workspace({}, "traffic: {start: 2026-11-01}")
    assert stale_days(earlier, scan_logs(earlier), "2026-12-01") == []


def test_a_day_is_stale_until_it_is_scrubbed_and_searched_and_after_damage(workspace, fake_scrubber):
    ws = workspace(FILES)
    index = scan_logs(ws)
    sample_days(ws, index.days)
    assert stale_days(ws, index, "2026-12-01") == index.days
    scrub_days(ws, index.days[:2], scrubber=fake_scrubber)
    assert stale_days(ws, index, "2026-12-01") == index.days
    verify_days(ws, index.days[:2])
    assert stale_days(ws, index, "2026-12-01") == index.days[2:]
    scrub_days(ws, index.days[:1], scrubber=fake_scrubber)  # what was found in other rows says nothing of these
    assert stale_days(ws, index, "2026-12-01") == [index.days[0], *index.days[2:]]
    verify_days(ws, index.days[:1])
    (ws.traffic("2026-11-20") / "scrubbed.parquet").write_bytes(b"PAR1 cut")
    (ws.traffic("2026-11-21") / "facts.json").write_text("{", encoding="utf-8")
    assert stale_days(ws, index, "2026-12-01") == index.days


def test_the_cache_may_be_deleted_or_damaged(workspace):
    ws = workspace(FILES)
    before = marks(ws)
    for path in (ws.store / "cache/traffic").iterdir():
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert marks(ws) == before
    for path in (ws.store / "cache/traffic").iterdir():
        path.unlink()
    assert marks(ws) == before


def test_cached_indexes_of_deleted_logs_are_removed(workspace):
    ws = workspace(FILES)
    scan_logs(ws)
    (ws.root / "logs/2026-11-20.jsonl").unlink()
    scan_logs(ws)
    assert len(list((ws.store / "cache/traffic").glob("*.index"))) == 2


def test_the_cache_holds_no_text_and_no_id(workspace):
    secrets = {
        k: f"{k}-kept-quiet" for k in ("query", "request_id", "user_id", "category", "conversation_id", "response")
    }
    ws = workspace({"ana.lopez@example.org-2026-11-20.jsonl": [at("2026-11-20") | secrets, secrets, b'{"x-kept-quiet']})
    scan_logs(ws)
    for path in [p for p in ws.root.rglob("*") if p.is_file() and (ws.root / "logs") not in p.parents]:
        data = path.read_bytes()
        assert b"kept-quiet" not in data, path
        assert b"ana.lopez" not in data, path
