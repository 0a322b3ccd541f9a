"""What a workspace holds is for its own user alone, and the secret travels nowhere."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path

import pytest

from ragbench_dagster.access import close_to_others, exposed, private_file
from ragbench_dagster.commands.doctor import access
from ragbench_dagster.evaluation.checkpoint import Checkpoint
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.store import Workspace, write_json


@pytest.fixture(autouse=True)
def _others_may_read():
    """The usual umask, under which libraries make files that everybody can read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_and_files_of_the_store_are_closed_to_others(tmp_path: Path) -> None:
    ws = Workspace.open(tmp_path)
    write_json(ws.night("2026-11-20") / "gate.json", {})
    Ledger.open(ws).close()
    with Checkpoint(ws.store / "cache" / "answers" / "x.db") as checkpoint:
        assert checkpoint.get("none") is None
        assert ws.secret
        below = [p for name in ("store", ".key") for p in [tmp_path / name, *(tmp_path / name).rglob("*")]]
        assert len(below) > 8
        assert {oct(mode(p)) for p in below} == {"0o700", "0o600"}
    assert list(exposed(tmp_path)) == []
    assert [level for level, _, _ in access(ws)] == ["ok"]


def test_doctor_names_what_others_can_read_and_it_can_be_closed(tmp_path: Path) -> None:
    ws = Workspace.open(tmp_path)
    write_json(ws.store / "a.json", {})
    (tmp_path / ".dagster").mkdir()
    (ws.store / "old").mkdir()
    (ws.store / "old" / "b.json").write_text("{}")
    ws.store.chmod(0o755)
    found = [p.relative_to(tmp_path).as_posix() for p in exposed(tmp_path)]
    assert found == ["store", "store/old", "store/old/b.json", ".dagster"]
    ((level, _, line),) = access(ws)
    assert level == "warning"
    assert line.startswith("store can be read by other users")
    assert close_to_others(exposed(tmp_path)) == 4
    assert [level for level, _, _ in access(ws)] == ["ok"]
    assert (mode(ws.store), mode(ws.store / "old" / "b.json")) == (0o700, 0o600)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    ws = tmp_path / "ws"
    private_file(ws / "store" / "a")
    (ws / "store").chmod(0o755)
    (ws / "store" / "link").symlink_to(outside)
    assert [p.name for p in exposed(ws)] == ["store"]


def test_a_pickled_workspace_does_not_carry_the_secret(tmp_path: Path) -> None:
    ws = Workspace.open(tmp_path)
    keyed = ws.keyed("x")
    sent = pickle.dumps(ws.sampled(0)) + pickle.dumps(ws)
    assert ws.secret not in sent
    assert ws.secret.hex().encode() not in sent
    again = pickle.loads(pickle.dumps(ws))
    assert again == ws
    assert again.keyed("x") == keyed
