"""The accepted reference: five rounds of verdicts on the sentinel, which drift is measured against.

`ragbench calibrate --accept` takes the rounds of the last nights, each of which judged the sentinel afresh, and
judges what is missing to five now. Rounds of five different nights hold a judge that wanders a little from night
to night; rounds of one session do not, so a reference says where its rounds come from. It is a person's decision
and lies beside the labels, not in the store:

    calibration/accepted.json: {who, when, why, metrics: {METRIC: {identity, rounds: [NIGHT or "judged WHEN n"],
        votes: {ROW_KEY: [passes, rounds]}, threshold, statuses, models, fingerprints}}}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragbench_dagster.calibration import judged
from ragbench_dagster.calibration.judged import Identity, Progress, passing_of, summary_of
from ragbench_dagster.calibration.rows import CalibrationRow, read_calibration
from ragbench_dagster.calibration.sentinel import fitted_threshold, scores_of, sentinel_rows
from ragbench_dagster.calibration.stats.drift import ROUNDS
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import spending
from ragbench_dagster.records import Verdict
from ragbench_dagster.store import Workspace, read_json, write_json

ACCEPT = "calibrate --accept"  # what pays for a reference
LEAST_ROUNDS = 2  # of a row, or it is no reference: with one round nothing tells which verdict is the odd one


def reference_path(ws: Workspace) -> Path:
    return ws.calibration / "accepted.json"


def read_reference(ws: Workspace) -> dict[str, Any]:
    """What `calibration/accepted.json` holds; empty where nobody accepted a judge."""
    return read_json(reference_path(ws)) or {}


def accepted(ws: Workspace, metric: str, identity: Identity) -> dict[str, Any] | None:
    """The accepted reference of this metric and this very judge; None where nobody accepted one."""
    reference = read_reference(ws)
    found = reference.get("metrics", {}).get(metric)
    if not found or found.get("identity", {}).get("hash") != identity.as_dict()["hash"]:
        return None
    return {**found, "when": reference.get("when")}


@dataclass(frozen=True)
class Round:
    """One round of verdicts on sentinel rows."""

    name: str
    passing: dict[str, int | None]
    scores: dict[str, float]  # only of judges whose verdict is a fitted threshold on a score
    facts: dict[str, Any]  # statuses, models, fingerprints

    def votes(self, threshold: float | None) -> Iterator[tuple[str, int]]:
        """Row and verdict, 0 or 1, at one threshold for all rounds."""
        for key, passing in self.passing.items():
            if threshold is not None and key in self.scores:
                yield key, int(self.scores[key] >= threshold)
            elif passing is not None:
                yield key, passing


def accept_reference(
    ws: Workspace, who: str, why: str, progress: Progress = None, when: str | None = None
) -> dict[str, Any]:
    """Record the judge as it answers now: five rounds of verdicts on each sentinel row.

    Args:
        who: the person who accepts.
        why: the reason, in one line.
        when: ISO time; default now (UTC).

    Returns:
        What `calibration/accepted.json` now holds.

    Raises:
        UserError: no name or reason; no labelled rows; a judge that did not answer.
    """
    if not who.strip() or not why.strip():
        raise UserError("calibrate --accept: say who accepts the judge and why")
    when = when or datetime.now(UTC).isoformat(timespec="seconds")
    rows = read_calibration(ws)
    metrics = {}
    for metric in ws.settings.judged_metrics:
        sentinel = sentinel_rows(rows, metric, ws.settings.calibration.sentinel)
        if sentinel:
            nights = _nights(ws, metric)
            fresh = _judged_now(ws, metric, sentinel, ROUNDS - len(nights), when, progress)
            metrics[metric] = _reference(ws, metric, sentinel, [*nights, *fresh])
    if not metrics:
        raise UserError(f"{ws.calibration.name}/: no labelled rows for any judged metric; label some first")
    found = {"who": who.strip(), "why": why.strip(), "when": when, "metrics": metrics}
    write_json(reference_path(ws), found)
    spending.finish(ws, ACCEPT)
    return found


def _judged_now(
    ws: Workspace, metric: str, sentinel: Sequence[CalibrationRow], lacking: int, when: str, progress: Progress
) -> Iterator[Round]:
    """Fresh rounds, as many as the nights lack."""
    items = [row.item for row in sentinel]
    for place in range(lacking):
        name = f"accept {when} {place + 1}"
        yield _round(
            f"judged {when} {place + 1}", sentinel, judged.judge_round(ws, metric, items, name, progress, ACCEPT)
        )


def _round(name: str, rows: Sequence[CalibrationRow], verdicts: Sequence[Verdict]) -> Round:
    pairs = list(zip(rows, verdicts, strict=True))
    passing = {row.key: passing_of(v, None) for row, v in pairs}
    return Round(name, passing, scores_of(rows, verdicts), summary_of(verdicts))


def _nights(ws: Workspace, metric: str) -> list[Round]:
    """Rounds of the last nights that this very judge graded, newest first, at most five.

    Where the last night's judge had moved away from its reference, a person accepts what it moved to: then only the
    nights since count. Else those back to the last one that alarmed.
    """
    identity = judged.identify(ws, metric).as_dict()["hash"]
    found: list[Round] = []
    moved: bool | None = None
    models: list[str] | None = None
    for day in reversed(nights_with_calibration(ws)):
        facts = _facts(ws, day, metric)
        drift = facts.get("drift") or {}
        verdicts = (facts.get("sentinel") or {}).get("verdicts") or {}
        if (facts.get("identity") or {}).get("hash") != identity or not any(v is not None for v in verdicts.values()):
            break
        now = drift.get("state") in ("warning", "drifted")
        if moved is None:
            moved, models = now, drift.get("models")
        if now != moved or drift.get("models") != models or len(found) == ROUNDS:
            break
        scores = (facts["sentinel"].get("scores")) or {}
        told: dict[str, Any] = {"statuses": drift.get("statuses") or {}}
        told |= {name: drift.get(name) or [] for name in ("models", "fingerprints")}
        found.append(Round(day, verdicts, scores, told))
    return found


def nights_with_calibration(ws: Workspace) -> list[str]:
    """Days of the store whose judge was calibrated, oldest first."""
    return sorted(p.parent.name for p in ws.night("x").parent.glob("????-??-??/calibration.json"))


def _facts(ws: Workspace, day: str, metric: str) -> dict[str, Any]:
    found = (read_json(ws.night(day) / "calibration.json") or {}).get("metrics", {}).get(metric)
    return found if isinstance(found, dict) else {}


def alarmed_before(ws: Workspace, day: str, metric: str, reference: dict[str, Any] | None) -> bool:
    """True where the last night before `day` alarmed against this same reference."""
    earlier = [d for d in nights_with_calibration(ws) if d < day]
    if not earlier or reference is None:
        return False
    drift = _facts(ws, earlier[-1], metric).get("drift") or {}
    return bool(drift.get("alarm")) and drift.get("reference") == reference.get("when")


def _reference(
    ws: Workspace, metric: str, sentinel: Sequence[CalibrationRow], rounds: Sequence[Round]
) -> dict[str, Any]:
    wanted = {row.key for row in sentinel}
    threshold = fitted_threshold(ws, metric, sentinel, rounds[0].scores)
    passes: Counter[str] = Counter()
    judged_in: Counter[str] = Counter()
    for one in rounds:
        for key, vote in one.votes(threshold):
            passes[key] += vote
            judged_in[key] += 1
    votes = {key: [passes[key], judged_in[key]] for key in sorted(wanted) if judged_in[key] >= LEAST_ROUNDS}
    if not votes:
        raise UserError(f"calibrate --accept: the judge gave no verdict for {metric}; see `ragbench doctor`")
    statuses: Counter[str] = Counter()
    for one in rounds:
        statuses.update(one.facts["statuses"])
    return {
        "identity": judged.identify(ws, metric).as_dict(),
        "rounds": [one.name for one in rounds],
        "votes": votes,
        "threshold": threshold,
        "statuses": dict(sorted(statuses.items())),
        **{name: sorted({x for one in rounds for x in one.facts[name]}) for name in ("models", "fingerprints")},
    }


def rounds_line(found: dict[str, Any]) -> str:
    """Where the rounds of an accepted reference come from, one readable sentence."""
    names = [name for m in found.get("metrics", {}).values() for name in m.get("rounds", [])]
    metrics = max(len(found.get("metrics", {})), 1)
    now = sum(name.startswith("judged ") for name in names) // metrics
    nights = len(names) // metrics - now
    if now == 0:
        return f"{nights} rounds, of {nights} nights."
    said = f"{nights + now} rounds: {nights} of earlier nights, {now} judged now."
    return (
        said + " Accept again after five nights: rounds of one session miss a judge that wanders from night to night."
    )
