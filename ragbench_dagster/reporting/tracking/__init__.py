"""experiment_run[D]: the night in the team's tracker, MLflow and Weights & Biases, where one is configured.

A night materialised again updates its run. What can change is never a parameter, names are spelled so that every
tracker takes them and no two meet, and a metric without a value is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.registry import member
from ragbench_dagster.settings import Tracking
from ragbench_dagster.store import Workspace


@dataclass(frozen=True, slots=True)
class Tracker:
    """A place that shows runs of experiments.

    Args:
        title: as messages name it.
        chosen: whether the settings ask for it.
        track: `module:function` that writes or updates a night's run: `(workspace, record) -> what was done`.
        remove: `module:function` that removes it: `(workspace, identity, day) -> one line on what was done, or ""`.
    """

    title: str
    chosen: Callable[[Tracking], bool]
    track: str
    remove: str


_HERE = "ragbench_dagster.reporting.tracking"
TRACKERS: dict[str, Tracker] = {
    "mlflow": Tracker(
        "MLflow",
        lambda tracking: bool(tracking.mlflow_uri),
        f"{_HERE}.mlflow_tracker:track_mlflow",
        f"{_HERE}.mlflow_tracker:remove_mlflow",
    ),
    "wandb": Tracker(
        "W&B",
        lambda tracking: bool(tracking.wandb_project),
        f"{_HERE}.wandb_tracker:track_wandb",
        f"{_HERE}.wandb_tracker:remove_wandb",
    ),
}


def track(ws: Workspace, day: str) -> dict[str, Any]:
    """Write the night to the trackers that `tracking` in ragbench.yaml names.

    Returns:
        {"tracker": "mlflow, wandb", ...} with each run's id, what was done to it and how many metrics it has;
        {"tracker": "none configured"} where none is.

    Raises:
        UserError: an extra is missing, a tracker cannot be reached; the line names the setting.
    """
    chosen = _chosen(ws)
    if not chosen:
        return {"tracker": "none configured"}
    from ragbench_dagster.reporting.tracking.record import night_record

    record = night_record(ws, day)
    done: dict[str, Any] = {"tracker": ", ".join(chosen)}
    for tracker in chosen.values():
        done |= member(tracker.track)(ws, record)
    return done


def untrack(ws: Workspace, day: str) -> list[str]:
    """Remove the night's runs from the trackers of the settings; lines on what was done and what is left elsewhere."""
    from ragbench_dagster.reporting.tracking.record import night_identity

    identity, lines = night_identity(ws, day), []
    for tracker in _chosen(ws).values():
        try:
            lines.append(member(tracker.remove)(ws, identity, day))
        except UserError as fault:
            lines.append(f"{day}: its {tracker.title} run is still there: {fault}")
    return [f"{day}: {line}" if not line.startswith(day) else line for line in lines if line]


def _chosen(ws: Workspace) -> dict[str, Tracker]:
    return {name: tracker for name, tracker in TRACKERS.items() if tracker.chosen(ws.settings.tracking)}
