"""The key of the hashes: one, whoever comes first, and never silently another."""

import multiprocessing
import os
import shutil
import stat

import pytest

from ragbench_dagster import access as keys
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace


def _first(root, barrier, found):
    ws = Workspace.open(root)
    barrier.wait()
    found.put(ws.secret)


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_first_commands_at_once_make_one_key(tmp_path, monkeypatch, links):
    """Two at once made two secrets in 28 of 30 pairs."""
    if not links:  # inherited by fork
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(1, "no links here")))
    context = multiprocessing.get_context("fork")
    for pair in range(15):
        root = tmp_path / str(pair)
        root.mkdir()
        barrier, found = context.Barrier(3), context.Queue()
        running = [context.Process(target=_first, args=(root, barrier, found)) for _ in range(3)]
        for process in running:
            process.start()
        made = {found.get(timeout=60) for _ in running}
        for process in running:
            process.join()
        assert made == {Workspace.open(root).secret}
        assert stat.S_IMODE((root / ".key").stat().st_mode) == 0o600
        assert not list(root.glob("*.part"))


def test_a_key_is_whole_or_not_there(tmp_path, monkeypatch):
    """Killed before the link: the next command makes one; the half is swept later."""

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", killed)
        with pytest.raises(KeyboardInterrupt):
            Workspace.open(tmp_path).secret  # noqa: B018
    assert not (tmp_path / ".key").exists()
    assert len(Workspace.open(tmp_path).secret) == 32


@pytest.fixture
def hashed(tmp_path):
    ws = Workspace.open(tmp_path)
    ws.keyed("an id")
    (ws.traffic("2026-11-20")).mkdir(parents=True)
    return tmp_path


def test_a_removed_key_is_asked_for(hashed):
    (hashed / ".key").unlink()
    with pytest.raises(UserError, match=r"\.key: the key that store/ was hashed with is gone; restore it") as fault:
        Workspace.open(hashed).secret  # noqa: B018
    assert "\n" not in str(fault.value)
    assert not (hashed / ".key").exists()


def test_a_removed_key_is_asked_for_where_the_store_is_of_before_the_mark(hashed):
    (hashed / ".key").unlink()
    (hashed / "store" / ".key-mark").unlink()
    with pytest.raises(UserError, match="restore it from a backup"):
        Workspace.open(hashed).secret  # noqa: B018


def test_another_key_is_told_from_the_stores_own(hashed):
    (hashed / ".key").write_text("ab" * 32)
    with pytest.raises(UserError, match="not the key that store/ was hashed with"):
        Workspace.open(hashed).secret  # noqa: B018


def test_what_the_line_says_to_do_helps(hashed):
    (hashed / ".key").unlink()
    shutil.rmtree(hashed / "store" / "traffic")
    (hashed / "store" / ".key-mark").unlink()
    assert len(Workspace.open(hashed).secret) == 32


def test_a_restored_key_is_the_old_one(hashed):
    key = (hashed / ".key").read_bytes()
    (hashed / ".key").unlink()
    (hashed / ".key").write_bytes(key)
    assert Workspace.open(hashed).secret == bytes.fromhex(key.decode())


@pytest.mark.parametrize("content", [b"", b"xyz", b"\xff" * 40, b"a" * 2000])
def test_a_damaged_key_is_one_line(tmp_path, monkeypatch, content):
    monkeypatch.setattr(keys, "_PATIENCE_S", 0.1)
    (tmp_path / ".key").write_bytes(content)
    with pytest.raises(UserError, match="restore it from a backup"):
        Workspace.open(tmp_path).secret  # noqa: B018
    assert (tmp_path / ".key").read_bytes() == content


def test_a_pipe_for_a_key_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / ".key")
    with pytest.raises(UserError, match="a pipe"):
        Workspace.open(tmp_path).secret  # noqa: B018
