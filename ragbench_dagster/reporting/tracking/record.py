"""What a tracker is told of a night: identity, conditions, figures and files. Knows no tracker."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.store import Workspace, digest, dumps, read_json
from ragbench_dagster.text.format import safe_terminal

# Names that every tracker takes, and no two of ours alike.
#
# MLflow refuses `@` and `&` in the name of a metric, cuts at 250 characters, and W&B documents letters, digits and
# underscores only. So the parts of a name are spelled with `[A-Za-z0-9_]` and joined by `/`, which both show as
# sections. The spelling depends on the name alone, never on which other names a night has: a chart over nights must
# not break because a category appeared.
#
#     faithfulness -> faithfulness      hit_rate@5 -> hit_rate_at_5      R&D -> R_D_<hash of "R&D">
#
# A name that is plain already stays as it is, unless it could be mistaken for a spelled one; every other name ends in
# a hash of itself. So two different names never meet (but for a collision of 8 hex digits).

MAX_PART = 80  # characters; three parts stay far below MLflow's 250
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_AT_K = re.compile(r"([A-Za-z][A-Za-z0-9_]*)@([1-9][0-9]*)")
_SPELLED = re.compile(r".*_at_[0-9]+|.*_[0-9a-f]{8}")


def part(name: str) -> str:
    """One part of a tracker's name for a system, metric, category or parameter of ours."""
    if len(name) <= MAX_PART:
        if _PLAIN.fullmatch(name) and not _SPELLED.fullmatch(name):
            return name
        at_k = _AT_K.fullmatch(name)
        if at_k and not _SPELLED.fullmatch(at_k[1]):
            return f"{at_k[1]}_at_{at_k[2]}"
    readable = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[: MAX_PART - 10]
    if not readable or not readable[0].isalpha():
        readable = f"x_{readable}".rstrip("_")
    return f"{readable}_{digest(name, size=4)}"


def joined(*names: str) -> str:
    """The parts of a name, each spelled and joined by `/`."""
    return "/".join(part(name) for name in names)


# What a tracker is told of a night: identity, conditions, figures and files. Knows no tracker.

_MARKUP = re.compile(r"[\\`*_{}\[\]<>()#+!|~&-]")
TABLES = ("manifest.json", "summary.json", "summary.parquet", "leaderboard.json", "gate.json", "calibration.json")


@dataclass(frozen=True)
class Record:
    """A night for a tracker.

    `params` never change for a night; everything that can is in `tags`. A metric without a value is not in
    `metrics`. Two records of the same content have the same `content`.
    """

    name: str
    identity: dict[str, str]  # what finds the night's run again
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]
    note: str
    start_ms: int  # the night's day at 00:00 UTC: runs sort by night, whenever they were made
    artefacts: list[Path] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # file name: content

    @property
    def content(self) -> str:
        files = [[p.name, digest(p.read_bytes())] for p in self.artefacts]
        return digest(self.params, self.tags, self.metrics, self.note, files, self.texts)


def night_record(ws: Workspace, day: str) -> Record:
    """The record of a finished night, from the store.

    Raises:
        UserError: the night is not finished.
    """
    manifest = ws.result(day, Manifest)
    summary = read_json(ws.night(day) / "summary.json")
    if manifest is None or summary is None:
        raise UserError(f"{ws.night(day)}: no finished night; run: ragbench run --date {day}")
    gate = ws.result(day, GateDecision)
    identity = night_identity(ws, day)
    texts = {"conditions.json": dumps(manifest) + "\n", **_templates(ws)}
    return Record(
        name=day + (f" sample {ws.sample}" if ws.sample else ""),
        identity=identity,
        params={"night": day},
        tags=_tags(manifest, gate),
        metrics=_metrics(summary),
        note=_note(day, gate),
        start_ms=int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000),
        artefacts=_files(ws, day),
        texts=texts,
    )


def night_identity(ws: Workspace, day: str) -> dict[str, str]:
    """What finds a night's run again."""
    return {"night": day, "workspace": part(ws.root.name), "sample": str(ws.sample)}


