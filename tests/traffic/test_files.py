"""Which files are logs, how they are named, and what an unreadable source says."""

import gzip
import io
import json

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.files import date_in
from ragbench_dagster.traffic.scan import scan_logs
from ragbench_dagster.traffic.timestamps import iso_day


def at(day: str, n: int = 0) -> dict:
    return {"timestamp": f"{day}T09:00:00Z", "query": f"q{n}", "request_id": f"{day}-{n}"}


FILES = {
    "2026-11-20.jsonl": [at("2026-11-20", n) for n in range(3)],
    "2026-11-21.jsonl": [at("2026-11-21")],
    "2026-11-22.csv": b"timestamp,query\n2026-11-22T01:00:00Z,a\n",
}


def marks(ws):
    index = scan_logs(ws)
    return {day: index.fingerprint(day) for day in index.days}


@pytest.mark.parametrize("name", ["2026-11-20.jsonl", "2026-11-20.parquet"])
def test_disk_fault_while_reading_is_no_bad_line(workspace, monkeypatch, name):
    table = io.BytesIO()
    pq.write_table(pa.table({"timestamp": [1795168800] * 50_000, "query": [f"q{n}" for n in range(50_000)]}), table)
    content = table.getvalue() if name.endswith("parquet") else b'{"timestamp": 1795168800}\n' * 50_000

    class Failing(io.BytesIO):
        def read(self, size=-1):
            if 100 < self.tell() < len(content) - 3000:
                raise OSError(5, "Input/output error")
            return super().read(size)

    monkeypatch.setattr("ragbench_dagster.traffic.files.open_regular", lambda *_: Failing(content))
    ws = workspace({name: b"x"})
    with pytest.raises(UserError, match=rf"^{name}: cannot be read \(Input/output error\)"):
        scan_logs(ws)
    assert not list((ws.store).rglob("*.index"))


def test_names_of_people_are_scrubbed_and_stay_apart(workspace):
    ws = workspace({f"{who}@example.org.jsonl": [at("2026-11-20", n)] for n, who in enumerate(["ana.lopez", "bo.li"])})
    names = [f.name for f in scan_logs(ws).files]
    assert all(n.startswith("<EMAIL_ADDRESS>~") for n in names)
    assert len(set(names)) == 2
    assert [f.name for f in scan_logs(ws).files] == names


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("2026-11-20.jsonl", "2026-11-20"),
        ("logs-20261120T101500Z.jsonl.gz", "2026-11-20"),
        ("2026112014.jsonl", "2026-11-20"),
        ("2026/11/20/part-0.parquet", "2026-11-20"),
        ("year=2026/month=11/day=20/x.csv", "2026-11-20"),
        ("dt=2026-11-20/2026-11-21.csv", "2026-11-21"),
        ("2026-02-31.jsonl", None),
        ("stream-4815162342.jsonl", None),
        ("v2026.jsonl", None),
    ],
)
def test_dates_in_names(path, day):
    found = date_in(path)
    assert (None if found is None else iso_day(found)) == day


def test_hidden_and_unknown_files_are_passed_over(workspace):
    ws = workspace(
        FILES | {".part.jsonl": b"{", "_tmp/x.jsonl": b"{", "notes.txt": b"hi", "x.jsonl.zst": b"z", "U.JSONL": b""}
    )
    index = scan_logs(ws)
    assert [f.name for f in index.files] == ["2026-11-20.jsonl", "2026-11-21.jsonl", "2026-11-22.csv", "U.JSONL"]
    assert index.ignored == 2


def test_git_lfs_pointer_is_one_clear_line(workspace):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    for name in ("2026-11-20.jsonl", "2026-11-20.parquet", "2026-11-20.csv.gz"):
        ws = workspace({name: pointer})
        with pytest.raises(UserError, match=rf"^{name}: this is a Git LFS pointer, run git lfs pull$"):
            scan_logs(ws)
        (ws.root / "logs" / name).unlink()


def test_unreadable_sources_are_one_clear_line(workspace, tmp_path, monkeypatch):
    ws = workspace({})
    for source, words in (("nowhere", "no such folder"), ("nosuch://x/y", "no such storage"), ("s3://b/x", "")):
        other = Workspace.open(ws.root, parse_settings(f"traffic: {{source: '{source}'}}"))
        if words:
            with pytest.raises(UserError, match=words) as fault:
                scan_logs(other)
            assert "\n" not in str(fault.value)
    (ws.root / "logs/2026-11-20.jsonl").symlink_to(tmp_path / "gone")
    with pytest.raises(UserError, match="a log file cannot be read"):
        scan_logs(ws)


def test_file_without_permission_is_one_clear_line(workspace, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ragbench_dagster.traffic.files.open_regular", refuse, raising=False)
    with pytest.raises(UserError, match=r"^2026-11-20.jsonl: cannot be read \(Permission denied\)"):
        scan_logs(workspace(FILES))


def test_memory_and_file_urls_give_the_same_days(workspace, lines):
    ws = workspace(FILES | {"sub/2026-11-23.jsonl.gz": gzip.compress(lines(at("2026-11-23")))})
    local = scan_logs(ws)
    memory = fsspec.filesystem("memory")
    for file in local.files:
        memory.pipe(f"/bucket/logs/{file.path}", (ws.root / "logs" / file.path).read_bytes())
    try:
        for url in ("memory://bucket/logs", "memory://bucket/logs/", (ws.root / "logs").as_uri()):
            other = Workspace.open(ws.root, parse_settings(f"traffic: {{source: '{url}'}}"))
            index = scan_logs(other)
            assert index.days == local.days
            assert {d: index.fingerprint(d) for d in index.days} == {d: local.fingerprint(d) for d in local.days}
        other = Workspace.open(ws.root, parse_settings("traffic: {source: 'memory://bucket/logs'}"))
        before = marks(other)
        memory.pipe("/bucket/logs/2026-11-21.jsonl", lines(at("2026-11-21", 8)))
        assert [d for d in before if before[d] != marks(other)[d]] == ["2026-11-21"]
        assert scan_logs(Workspace.open(ws.root, parse_settings("traffic: {source: 'memory://empty'}"))).days == []
        one = "traffic: {source: 'memory://bucket/logs/2026-11-21.jsonl'}"
        assert scan_logs(Workspace.open(ws.root, parse_settings(one))).days == ["2026-11-21"]
    finally:
        memory.rm("/bucket", recursive=True)


def test_source_may_be_one_file_or_lie_elsewhere(workspace, tmp_path):
    ws = workspace({})
    (tmp_path / "x.jsonl").write_text(json.dumps(at("2026-11-20")) + "\n", encoding="utf-8")
    for source in (tmp_path / "x.jsonl", "../x.jsonl"):
        other = Workspace.open(ws.root, parse_settings(f"traffic: {{source: '{source}'}}"))
        assert scan_logs(other).days == ["2026-11-20"]
