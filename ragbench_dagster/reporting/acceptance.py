"""The accepted nights: what a person, or the first night that passed its floors, made the measure of losses.

A margin is the loss allowed SINCE the accepted night. The last passing night as the measure would let a small
loss of every night pass for ever (a loss of .005 a night passes until .15 is lost).

    store/accepted.json   [{night, release, by, why, when, automatic, scores: {SYSTEM: HASH}, versions}, ...]   in order

`scores` are hashes of the night's figures: a night that was run again with other results is no longer what
was accepted. How a night is compared with it belongs to `baseline` and `linked`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.night import Night
from ragbench_dagster.store import Workspace, digest, read_json, write_json

GATE = "the gate"


@dataclass(frozen=True, slots=True)
class Accepted:
    """One acceptance. `when` is None where the gate accepted by itself: its files do not depend on the clock."""

    night: str
    release: str
    by: str
    why: str
    when: str | None = None
    automatic: bool = False
    scores: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)  # of its systems


def accepted_path(ws: Workspace) -> Path:
    return ws.store / "accepted.json"


def acceptances(ws: Workspace) -> list[Accepted]:
    """All acceptances, oldest first.

    Raises:
        UserError: a damaged file.
    """
    found = read_json(accepted_path(ws)) or []
    try:
        return [Accepted(**entry) for entry in found]
    except TypeError as fault:
        raise UserError(f"{accepted_path(ws)}: not a list of accepted nights; restore it, or delete it and accept a "
                        "night anew: ragbench accept NIGHT --by NAME --why REASON") from fault  # fmt: skip


def accepted_for(ws: Workspace, day: str) -> Accepted | None:
    """What the night `day` is measured against: the latest acceptance of a night before it."""
    before = [entry for entry in acceptances(ws) if entry.night < day]
    return before[-1] if before else None


def accepted_name(ws: Workspace, day: str) -> str | None:
    """The accepted night that `day` was measured against, for the record."""
    entry = accepted_for(ws, day)
    return entry.night if entry else None


def score_hashes(night: Night) -> dict[str, str]:
    """System -> hash of its statuses and values of a night."""
    found: dict[str, list[Any]] = {}
    for (system, metric), scores in sorted(night.scores.items()):
        values = np.nan_to_num(scores.value, nan=-1.0)
        found.setdefault(system, []).append(
            digest(metric, scores.ids.tolist(), scores.status.tolist(), values.tolist())
        )
    return {system: digest(parts) for system, parts in found.items()}


def accept_night(ws: Workspace, day: str, by: str, why: str, when: str | None = None) -> Accepted:
    """A person accepts the night `day`: from now on margins are losses since then.

    Args:
        by: who accepts.
        why: the reason, in one line.
        when: ISO time; default now (UTC).

    Raises:
        UserError: no name or reason; no such full night.
    """
    for name, value in (("--by", by), ("--why", why)):
        if not value.strip():
            raise UserError(f"accept needs {name}: who accepts a night, and why, stands beside every later comparison")
    night = Night.open(ws.sampled(0), day)
    if read_json(night.folder / "gate.json") is None:
        raise UserError(f"{night.folder}: the night was never decided; run: ragbench run --date {day}")
    stamp = when or datetime.now(UTC).isoformat(timespec="seconds")
    versions = dict(night.manifest.get("systems") or {})
    entry = Accepted(
        day, night.manifest["release"], by.strip(), why.strip(), stamp, False, score_hashes(night), versions
    )
    _write(ws, [*acceptances(ws), entry])
    return entry


def accept_first(night: Night, verdict: str) -> Accepted | None:
    """The gate's own acceptance: the first night that passes while nothing is accepted.

    Once made it is taken back by a person alone: deciding a night again under other thresholds forgives nothing. That
    night run again with the same versions (late logs) renews what it holds; with others it is no measure any more.
    """
    if night.ws.sample or verdict != "pass":
        return None
    entries = acceptances(night.ws)
    versions = dict(night.manifest.get("systems") or {})
    if entries:
        (last,) = entries[-1:]
        if len(entries) > 1 or not last.automatic or last.night != night.day or last.versions != versions:
            return None
    why = "the first night that passed its floors"
    release = night.manifest["release"]
    entry = Accepted(night.day, release, GATE, why, None, True, score_hashes(night), versions)
    _write(night.ws, [entry])
    return entry


def renew(ws: Workspace, day: str) -> None:
    """The accepted night `day` lost rows by law: it stays accepted, by the same person, with what it has now."""
    night = Night.open(ws.sampled(0), day)
    now = {"release": night.manifest["release"], "scores": score_hashes(night)}
    _write(ws, [replace(entry, **now) if entry.night == day else entry for entry in acceptances(ws)])


def holds(ws: Workspace, day: str) -> bool:
    """True where the night `day` is accepted, and still is what was accepted."""
    entries = [entry for entry in acceptances(ws) if entry.night == day]
    return bool(entries) and entries[-1].scores == score_hashes(Night.open(ws.sampled(0), day))


def keep_until(ws: Workspace, shadow: Workspace, night: str | None) -> None:
    """Give `shadow` the acceptances as they were when the acceptance of `night` was the latest; none: none."""
    entries = acceptances(ws)
    last = max((i for i, entry in enumerate(entries) if entry.night == night), default=-1)
    _write(shadow, entries[: last + 1])


def _write(ws: Workspace, entries: list[Accepted]) -> None:
    write_json(accepted_path(ws), [asdict(entry) for entry in entries])


def needed_nights(ws: Workspace) -> set[str]:
    """Nights that later comparisons read: every accepted one, and the first of each release after the last of them."""
    entries = acceptances(ws)
    if not entries:
        return set()
    last = entries[-1].night
    needed = {entry.night for entry in entries}
    full = ws.sampled(0)
    seen: set[str] = set()
    for path in sorted(full.night("x").parent.glob("????-??-??/manifest.json")):
        release = (read_json(path) or {}).get("release")
        if release is not None and path.parent.name >= last and release not in seen:
            seen.add(release)
            needed.add(path.parent.name)
    return needed
