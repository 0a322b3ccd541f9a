"""A night as pandas frames, for a notebook. Reads the store only; nothing is run.

    import ragbench_dagster
    night = ragbench_dagster.load("2026-11-28", workspace="data")
    night.scores.groupby(["system", "metric"])["value"].mean()

DuckDB and polars need nothing of ours: the store is plain Parquet (`store/nights/DAY/scores.parquet`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench_dagster.errors import UserError
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.store import Workspace, read_json, read_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Night:
    """One night; each frame is read when it is first asked for."""

    ws: Workspace
    day: str

    @cached_property
    def manifest(self) -> Manifest:
        """The conditions: release, system versions, judge, templates."""
        return self.ws.result(self.day, Manifest) or Manifest(release="")

    @cached_property
    def gate(self) -> GateDecision | None:
        """The gate's verdict with its reasons and rows; None where the night was not decided."""
        return self.ws.result(self.day, GateDecision)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row for each system, metric and example (records.SCORES)."""
        return self._frame(self.ws.night(self.day) / "scores.parquet")

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The summary's figures in long form."""
        return self._frame(self.ws.night(self.day) / "summary.parquet")

    @cached_property
    def responses(self) -> pd.DataFrame:
        """All systems' answers (records.RESPONSES), with a column `system`."""
        return self._systems("responses.parquet")

    @cached_property
    def timings(self) -> pd.DataFrame:
        """All systems' own times in milliseconds, with a column `system`."""
        return self._systems("timings.parquet")

    @cached_property
    def examples(self) -> pd.DataFrame:
        """The examples of the night's release (records.EXAMPLES); the release's hash is verified."""
        from ragbench_dagster.dataset.release import load_release

        return load_release(self.ws, self.manifest.release).examples.to_pandas()

    @cached_property
    def leaderboard(self) -> pd.DataFrame:
        """Systems ranked per metric."""
        import pandas as pd

        found = read_json(self.ws.night(self.day) / "leaderboard.json") or {}
        return pd.DataFrame(found.get("rows", []))

    def _frame(self, path: Path) -> pd.DataFrame:
        return read_table(path).to_pandas()

    def _systems(self, name: str) -> pd.DataFrame:
        import pandas as pd

        parts = []
        for system in sorted(self.manifest.systems):
            path = self.ws.night(self.day, system) / name
            if path.exists():
                frame = self._frame(path)
                frame.insert(0, "system", system)
                parts.append(frame)
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"system": []})


def load(night: str | date | None = None, workspace: str | Path | None = None, sample: int = 0) -> Night:
    """A night of a workspace's store.

    Args:
        night: its day (YYYY-MM-DD or a date); default: the last one.
        workspace: the folder; default RAGBENCH_WORKSPACE, else `data`.
        sample: N for a night of `run --sample N`.

    Raises:
        UserError: no such workspace or night.
    """
    ws = Workspace.open(workspace or os.environ.get("RAGBENCH_WORKSPACE") or "data").sampled(sample)
    folder = ws.night("x").parent
    known = sorted(p.parent.name for p in folder.glob("????-??-??/manifest.json"))
    day = night.isoformat() if isinstance(night, date) else night
    if day is None and known:
        day = known[-1]
    if day not in known:
        hint = f"; the last night is {known[-1]}" if known else "; run: ragbench run"
        raise UserError(f"no night {day or ''} in {folder}{hint}".replace("night  in", "night in"))
    return Night(ws, str(day))
