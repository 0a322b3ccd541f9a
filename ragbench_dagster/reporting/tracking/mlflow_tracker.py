"""A night as a run of MLflow: a server, a database, or SQLite in the store (`tracking.mlflow_uri: sqlite`).

* One run a night, found again by its tags. The same content again writes nothing.
* MLflow forbids changing a parameter and cuts long ones (mlflow#7152, #7402). So only what identifies the night is
  a parameter; release, judge, templates and versions are tags, which can change and are searched the same way
  (`tags."ragbench.release" = '...'`), and the full conditions are an artefact.
* A metric's latest value is the one of its highest step, then of its highest value: so each revision of a night has
  a step of its own, or a corrected, lower value would never show. MLflow cannot delete one metric: where one has no
  value any more, the night's run is replaced.
* Plain folders (`file:`, `./mlruns`) are in maintenance mode since MLflow 3.7 and raise: they are refused here.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench_dagster.access import private_file
from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.tracking.record import Record
from ragbench_dagster.store import Workspace

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

MAX_TAG = 5_000  # characters; servers before 3 take no more, and what is longer is in the artefact
BATCH = 900  # metrics in one request, of 1,000 allowed; tags 100

# No telemetry, and a server that is down is told within a minute, not after MLflow's own many minutes of retries.
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}


def track_mlflow(ws: Workspace, record: Record) -> dict[str, Any]:
    """Write the night's run, or update it.

    Returns:
        {"mlflow_run", "mlflow_change": created|updated|replaced|unchanged, "mlflow_metrics"}.

    Raises:
        UserError: the extra is missing, or the tracker cannot be used; the line names the setting.
    """
    uri = tracking_uri(ws)
    client = _client(uri)
    from mlflow.exceptions import MlflowException

    try:
        return _write(client, ws, record, uri)
    except (MlflowException, OSError) as fault:
        raise _unusable(fault) from None


def remove_mlflow(ws: Workspace, identity: dict[str, str], day: str = "") -> str:
    """Remove a night's runs, with their files where MLflow keeps them in SQLite here; one line on what was done.

    Raises:
        UserError: as `track_mlflow`.
    """
    del day
    uri = tracking_uri(ws)
    if uri.startswith("sqlite:///") and not Path(uri.removeprefix("sqlite:///")).exists():
        return ""
    client = _client(uri)
    from mlflow.entities import ViewType
    from mlflow.exceptions import MlflowException

    wanted = " and ".join(f"tags.`ragbench.{key}` = '{value}'" for key, value in sorted(identity.items()))
    try:
        found = client.get_experiment_by_name(ws.settings.tracking.experiment)
        if found is None:
            return ""
        runs = list(client.search_runs([found.experiment_id], wanted, ViewType.ALL, max_results=1000))
        for run in runs:
            if run.info.lifecycle_stage == "active":
                client.delete_run(run.info.run_id)
        if not uri.startswith("sqlite:"):
            return f"{len(runs)} MLflow runs deleted; `mlflow gc` on the server removes their files" if runs else ""
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        store: Any = SqlAlchemyStore(uri, found.artifact_location)
        for run in runs:
            artefacts = Path((run.info.artifact_uri or "").removeprefix("file://"))
            if run.info.run_id in artefacts.parts:
                shutil.rmtree(artefacts.parent, ignore_errors=True)
            shutil.rmtree(ws.store / "mlflow-artifacts" / run.info.run_id, ignore_errors=True)  # of a moved workspace
            store._hard_delete_run(run.info.run_id)
        store.engine.dispose()
    except (MlflowException, OSError) as fault:
        raise _unusable(fault) from None
    _vacuum(Path(uri.removeprefix("sqlite:///")))
    return f"{len(runs)} MLflow runs removed" if runs else ""


def _vacuum(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _client(uri: str) -> MlflowClient:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow import MlflowClient
    except ImportError as fault:
        raise UserError(
            "tracking.mlflow_uri: MLflow is not installed; pip install 'ragbench-dagster[mlflow]'"
        ) from fault
    _hush()
    return MlflowClient(tracking_uri=uri)


def _unusable(fault: Exception) -> UserError:
    # The message may hold the URI's password or a server's page: the class and the setting say enough.
    reason = getattr(fault, "error_code", None) or type(fault).__name__
    return UserError(f"tracking.mlflow_uri: MLflow cannot be used ({reason}); is the server up, and the address right?")


def tracking_uri(ws: Workspace) -> str:
    """MLflow's address from the settings.

    Raises:
        UserError: a plain folder.
    """
    named = ws.settings.tracking.mlflow_uri
    uri = named.reveal("tracking.mlflow_uri") if named else ""
    if uri == "sqlite":
        private_file(ws.store / "mlflow.db")
        return f"sqlite:///{ws.store / 'mlflow.db'}"
    if uri.startswith("file:") or not re.match(r"[a-z][a-z0-9+.-]*:", uri):
        raise UserError(
            "tracking.mlflow_uri: MLflow no longer keeps runs in plain folders; write sqlite (in the store), "
            "sqlite:///FILE or a server's http address"
        )
    return uri


def _hush() -> None:
    import logging

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _write(client: MlflowClient, ws: Workspace, record: Record, uri: str) -> dict[str, Any]:
    experiment = _experiment(client, ws, uri)
    runs = _runs(client, experiment, record)
    old = runs[0] if runs else None
    if old is not None and old.data.tags.get("ragbench.content") == record.content:
        _drop(client, runs[1:])
        return _told(old.info.run_id, "unchanged", record)
    change = "created" if old is None else "updated"
    if old is not None and (set(old.data.metrics) - set(record.metrics) or _other_params(old, record)):
        change, old = "replaced", None
    if old is None:
        run = client.create_run(experiment, start_time=record.start_ms, run_name=record.name, tags=_identity(record))
        run_id, step = run.info.run_id, 0
    else:
        run_id, step = old.info.run_id, int(old.data.tags.get("ragbench.revision", "0")) + 1
    _fill(client, run_id, record, step, {} if old is None else old.data.tags)
    _drop(client, [r for r in runs if r.info.run_id != run_id])
    return _told(run_id, change, record)


def _told(run_id: str, change: str, record: Record) -> dict[str, Any]:
    return {"mlflow_run": run_id, "mlflow_change": change, "mlflow_metrics": len(record.metrics)}


def _experiment(client: MlflowClient, ws: Workspace, uri: str) -> str:
    name = ws.settings.tracking.experiment
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    # Without a server, MLflow would put the files of a database's runs in the current folder.
    local = Path(ws.store / "mlflow-artifacts").as_uri() if uri.startswith("sqlite:") else None
    return str(client.create_experiment(name, artifact_location=local))


def _identity(record: Record) -> dict[str, str]:
    return {f"ragbench.{key}": value for key, value in record.identity.items()}


def _runs(client: MlflowClient, experiment: str, record: Record) -> list[Run]:
    """The runs of this night: one, or two after a crash in the middle of a replacement (the complete one first)."""
    wanted = " and ".join(f"tags.`{key}` = '{value}'" for key, value in sorted(_identity(record).items()))
    found = list(client.search_runs([experiment], wanted, max_results=50))
    return sorted(found, key=lambda r: ("ragbench.content" not in r.data.tags, -r.info.start_time, r.info.run_id))


def _other_params(run: Run, record: Record) -> bool:
    return any(record.params.get(key, value) != value for key, value in run.data.params.items())


def _fill(client: MlflowClient, run_id: str, record: Record, step: int, old_tags: dict[str, str]) -> None:
    """Everything of the night; the content's hash comes last, so that a killed update is made again."""
    from mlflow.entities import Metric, Param, RunTag

    params = [Param(key, value) for key, value in sorted(record.params.items())]
    values = [Metric(key, value, record.start_ms, step) for key, value in sorted(record.metrics.items())]
    tags = {f"ragbench.{key}": value for key, value in record.tags.items()}
    tags = {key: _short(value) for key, value in tags.items()} | {"mlflow.note.content": _short(record.note)}
    for gone in sorted(k for k in old_tags if k.startswith("ragbench.") and k not in tags | _identity(record)):
        if gone not in ("ragbench.content", "ragbench.revision"):
            client.delete_tag(run_id, gone)
    client.log_batch(run_id, params=params)
    for some in _batches(values, BATCH):
        client.log_batch(run_id, metrics=some)
    for some in _batches([RunTag(key, value) for key, value in sorted(tags.items())], 90):
        client.log_batch(run_id, tags=some)
    for path in record.artefacts:
        client.log_artifact(run_id, str(path))
    for name, text in sorted(record.texts.items()):
        client.log_text(run_id, text, name)
    client.set_tag(run_id, "ragbench.revision", str(step))
    client.set_terminated(run_id, "FINISHED", end_time=record.start_ms)
    client.set_tag(run_id, "ragbench.content", record.content)


def _short(value: str) -> str:
    """The value, or its start with a note that the artefact holds all of it."""
    note = " … (all of it: conditions.json)"
    return value if len(value) <= MAX_TAG else value[: MAX_TAG - len(note)] + note


def _batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _drop(client: MlflowClient, runs: list[Run]) -> None:
    for run in runs:
        client.delete_run(run.info.run_id)
