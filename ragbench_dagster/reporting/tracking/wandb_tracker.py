"""A night as a run of Weights & Biases, online or offline (`wandb sync store/wandb/offline-run-*` later).

One run a night with an id of its own, values in the run's summary and **no step**: W&B drops values of an earlier
step with a mere warning (wandb#5632), and nights are logged out of order. The night itself is in the config, as an
axis for charts. A night materialised again updates the run of the same id; the same content again writes nothing.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from ragbench_dagster.access import private_folder
from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.tracking.record import Record
from ragbench_dagster.store import Workspace, digest, read_json, write_json

START_S = 60  # seconds W&B may take to start a run


def track_wandb(ws: Workspace, record: Record) -> dict[str, Any]:
    """Write the night's run, or update it.

    Returns:
        {"wandb_run", "wandb_change": created|updated|unchanged, "wandb_metrics"}.

    Raises:
        UserError: the extra is missing, the project's name is refused, or W&B cannot be reached.
    """
    settings = ws.settings.tracking
    run_id = digest(settings.wandb_project or "", record.identity, size=8)
    marker = ws.night(record.identity["night"]) / "wandb.json"
    before = read_json(marker) or {}
    told = {"wandb_run": run_id, "wandb_metrics": len(record.metrics)}
    mark = {"run": run_id, "content": record.content, "project": settings.wandb_project, "mode": settings.wandb_mode}
    if before == mark:
        return {**told, "wandb_change": "unchanged"}
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        import wandb
    except ImportError as fault:
        raise UserError(
            "tracking.wandb_project: W&B is not installed; pip install 'ragbench-dagster[wandb]'"
        ) from fault
    old = _offline_runs(ws, run_id)
    try:
        run = wandb.init(
            project=settings.wandb_project,
            id=run_id,
            name=record.name,
            group=settings.experiment,
            dir=str(_folder(ws)),
            mode=settings.wandb_mode,
            resume="allow" if settings.wandb_mode == "online" else None,
            config={**record.params, **record.tags},
            notes=record.note,
            allow_val_change=True,
            settings=wandb.Settings(
                silent=True, console="off", x_disable_stats=True, x_disable_meta=True, disable_git=True,
                disable_code=True, init_timeout=START_S,
            ),
        )  # fmt: skip
        stale = [key for key in dict(run.summary) if not key.startswith("_") and key not in record.metrics]
        for key in stale:
            del run.summary[key]
        run.summary.update(dict(sorted(record.metrics.items())))
        _artefact(wandb, run, record)
        run.finish()
        wandb.teardown()  # else its service goes on writing log files of the finished run
    except (wandb.errors.Error, OSError) as fault:
        raise UserError(
            f"tracking.wandb_project: W&B cannot be used ({type(fault).__name__}); check the key, the project and the "
            "network, or set tracking.wandb_mode: offline"
        ) from None
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)  # superseded by the run just written
    write_json(marker, mark)
    return {**told, "wandb_change": "updated" if before else "created"}


def remove_wandb(ws: Workspace, identity: dict[str, str], day: str) -> str:
    """Remove the folders of a night's offline runs; one line on what was done, and on what W&B's own server keeps."""
    project = ws.settings.tracking.wandb_project or ""
    run_id = digest(project, identity, size=8)
    found = sorted((ws.store / "wandb").glob(f"*run-*-{run_id}"))
    online = any(list(p.glob("*.synced")) or not p.name.startswith("offline-") for p in found)
    for folder in found:
        shutil.rmtree(folder, ignore_errors=True)
    (ws.night(day) / "wandb.json").unlink(missing_ok=True)
    if online:
        return f"W&B keeps the run {run_id} of {project}: delete it there, its next version replaces the figures alone"
    return f"{len(found)} W&B runs removed" if found else ""


def _folder(ws: Workspace) -> Path:
    private_folder(ws.store)
    return ws.store


def _offline_runs(ws: Workspace, run_id: str) -> list[Path]:
    """Folders of this run that were written offline and never synced."""
    found = sorted((ws.store / "wandb").glob(f"offline-run-*-{run_id}"))
    return [p for p in found if not list(p.glob("*.synced"))]


def _artefact(wandb: Any, run: Any, record: Record) -> None:
    """The night's files as one versioned artefact; W&B makes no new version of equal content."""
    if not record.artefacts and not record.texts:
        return
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"night-{record.name}")
    artefact = wandb.Artifact(name, type="night")
    for path in record.artefacts:
        artefact.add_file(str(path), name=path.name, policy="immutable")
    for name, text in sorted(record.texts.items()):
        with artefact.new_file(name, mode="w", encoding="utf-8") as file:
            file.write(text)
    run.log_artifact(artefact)
