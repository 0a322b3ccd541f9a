"""experiment_run[D]: the night in the team's tracker, MLflow and Weights & Biases, where one is configured.

A night materialised again updates its run. What can change is never a parameter, names are spelled so that every
tracker takes them and no two meet, and a metric without a value is left out.
"""

from __future__ import annotations

from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace


def track(ws: Workspace, day: str) -> dict[str, Any]:
    """Write the night to the trackers that `tracking` in ragbench.yaml names.

    Returns:
        {"tracker": "mlflow, wandb", ...} with each run's id, what was done to it and how many metrics it has;
        {"tracker": "none configured"} where none is.

    Raises:
        UserError: an extra is missing, a tracker cannot be reached; the line names the setting.
    """
    settings = ws.settings.tracking
    if not settings.mlflow_uri and not settings.wandb_project:
        return {"tracker": "none configured"}
    from ragbench_dagster.reporting.tracking.record import night_record

    record = night_record(ws, day)
    told: dict[str, Any] = {"tracker": ", ".join(n for n, on in _trackers(ws) if on)}
    if settings.mlflow_uri:
        from ragbench_dagster.reporting.tracking.mlflow_tracker import track_mlflow

        told |= track_mlflow(ws, record)
    if settings.wandb_project:
        from ragbench_dagster.reporting.tracking.wandb_tracker import track_wandb

        told |= track_wandb(ws, record)
    return told


def untrack(ws: Workspace, day: str) -> list[str]:
    """Remove the night's runs from the trackers of the settings; lines on what was done and what is left elsewhere."""
    settings, told = ws.settings.tracking, []
    from ragbench_dagster.reporting.tracking.record import night_identity

    identity = night_identity(ws, day)
    if settings.mlflow_uri:
        from ragbench_dagster.reporting.tracking.mlflow_tracker import remove_mlflow

        try:
            told.append(remove_mlflow(ws, identity))
        except UserError as fault:
            told.append(f"{day}: its MLflow run is still there: {fault}")
    if settings.wandb_project:
        from ragbench_dagster.reporting.tracking.wandb_tracker import remove_wandb

        told.append(remove_wandb(ws, identity, day))
    return [f"{day}: {line}" if not line.startswith(day) else line for line in told if line]


def _trackers(ws: Workspace) -> list[tuple[str, bool]]:
    settings = ws.settings.tracking
    return [("mlflow", bool(settings.mlflow_uri)), ("wandb", bool(settings.wandb_project))]
