"""Planted faults, through the real command: a quarantined row, or one clear line and exit code 2, never half a file."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragbench_dagster.results import GateDecision
from ragbench_dagster.store import read_struct, read_table

SETTINGS = (
    "traffic: {start: 2026-11-19, sample: {rate: 1.0}}\nsystems: {logged: {kind: logged}}\nmetrics: [relevancy]\n"
)
ASKED = ["How long is the trial?", "Where do I rotate a token?", "Can a hook be paused?", "Which plan has audit logs?"]


def row(n, day="2026-11-20", **more):
    given = {"timestamp": f"{day}T09:0{n % 10}:00Z", "request_id": f"{day}-{n}", "query": ASKED[n % 4]}
    return {**given, "response": "See the guide.", **more}


def lines(*rows):
    return b"".join(json.dumps(r, ensure_ascii=False).encode() + b"\n" for r in rows)


@pytest.fixture
def workspace(tmp_path):
    """workspace({file name: bytes}, settings) -> root"""

    def make(files, settings=SETTINGS, root=None):
        root = root or tmp_path / "ws"
        (root / "logs").mkdir(parents=True)
        for name, data in files.items():
            (root / "logs" / name).write_bytes(data)
        (root / "ragbench.yaml").write_text(settings, encoding="utf-8")
        return root

    return make


def ragbench(*arguments):
    command = [sys.executable, "-m", "ragbench_dagster.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def night(root, date="2026-11-24"):
    done = ragbench("run", "--workspace", root, "--date", date, "--json")
    return done, json.loads(done.stdout) if done.stdout else None


def assert_one_line(done, *words):
    """Exit code 2, nothing on stdout, one line on stderr that holds `words`."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    errors = [line for line in done.stderr.split("\n") if line.startswith("ragbench: ")]
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in errors[0]


def no_half_files(root):
    assert list(root.rglob("*.part")) == []


def test_bad_lines_of_every_kind_are_quarantined_and_the_day_goes_on(workspace):
    huge = row(1, query="why " + "x" * 100_000)
    odd = row(2, query="is \x00 or \u202e allowed in a \u2067title\u2069?")
    cut = gzip.compress(lines(*(row(n, day="2026-11-21", query=f"q {n} {os.urandom(40).hex()}") for n in range(50))))
    root = workspace(
        {
            "2026-11-20.jsonl": lines(row(0), huge, odd)
            + b'{"timestamp": "2026-11-20T10:00:00Z", "query": "caf\xff"}\n[1]\n{"query": "no time"}\n',
            "2026-11-21.jsonl.gz": cut[: len(cut) - 400],
        }
    )
    done, said = night(root)
    assert done.returncode in (0, 1, 3), done.stderr
    bad = [
        r for p in sorted((root / "store" / "traffic").glob("*/quarantine.parquet")) for r in read_table(p).to_pylist()
    ]
    of_plain = [r for r in bad if r["file"] == "2026-11-20.jsonl"]
    assert [r["line"] for r in of_plain] == [4, 5, 6]
    assert len(bad) == said["quarantined"] == 4  # the truncated file is one more
    assert all("caf" not in r["reason"] for r in bad)
    assert said["requests"]["read"] > 3
    no_half_files(root)


def test_an_empty_day_and_a_day_without_logs_are_the_normal_night_with_a_warning(workspace):
    root = workspace({"2026-11-20.jsonl": lines(*map(row, range(4))), "2026-11-23.jsonl": b""})
    for date in ("2026-11-23", "2026-11-24"):
        done, said = night(root, date)
        assert done.returncode == 3
        assert f"{date}: no" in done.stderr
        assert said["release"]["examples"] == 4


def test_only_future_days_name_the_clock(workspace):
    root = workspace({"2999-01-01.jsonl": lines(row(0, day="2999-01-01"))})
    assert_one_line(ragbench("run", "--workspace", root), "clock")
    assert_one_line(ragbench("run", "--workspace", root, "--date", "2999-01-01"), "clock")


