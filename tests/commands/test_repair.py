"""`doctor --repair` mends what a kill, a copy or a bad disk left, says so, and touches nothing that is paid for."""

import json
import sqlite3

import pyarrow as pa
import pytest

from ragbench_dagster.commands.repair import repair
from ragbench_dagster.dataset.export import read_register, register, register_file
from ragbench_dagster.dataset.release import TOMBSTONE, pointer, pointer_file, write_release
from ragbench_dagster.evaluation.ledger import Entry, Ledger
from ragbench_dagster.records import EXAMPLES, FORMS, SCRUBBED, Verdict
from ragbench_dagster.store import Workspace, rows_table, write_json, write_table

DAY = "2026-11-20"


@pytest.fixture
def ws(tmp_path) -> Workspace:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text(json.dumps({"timestamp": f"{DAY}T10:00:00Z", "query": "how"}) + "\n")
    (tmp_path / "ragbench.yaml").write_text("")
    ws = Workspace.open(tmp_path)
    assert len(ws.secret) == 32
    write_table(ws.traffic(DAY) / "scrubbed.parquet", rows_table([], SCRUBBED), {"x": "y"})
    with Ledger.open(ws) as ledger:
        ledger.keep(
            Entry("k", "e", "correctness", "1", "t", "j", "{}", DAY, "s", "v", ""), Verdict("scored", 1.0, True)
        )
    return ws


def cut(ws: Workspace, query: str) -> str:
    row = {
        "example_id": "e1",
        "query": query,
        "history": [],
        "conflict": False,
        "synthetic": False,
        "count": 1,
        "weight": 1.0,
    }
    return write_release(
        ws, DAY, rows_table([row], EXAMPLES), pa.Table.from_pylist([], schema=FORMS), {"examples": 1}
    ).id


def said(ws: Workspace) -> dict[str, str]:
    rows = repair(ws)
    return {where: line for level, where, line in rows if level == "mended"}


def test_a_sound_workspace_is_left_alone(ws):
    assert repair(ws) == []


def test_rights_leftovers_and_cut_lines(ws):
    (ws.root / ".key").chmod(0o644)
    (ws.store / "traffic").chmod(0o755)
    ws.store.chmod(0o755)
    (ws.store / "nights").mkdir()
    (ws.store / "nights" / ".gone-2026-01-01").mkdir()
    (ws.store / "traffic" / ".x.part").write_text("half")
    (ws.store / "releases" / f".{DAY}-0123.part").mkdir(parents=True)
    register(ws, "release", ws.root / "out.jsonl", "r1", "jsonl")
    with open(register_file(ws), "a") as file:
        file.write('{"kind": "rel')
    found = said(ws)
    assert found.keys() >= {"permissions", "leftovers", "exports"}
    assert "3 half-written" in found["leftovers"]
    assert (ws.root / ".key").stat().st_mode & 0o077 == 0
    assert ws.store.stat().st_mode & 0o077 == 0
    assert not list(ws.store.rglob("*.part")) + list(ws.store.rglob(".gone*"))
    assert len(read_register(ws)) == 1
    assert repair(ws) == []


def test_a_damaged_day_is_made_again_only_where_the_logs_hold_it(ws):
    path, old = ws.traffic(DAY) / "scrubbed.parquet", ws.traffic("2020-01-01") / "facts.json"
    path.write_bytes(b"PAR1 not")
    old.parent.mkdir()
    old.write_text("{")
    rows = repair(ws)
    assert not path.exists()
    assert old.exists()
    assert [level for level, where, _ in rows if where == "days"].count("error") == 1


def test_a_pointer_follows_a_tombstone_and_goes_with_a_release_that_is_gone(ws):
    old, new = cut(ws, "one"), cut(ws, "two")
    write_json(pointer_file(ws, DAY), {"release": old, "inputs": "x"})
    write_json(ws.release(old) / TOMBSTONE, {"id": old, "successor": new, "examples": 1})
    assert new in said(ws)["pointers"]
    assert pointer(ws, DAY)["release"] == new
    write_json(pointer_file(ws, DAY), {"release": f"{DAY}-ffffffffffff", "inputs": "x"})
    assert "gone" in said(ws)["pointers"]
    assert pointer(ws, DAY) is None


def test_a_damaged_ledger_is_told_and_stays(ws):
    path = ws.store / "ledger.db"
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
    for beside in ws.store.glob("ledger.db-*"):
        beside.unlink()
    data = bytearray(path.read_bytes())
    data[4096:12288] = b"\xff" * 8192
    path.write_bytes(bytes(data))
    rows = repair(ws)
    assert [level for level, where, _ in rows if where == "verdicts"] == ["error"]
    assert path.exists()


def test_backup_and_restore_of_ledger_key_and_releases(ws, tmp_path_factory):
    """The commands of docs/operating.md, tried: what they bring back is what there was."""
    import re
    import shutil
    import subprocess
    from pathlib import Path

    text = (Path(__file__).resolve().parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
    backup, restore = re.findall(r"```sh\n(.*?)```", text, re.S)[:2]
    release, box = cut(ws, "one"), tmp_path_factory.mktemp("box")
    write_json(pointer_file(ws, DAY), {"release": release, "inputs": "x"})
    held = Ledger.open(ws)  # a run that writes meanwhile
    env = {"WORKSPACE": str(ws.root), "BACKUP": str(box / "backup"), "PATH": __import__("os").environ["PATH"]}
    subprocess.run(["bash", "-euc", backup], env=env, check=True)
    held.close()
    key = (ws.root / ".key").read_bytes()
    shutil.rmtree(ws.store)
    (ws.root / ".key").unlink()
    subprocess.run(["bash", "-euc", restore], env=env, check=True)
    again = Workspace.open(ws.root)
    assert (again.root / ".key").read_bytes() == key
    from ragbench_dagster.dataset.release import load_release, resolve

    assert load_release(again, release).examples.num_rows == 1
    assert resolve(again, DAY).id == release
    with Ledger.open(again) as ledger:
        assert ledger.get(["k"])["k"].score == 1.0
    assert [row for row in repair(again) if row[0] == "error"] == []
