"""The persistent Dagster instance of a workspace, shared by `ragbench run` and `ragbench dev`.

DAGSTER_HOME is `<workspace>/.dagster`: telemetry off, no compute-log capture (it would keep printed text),
one run at a time (SQLite).
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, write_text

PID_TAG = "ragbench/process"
LITTLE = 1_000_000  # bytes free below which an I/O error of SQLite means a full disk
MAX_RUNTIME_S = 24 * 3600

CONFIG = f"""\
# Written by ragbench; see the notes in ragbench_dagster/orchestration/instance.py.
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
    """Write dagster.yaml and point DAGSTER_HOME and RAGBENCH_WORKSPACE of this process here."""
    os.umask(0o077)  # Dagster's databases hold the names of assets, days and errors: for this user alone
    home = ws.dagster_home
    write_text(home / "dagster.yaml", CONFIG)
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ["RAGBENCH_WORKSPACE"] = str(ws.root)
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    return home


def open_instance(ws: Workspace) -> DagsterInstance:
    """The workspace's instance; runs of dead processes are marked failed first."""
    prepare_home(ws)
    instance = DagsterInstance.get()
    reap(instance)
    return instance


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
        line = disk_line(ws, fault)
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