def test_a_future_day_waits_and_the_past_is_run(workspace):
    root = workspace({"a.jsonl": lines(*map(row, range(4)), row(5, day="2999-01-01"))})
    done, said = night(root)
    assert done.returncode == 3
    assert said["requests"]["read"] == 4
    assert not (root / "store" / "traffic" / "2999-01-01").exists()


def test_a_wrong_key_is_named(workspace):
    root = workspace({"a.jsonl": lines(row(0))}, SETTINGS + "thresholds: {relevancy: {mni: 0.5}}\n")
    assert_one_line(ragbench("run", "--workspace", root), "ragbench.yaml", "thresholds.relevancy.mni", "'min'")
    assert not (root / "store").exists()


def test_no_logs_and_no_workspace_say_what_to_do(workspace, tmp_path):
    assert_one_line(ragbench("run", "--workspace", workspace({})), "logs")
    assert_one_line(ragbench("run", "--workspace", tmp_path / "none"), "ragbench init")


def test_a_git_lfs_pointer_is_not_data(workspace):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1\n"
    root = workspace({"a.jsonl": lines(row(0)), "b.jsonl": pointer})
    assert_one_line(ragbench("run", "--workspace", root), "b.jsonl", "git lfs pull")


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(size, flags) mounts a tmpfs; needs root."""
    mounted = []

    def mount(size):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
        if done.returncode:
            pytest.skip("no right to mount a tmpfs")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=False)


@pytest.mark.parametrize("size", ["200k", "700k", "900k", "1200k"])
def test_a_full_disk_is_one_line_and_the_next_run_finishes(workspace, small_disk, tmp_path, size):
    """Full before the first table, in Dagster's databases, and in the middle of the night."""
    disk = small_disk(size)
    root = workspace({"2026-11-20.jsonl": lines(*map(row, range(4)))}, root=disk / "ws")
    done = ragbench("run", "--workspace", root, "--date", "2026-11-24")
    assert_one_line(done, "space")
    no_half_files(root)
    moved = tmp_path / "roomy"
    shutil.copytree(root, moved)
    done, said = night(moved)
    assert done.returncode == 3
    assert said["release"]["examples"] == 4


def test_a_read_only_store_is_one_line(workspace, small_disk):
    disk = small_disk("20m")
    root = workspace({"2026-11-20.jsonl": lines(*map(row, range(4)))}, root=disk / "ws")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert_one_line(ragbench("run", "--workspace", root, "--date", "2026-11-24"), "Read-only")
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert not (root / "store" / "nights").exists()


def test_kill_9_in_the_middle_loses_nothing_and_the_next_run_finishes(workspace):
    root = workspace({"2026-11-20.jsonl": lines(*map(row, range(4)))})
    command = [sys.executable, "-m", "ragbench_dagster.cli", "run", "--workspace", str(root), "--date", "2026-11-24"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runs = root / ".dagster" / "history" / "runs"
    while process.poll() is None and not list(Path(runs).glob("*-*.db")):
        pass
    process.kill()
    process.wait()
    done, said = night(root)
    assert done.returncode == 3, done.stderr
    assert said["release"]["examples"] == 4
    assert read_struct(root / "store" / "nights" / "2026-11-24" / "gate.json", GateDecision).verdict == "inconclusive"
    no_half_files(root)


def test_the_mapping_of_the_logs_is_seen_before_a_night(workspace):
    root = workspace({"a.jsonl": lines({"timestamp": "2026-11-20T09:00:00Z", "query": "q?", "answer": "mail a@b.com"})})
    done = ragbench("logs", "check", "--workspace", root)
    assert done.returncode == 0, done.stderr
    assert "traffic.fields: {response: answer} would read answer as response" in done.stdout
    assert not (root / "store" / "nights").exists()
    as_json = json.loads(ragbench("logs", "check", "--workspace", root, "--json").stdout)
    assert as_json["shapes"][0]["unmapped"] == ["answer"]
    assert as_json["requests"][0]["query"] == "q?"
    assert_one_line(ragbench("logs", "check", "--workspace", root / "nowhere"))
