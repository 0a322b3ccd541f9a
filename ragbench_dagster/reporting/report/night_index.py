"""The index page: every night of the store, newest first."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragbench_dagster.reporting.report.sanitise import flat
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.store import Workspace, read_json

MOST_METRICS = 12  # columns; the others are on the nights' own pages


@dataclass(frozen=True)
class IndexRow:
    """One system on one night."""

    day: str
    link: str  # "" where the night has no page
    verdict: str
    system: str
    values: list[float | None]
    examples: int | None
    release: str
    judge: str
    reason: str


@dataclass(frozen=True)
class IndexView:
    """All nights of a workspace."""

    workspace: str
    metrics: list[str]
    rows: list[IndexRow] = field(default_factory=list)
    counts: list[tuple[str, int]] = field(default_factory=list)


def index_view(ws: Workspace) -> IndexView:
    """All nights that have a manifest, finished or not."""
    folder = ws.night("x").parent
    days = sorted((p.parent.name for p in folder.glob("????-??-??/manifest.json")), reverse=True)
    manifests = {day: manifest for day in days if (manifest := ws.result(day, Manifest)) is not None}
    metrics = list(dict.fromkeys(m for manifest in manifests.values() for m in manifest.metrics))
    rows: list[IndexRow] = []
    counts: dict[str, int] = {}
    for day, manifest in manifests.items():
        gate = ws.result(day, GateDecision)
        verdict = gate.verdict if gate else "none"
        counts[verdict] = counts.get(verdict, 0) + 1
        rows += _rows(ws, manifest, gate, metrics[:MOST_METRICS])
    order = [v for v in ("fail", "inconclusive", "pass", "none") if v in counts]
    return IndexView(flat(ws.root.name, 60), metrics[:MOST_METRICS], rows, [(v, counts[v]) for v in order])


def _rows(ws: Workspace, manifest: Manifest, gate: GateDecision | None, metrics: list[str]) -> list[IndexRow]:
    day = manifest.day
    summary = read_json(ws.night(day) / "summary.json") or {}
    link = f"{day}/report.html" if (ws.night(day) / "report.html").exists() else ""
    systems = summary.get("systems") or {"–": {"metrics": {}}}
    return [
        IndexRow(
            day=day,
            link=link,
            verdict=gate.verdict if gate else "none",
            system=name,
            values=[((system["metrics"].get(m) or {}).get("overall") or {}).get("value") for m in metrics],
            examples=manifest.examples,
            release=flat(manifest.release or "", 80),
            judge=flat(manifest.judge_model or manifest.judge_label or "", 60),
            reason=flat(gate.reasons[0], 200) if gate and gate.reasons else "",
        )
        for name, system in systems.items()
    ]
