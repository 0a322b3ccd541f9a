"""The persistent Dagster instance of a workspace, shared by `ragbench run` and `ragbench dev`.

DAGSTER_HOME is `<workspace>/.dagster`: telemetry off, no compute-log capture (it would keep printed text),
one run at a time (SQLite).
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import yaml
from dagster import DagsterInstance, DagsterRunStatus, RunsFilter
from dagster._core.instance import InstanceRef

from ragbench_dagster.access import private_folder
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import Undecodable, decoded, open_regular, read_text
from ragbench_dagster.store import Workspace, write_text

PID_TAG = "ragbench/process"
LITTLE = 1_000_000  # bytes free below which an I/O error of SQLite means a full disk
MAX_RUNTIME_S = 24 * 3600

DAMAGE = (
    "malformed",
    "not a database",
    "file is encrypted",
    "no such table",
    "no such column",
    "unable to open database",
)
HEADER = "# Written by ragbench"
CONFIG = f"""\
{HEADER}; see the notes in ragbench_dagster/orchestration/instance.py.
telemetry: {{enabled: false}}
nux: {{enabled: false}}
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
concurrency:
  runs: {{max_concurrent_runs: 1}}
run_monitoring: {{enabled: true, max_runtime_seconds: {MAX_RUNTIME_S}}}
"""


def prepare_home(ws: Workspace) -> Path:
    """Point DAGSTER_HOME and RAGBENCH_WORKSPACE of this process here; returns the file with Dagster's settings.

    A `.dagster/dagster.yaml` that people wrote is never touched, and what it says holds: the keys of ours that it
    lacks are put beside its own in a file of ours.

    Raises:
        UserError: that file is not usable YAML.
    """
    os.umask(0o077)  # Dagster's databases hold the names of assets, days and errors: for this user alone
    home = ws.dagster_home
    private_folder(home)
    theirs = home / "dagster.yaml"
    text = read_text(theirs, 1 << 20) if os.path.lexists(theirs) else HEADER
    path = theirs
    if text.startswith(HEADER):
        write_text(theirs, CONFIG)
    else:
        path = home / "with-ragbench.yaml"
        write_text(path, _with_ours(text, f"{home.name}/{theirs.name}"))
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ["RAGBENCH_WORKSPACE"] = str(ws.root)
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    return path


def _with_ours(text: str, name: str) -> str:
    """The settings that people wrote, and those of ours that they left open."""
    try:
        given = decoded(yaml.safe_load, text) or {}
    except Undecodable as fault:
        mark = getattr(fault.__cause__, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{name}: {where}not usable YAML; correct it") from fault
    if not isinstance(given, dict):
        raise UserError(f"{name}: must hold keys and values; correct it")
    ours = yaml.safe_load(CONFIG)
    if {"run_queue", "run_coordinator"} & set(given):  # Dagster refuses two spellings of one thing
        ours.pop("concurrency")
    missing = {key: value for key, value in ours.items() if key not in given}
    return f"# Made by ragbench from {name} at every start; change that file.\n{yaml.safe_dump({**given, **missing})}"


def open_instance(ws: Workspace) -> DagsterInstance:
    """The workspace's instance; runs of dead processes are marked failed first.

    Raises:
        UserError: Dagster's databases or settings cannot be used; the line names the file.
    """
    path = prepare_home(ws)
    try:
        ref = InstanceRef.from_dir(str(ws.dagster_home), config_filename=path.name)
        instance = DagsterInstance.from_ref(ref)
        _ = instance.run_launcher, instance.run_coordinator  # loaded late: a class that is not there is told now
        reap(instance)
    except Exception as fault:  # SQLite, alembic, a driver, Dagster's own checks
        line = disk_line(ws, fault) or damage_line(ws, fault)
        if line is None and path.name != "dagster.yaml":
            line = f".dagster/dagster.yaml: Dagster cannot be opened with it ({_cause(fault)}); correct it"
        if line is None:
            raise
        raise UserError(line) from fault
    return instance


def _cause(fault: BaseException) -> str:
    """The kind of the innermost cause; its message may quote an address with a password."""
    while fault.__cause__ is not None:
        fault = fault.__cause__
    return type(fault).__name__


def mark_dead_runs(ws: Workspace) -> int:
    """As `reap`, on the workspace's own instance."""
    prepare_home(ws)
    with DagsterInstance.get() as instance:
        return reap(instance)


