"""A ledger that another process holds: no paid verdict is lost, none is paid twice, and the wait is said."""

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import ledger
from ragbench_dagster.evaluation.checkpoint import Spool
from ragbench_dagster.evaluation.judge_runner import judge_items
from ragbench_dagster.evaluation.ledger import Entry, Ledger, location
from ragbench_dagster.records import Item, Verdict
from tests.support.fake_provider import Act

SCORED = Verdict("scored", 1.0, True, "fine", "YES", "m", "fp", 120, 9, 0.002, 1, 310.5, 12.0, {"a": 1})


def entry(key):
    return Entry(key, "e1", "correctness", "1", "t", "openai m", "{}", "2026-01-02", "s", "v1", "")


def items(n):
    return [Item(f"e{i}", f"question {i}?", f"answer {i}", (f"passage {i}",), f"reference {i}") for i in range(n)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(ledger, "PATIENCE_S", 0.6)
    monkeypatch.setattr(ledger, "_BUSY_S", 0.05)
    monkeypatch.setattr(ledger, "_OFFER_S", 0.2)


class Holder:
    """Another process's write lock on a SQLite database."""

    def __init__(self, path):
        self._db = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)

    def hold(self):
        self._db.execute("BEGIN IMMEDIATE")
        return self

    def let_go(self):
        self._db.execute("ROLLBACK")
        self._db.close()


def test_a_lock_held_for_good_loses_no_paid_verdict(serve, judge_of, workspace):
    """It lost one of ten."""
    holders = []

    def plan(seen):
        if len(provider.seen) == 4:
            holders.append(Holder(ws.store / "ledger.db").hold())
        return Act("YES")

    provider = serve(plan)
    ws = workspace(judge_of(provider.base, concurrency={"min": 1, "start": 2, "max": 2}))
    with Ledger(location(ws)):
        pass
    with pytest.raises(UserError, match=r"locked; another process holds it.*ledger\.db\.spool beside it"):
        judge_items(ws, "faithfulness", items(10))
    paid = len(provider.seen)
    assert paid == 10
    holders[0].let_go()
    verdicts = judge_items(ws, "faithfulness", items(10))
    assert [v.status for v in verdicts] == ["scored"] * 10
    assert len(provider.seen) == paid  # nothing is asked twice
    assert not (ws.store / "ledger.db.spool").exists()


def test_a_lock_that_is_let_go_is_no_fault_at_all(serve, judge_of, workspace, monkeypatch):
    monkeypatch.setattr(ledger, "PATIENCE_S", 20)

    def plan(seen):
        if len(provider.seen) == 3:
            holder = Holder(ws.store / "ledger.db").hold()
            threading.Timer(1.5, holder.let_go).start()
        return Act("YES")

    provider = serve(plan)
    ws = workspace(judge_of(provider.base, concurrency={"min": 1, "start": 2, "max": 2}))
    assert {v.status for v in judge_items(ws, "faithfulness", items(8))} == {"scored"}
    with Ledger(location(ws)) as book:
        assert book.count() == 8


def test_what_is_kept_beside_comes_in_at_the_next_start_though_the_process_was_killed(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger(url):
        pass
    holder = Holder(tmp_path / "ledger.db").hold()
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[2]); import tests.evaluation.judge.test_held_ledger as t; "
        "from ragbench_dagster.evaluation import ledger; ledger._BUSY_S = 0.05; "
        "book = t.Ledger(sys.argv[1]); [book.keep(t.entry(f'k{n}'), t.SCORED) for n in range(3)]; "
        "book.keep(t.entry('f'), t.Verdict('error', feedback='502')); print('kept', flush=True); time.sleep(60)"
    )
    here = str(Path(__file__).resolve().parents[3])
    process = subprocess.Popen([sys.executable, "-c", script, url, here], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"kept\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    spool = tmp_path / "ledger.db.spool"
    assert spool.stat().st_mode & 0o777 == 0o600
    with open(spool, "ab") as file:
        file.write(b'\n{"table": "verdicts", "row": {"key": "half')  # and was killed while it wrote
    with pytest.raises(UserError, match="the next start takes them in"):
        Ledger(url)
    holder.let_go()
    with Ledger(url) as book:
        assert book.held(["k0", "k1", "k2"]) == {"k0", "k1", "k2"}
        assert book.get(["k1"])["k1"].details == {"a": 1, "from_ledger": True}
        assert book.failures("2026-01-02", "s")["f"].feedback == "502"
    assert not spool.exists()
    with Ledger(url) as book:
        assert book.count() == 3


def test_several_processes_share_one_spool(tmp_path):
    """A file that was taken in is never written to: what is added goes to a new one."""
    path = tmp_path / "spool"
    got = []

    def add(name):
        for n in range(50):
            Spool(path).add("verdicts", {"key": f"{name}{n}"})

    threads = [threading.Thread(target=add, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads) or path.exists():
        Spool(path).take_in(lambda table, row: got.append(row["key"]))
    assert sorted(got) == sorted(f"{name}{n}" for name in "abc" for n in range(50))


def test_where_taking_in_fails_everything_stays(tmp_path):
    spool = Spool(tmp_path / "spool")
    spool.add("verdicts", {"key": "a"})
    with pytest.raises(ZeroDivisionError):
        spool.take_in(lambda table, row: 1 / 0)
    assert spool.take_in(lambda table, row: None) == 1


def test_waiting_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "PATIENCE_S", 20)
    monkeypatch.setattr(ledger, "_TELL_S", 0.3)
    said = []
    with Ledger(f"sqlite:///{tmp_path}/ledger.db", waiting=lambda line: said.append((time.monotonic(), line))) as book:
        holder = Holder(tmp_path / "ledger.db").hold()
        begin = time.monotonic()
        threading.Timer(1.2, holder.let_go).start()
        book.forget_failures("2026-01-02", "s", ["correctness"])
        book.keep(entry("k"), SCORED)
        assert book.count() == 1
    assert len(said) >= 2
    assert said[0][0] - begin < 0.5
    assert "waiting for the ledger" in said[0][1]


def test_a_database_that_is_full_keeps_the_verdict_beside_it_and_says_so(tmp_path, monkeypatch):
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as book:

        def full(table, row):
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(book, "_write", full)
        with pytest.raises(UserError, match="free some space and run again; verdicts in hand are kept"):
            book.keep(entry("k"), SCORED)
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as book:
        assert book.held(["k"]) == {"k"}
