"""The ledger keeps each verdict once, whatever happens around it."""

import sqlite3
from pathlib import Path

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import disks
from ragbench_dagster.evaluation.ledger import Entry, Ledger, check_disk, location
from ragbench_dagster.records import Verdict
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace

SCORED = Verdict(
    "scored", 4.5, True, "fine", "4.5\nfine", "m-1", "fp", 120, 9, 0.002, 2, 310.5, 12.0, {"re_asked": True}
)


def entry(key: str, example: str = "e1", day: str = "2026-01-02", system: str = "s") -> Entry:
    return Entry(key, example, "correctness", "1", "t", "openai m", "{}", day, system, "v1", "")


@pytest.fixture
def book(tmp_path: Path):
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as opened:
        yield opened


def test_a_verdict_comes_back_as_it_was_kept(book: Ledger):
    book.keep(entry("k1"), SCORED)
    found = book.get(["k1", "k2"])
    assert list(found) == ["k1"]
    back = found["k1"]
    assert back.details == {"re_asked": True, "from_ledger": True}
    for name in ("status", "score", "passing", "feedback", "raw", "served_model", "fingerprint", "prompt_tokens",
                 "completion_tokens", "cost_usd", "attempts", "latency_ms", "wait_ms"):  # fmt: skip
        assert getattr(back, name) == getattr(SCORED, name), name


def test_a_second_verdict_under_the_same_key_changes_nothing(book: Ledger):
    book.keep(entry("k1"), SCORED)
    book.keep(entry("k1"), Verdict("scored", 1.0, False))
    assert book.get(["k1"])["k1"].score == 4.5


def test_failures_are_no_verdicts_and_belong_to_their_night(book: Ledger):
    book.keep(entry("k1"), Verdict("error", feedback="502"))
    book.keep(entry("k1", day="2026-01-03"), Verdict("over_budget"))
    assert book.held(["k1"]) == set()
    assert book.failures("2026-01-02", "s")["k1"].status == "error"
    book.forget_failures("2026-01-02", "s", ["correctness"])
    assert book.failures("2026-01-02", "s") == {}
    assert book.failures("2026-01-03", "s")["k1"].status == "over_budget"


def test_more_keys_than_one_select_takes(book: Ledger):
    for n in range(1200):
        book.keep(entry(f"k{n}"), SCORED)
    assert len(book.held([f"k{n}" for n in range(2000)])) == 1200


def test_text_that_a_database_would_refuse_is_kept_readable(book: Ledger):
    book.keep(entry("k1"), Verdict("unparsable", raw="a\x00b \udc80 ‮ é"))
    assert book.get(["k1"])["k1"].raw == "a�b ? ‮ é"


def test_a_persons_examples_can_be_removed(book: Ledger):
    book.keep(entry("k1", "e1"), SCORED)
    book.keep(entry("k2", "e2"), SCORED)
    assert book.forget(["e1"]) == 1
    assert book.held(["k1", "k2"]) == {"k2"}


def test_two_processes_may_write_at_the_same_time(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger(url) as one, Ledger(url) as other:
        one.keep(entry("k1"), SCORED)
        other.keep(entry("k2"), SCORED)
        assert one.held(["k1", "k2"]) == {"k1", "k2"} == other.held(["k1", "k2"])


def test_each_verdict_is_committed_at_once_and_in_wal_mode(tmp_path: Path):
    path = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{path}") as book:
        book.keep(entry("k1"), SCORED)
        stranger = sqlite3.connect(path)
        assert stranger.execute("SELECT count(*) FROM verdicts").fetchone() == (1,)
        assert stranger.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        stranger.close()


@pytest.mark.parametrize(
    ("content", "words"), [(b"this is no database, whatever its name says" * 40, "damaged")], ids=["damaged"]
)
def test_a_ledger_that_cannot_be_used_is_one_line(tmp_path: Path, content: bytes, words: str):
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(UserError, match=words) as raised:
        Ledger(f"sqlite:///{path}")
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_an_unknown_database_is_one_line():
    with pytest.raises(UserError, match="ledger"):
        Ledger("postgresql://nobody@127.0.0.1:1/none")


def mountinfo(tmp_path: Path, point: Path, kind: str) -> Path:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:1 / / rw,relatime - ext4 /dev/vda rw\n"
        f"36 22 98:0 /export {str(point).replace(' ', chr(92) + '040')} rw,noatime shared:1 - {kind} host:/export rw\n"
    )
    return table


@pytest.mark.parametrize(
    ("kind", "network"),
    [("nfs4", True), ("nfs", True), ("cifs", True), ("9p", True), ("fuse.sshfs", True), ("fuse.glusterfs", True),
     ("ext4", False), ("xfs", False), ("overlay", False), ("tmpfs", False), ("fuse.fuse-overlayfs", False)],
)  # fmt: skip
def test_sqlite_on_a_network_file_system_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, network: bool
):
    root = tmp_path / "a share"
    root.mkdir()
    monkeypatch.setattr(disks, "MOUNTS", mountinfo(tmp_path, root, kind))
    ws = Workspace(root, parse_settings(""))
    line = check_disk(ws)
    assert (line is not None) is network
    if network:
        assert line is not None
        assert str(root) in line
        assert kind in line
        assert "PostgreSQL" in line
        assert "local" in line
        with pytest.raises(UserError, match="network file system"):
            Ledger.open(ws)
        assert not (root / "store").exists()


def test_the_ledger_may_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path / "share"
    root.mkdir()
    monkeypatch.setattr(disks, "MOUNTS", mountinfo(tmp_path, root, "nfs4"))
    ws = Workspace(root, parse_settings(f"ledger: {tmp_path}/local.db"))
    assert location(ws) == f"sqlite:///{tmp_path}/local.db"
    assert check_disk(ws) is None
    assert check_disk(Workspace(root, parse_settings("ledger: postgresql://db/ragbench"))) is None