def _tags(manifest: Manifest, gate: GateDecision | None) -> dict[str, str]:
    tags = {
        "gate": gate.verdict if gate else "none",
        "release": manifest.release,
        "examples": manifest.examples,
        "code_version": manifest.code_version,
        "settings": manifest.settings_hash,
        "judge": manifest.judge_label,
        "judge_model": manifest.judge_model,
        "judge_settings": dumps({k: v for k, v in manifest.judge.items() if v not in (None, {}, [])}),
    }
    tags |= {f"system.{part(name)}": version for name, version in manifest.systems.items()}
    tags |= {f"template.{part(metric)}": mark for metric, mark in manifest.templates.items()}
    return {key: str(value) for key, value in tags.items() if value is not None}


def _metrics(summary: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float | None] = {"examples": summary.get("examples")}
    for name, system in summary.get("systems", {}).items():
        for metric, figures in system["metrics"].items():
            found |= _figures((name, metric), figures["overall"])
            for row in figures["slices"]:
                found[joined(name, metric, row["dimension"], row["part"])] = row["value"]
        latency = system.get("latency") or {}
        for q in ("p50_ms", "p95_ms", "p99_ms"):
            found[joined(name, f"latency_{q}")] = (latency.get(q) or {}).get("value")
        for key, value in (system.get("cost") or {}).items():
            found[joined(name, f"cost_{key}")] = value if isinstance(value, int | float) else None
    for judge in summary.get("judges", []):
        found[joined("judge", judge[0], "kappa")] = judge[2]
        found[joined("judge", judge[0], "balanced_accuracy")] = judge[3]
    return {key: float(value) for key, value in found.items() if value is not None and math.isfinite(value)}


def _figures(at: tuple[str, str], row: dict[str, Any]) -> dict[str, float | None]:
    """The value under the plain name, what surrounds it below it."""
    found = {joined(*at): row["value"]}
    for key in ("low", "high", "n", "coverage", "mean_score"):
        found[joined(*at, key)] = row.get(key)
    found[joined(*at, "per_request")] = (row.get("per_request") or {}).get("value")
    corrected = row.get("corrected") or {}
    for key, end in (("corrected", "value"), ("corrected_low", "low"), ("corrected_high", "high")):
        found[joined(*at, key)] = corrected.get(end)
    return found


def _note(day: str, gate: GateDecision | None) -> str:
    """The gate's word as Markdown; categories are in the reasons, so what would be markup is escaped."""
    lines = [f"Night {day}: **{gate.verdict.upper() if gate else 'NO GATE'}**", ""]
    lines += [f"- {_MARKUP.sub(_escaped, safe_terminal(str(reason)))}" for reason in (gate.reasons if gate else [])]
    return "\n".join(lines)


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match[0]


def _files(ws: Workspace, day: str) -> list[Path]:
    """Tables and the report, as `tracking.artifacts` says. The report holds scrubbed questions and answers."""
    wanted = ws.settings.tracking.artifacts
    if wanted == "none":
        return []
    paths = [ws.night(day) / name for name in TABLES]
    if wanted == "all":
        from ragbench_dagster.reporting.report import write_report

        paths.append(write_report(ws, day))
    return [p for p in paths if p.exists()]


def _templates(ws: Workspace) -> dict[str, str]:
    """The judge's prompts as files: a tag holds the hash only, and a parameter would be cut at 6,000 characters."""
    from ragbench_dagster.evaluation.judge import build_evaluator

    found = {}
    for metric in ws.settings.judged_metrics:
        judge = ws.settings.judge.for_metric(metric)
        if judge.provider == "embedded":
            continue
        try:
            prompts = build_evaluator(metric, judge, ws).get_prompts()
        except UserError:  # no key in this run: the hash in the tags stands alone
            continue
        text = "\n\n".join(f"# {key}\n{prompt.get_template()}" for key, prompt in sorted(prompts.items()))
        if text:
            found[f"template_{part(metric)}.txt"] = text + "\n"
    return found
