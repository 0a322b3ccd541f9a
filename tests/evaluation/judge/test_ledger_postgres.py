"""The same ledger on PostgreSQL: a server of the test's own, on a socket in a temporary folder."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragbench_dagster.evaluation.ledger import Entry, Ledger
from ragbench_dagster.records import Verdict

SCORED = Verdict("scored", 4.5, True, "fine", "4.5\nfi\x00ne", "m-1", "fp", 120, 9, 0.002, 2, 310.5, 12.0, {"a": 1})


def entry(key: str, day: str = "2026-01-02") -> Entry:
    return Entry(key, "e1", "correctness", "1", "t", "openai m", "{}", day, "s", "v1", "")


def binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    folder = binaries()
    pytest.importorskip("psycopg", reason="needs the postgres extra")
    if folder is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    home = Path(tempfile.mkdtemp(prefix="ragbench-pg-"))
    as_user: list[str] = []
    import os

    if os.getuid() == 0:  # the server refuses to run as root
        home.chmod(0o777)
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = home / "data"
    quiet = {"check": True, "capture_output": True, "cwd": "/"}
    subprocess.run([*as_user, folder / "initdb", "-D", data, "-U", "ragbench", "-A", "trust", "--no-sync"], **quiet)
    options = f"-k {home} -c listen_addresses='' -c fsync=off"
    control = [*as_user, folder / "pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options]
    subprocess.run([*control, "start"], **quiet)
    yield f"postgresql+psycopg://ragbench@/postgres?host={home}"
    subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
    shutil.rmtree(home, ignore_errors=True)


def test_verdicts_and_failures_live_on_postgresql_as_on_sqlite(postgres: str):
    with Ledger(postgres) as one, Ledger(postgres) as other:
        one.keep(entry("k1"), SCORED)
        one.keep(entry("k1"), Verdict("scored", 1.0, False))
        found = other.get(["k1", "k2"])
        assert list(found) == ["k1"]
        assert (found["k1"].score, found["k1"].passing, found["k1"].raw) == (4.5, True, "4.5\nfi�ne")
        assert found["k1"].details == {"a": 1, "from_ledger": True}
        one.keep(entry("k2"), Verdict("error", feedback="502"))
        one.keep(entry("k2"), Verdict("over_budget"))
        assert other.failures("2026-01-02", "s")["k2"].status == "over_budget"
        assert other.held(["k1", "k2"]) == {"k1"}
        other.forget_failures("2026-01-02", "s", ["correctness"])
        assert one.failures("2026-01-02", "s") == {}
        assert one.usage("correctness", "openai m")["prompt_tokens"] == 120
        assert one.forget(["e1"]) == 1