@contextlib.contextmanager
def disk_faults(ws: Workspace) -> Iterator[None]:
    """Turn what SQLite and the system say of a full or read-only disk into one line.

    Dagster writes its own databases, so these faults arise in its code too.

    Raises:
        UserError: the disk of the workspace is full, read-only or not writable for this user.
    """
    try:
        yield
    except Exception as fault:
        line = disk_line(ws, fault) or damage_line(ws, fault)
        if line is None:
            raise
        raise UserError(line) from fault


def disk_line(ws: Workspace, fault: BaseException) -> str | None:
    """What is wrong with the disk where `fault` comes from it, else None."""
    seen: BaseException | None = fault
    while seen is not None:
        text = str(seen).lower()
        full = getattr(seen, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "database or disk is full" in text
        if full or ("disk i/o error" in text and shutil.disk_usage(ws.root).free < LITTLE):
            return f"{ws.root}: no space left on the disk; free some and run again"
        if getattr(seen, "errno", None) == errno.EROFS or "readonly database" in text:
            return f"{ws.root}: the file system is read-only; make it writable"
        if getattr(seen, "errno", None) == errno.EACCES:
            return f"{ws.root}: permission denied; make it writable for this user"
        seen = seen.__cause__ or seen.__context__
    return None


def damage_line(ws: Workspace, fault: BaseException) -> str | None:
    """Which of Dagster's databases is damaged where `fault`, raised by Dagster, comes from that; else None."""
    seen: BaseException | None = fault
    while seen is not None:
        kind, text = type(seen), str(seen).lower()
        if (
            kind.__module__.startswith("alembic.")
            or kind.__name__ == "NoSuchTableError"
            or any(word in text for word in DAMAGE)
        ):
            found = damaged_databases(ws)
            return (
                f"{found[0] if found else ws.dagster_home}: damaged; move it away (Dagster's history of runs begins "
                "anew, the store is not touched) and run again"
            )
        seen = seen.__cause__ or seen.__context__
    return None


def damaged_databases(ws: Workspace) -> list[Path]:
    """Dagster's databases that SQLite cannot read, sorted."""
    return [path for path in sorted(ws.dagster_home.rglob("*.db")) if not _is_sound(path)]


def _is_sound(path: Path) -> bool:
    try:
        open_regular(path).close()
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as db:
            return db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError as fault:
        return "locked" in str(fault)
    except (OSError, sqlite3.Error):
        return False


def process_mark() -> str:
    """`pid:start time`: process ids are reused."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def _started(pid: int) -> str:
    """Start time of a process in clock ticks; empty where /proc is missing or the process is gone."""
    with contextlib.suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        return stat.rsplit(")", 1)[1].split()[19]
    return ""


def _alive(mark: str) -> bool:
    pid, _, started = mark.partition(":")
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):
        return True
    return not started or _started(int(pid)) in ("", started)


def reap(instance: DagsterInstance) -> int:
    """Mark runs whose process was killed as failed; they would stay STARTED for ever and block the queue.

    Returns:
        how many runs were marked.
    """
    unfinished = RunsFilter(statuses=[DagsterRunStatus.STARTED, DagsterRunStatus.STARTING])
    runs = [record.dagster_run for record in instance.get_run_records(unfinished)]
    dead = [run for run in runs if PID_TAG in run.tags and not _alive(run.tags[PID_TAG])]
    for run in dead:
        instance.report_run_failed(run, message="its process was killed; what it had committed is kept")
    return len(dead)
