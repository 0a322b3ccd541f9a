"""The accepted nights: what a person, or the first night that passed its floors, made the measure of losses.

A margin is the loss allowed SINCE the accepted night. The last passing night as the measure would let a small
loss of every night pass for ever (a loss of .005 a night passes until .15 is lost).

    store/accepted.json   [{night, release, by, why, when, automatic, scores: {SYSTEM: HASH}, versions}, ...]   in order

`scores` are hashes of the night's figures: a night that was run again with other results is no longer what
was accepted. How a night is compared with it belongs to `baselines` and `linked`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from ragbench_dagster.errors import UserError
from ragbench_dagster.metrics import is_judged
from ragbench_dagster.reporting.night_results import Night, Scores, nights_before
from ragbench_dagster.results import GateDecision, Stored
from ragbench_dagster.store import Workspace, digest, read_json, read_struct, write_json

GATE = "the gate"


class Accepted(Stored, frozen=True):
    """One acceptance. `when` is None where the gate accepted by itself: its files do not depend on the clock."""

    night: str
    release: str
    by: str
    why: str
    when: str | None = None
    automatic: bool = False
    scores: dict[str, str] = {}
    versions: dict[str, str] = {}  # of its systems


def accepted_path(ws: Workspace) -> Path:
    return ws.store / "accepted.json"


def acceptances(ws: Workspace) -> list[Accepted]:
    """All acceptances, oldest first.

    Raises:
        UserError: a damaged file.
    """
    anew = "restore it, or delete it and accept a night anew: ragbench accept NIGHT --by NAME --why REASON"
    return read_struct(accepted_path(ws), list[Accepted], anew) or []


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
    if ws.sampled(0).result(day, GateDecision) is None:
        raise UserError(f"{night.folder}: the night was never decided; run: ragbench run --date {day}")
    stamp = when or datetime.now(UTC).isoformat(timespec="seconds")
    versions = dict(night.manifest.systems)
    entry = Accepted(day, night.manifest.release, by.strip(), why.strip(), stamp, False, score_hashes(night), versions)
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
    versions = dict(night.manifest.systems)
    if entries:
        (last,) = entries[-1:]
        if len(entries) > 1 or not last.automatic or last.night != night.day or last.versions != versions:
            return None
    why = "the first night that passed its floors"
    release = night.manifest.release
    entry = Accepted(night.day, release, GATE, why, None, True, score_hashes(night), versions)
    _write(night.ws, [entry])
    return entry


def renew(ws: Workspace, day: str) -> None:
    """The accepted night `day` lost rows by law: it stays accepted, by the same person, with what it has now."""
    night = Night.open(ws.sampled(0), day)
    release, scores = night.manifest.release, score_hashes(night)
    _write(ws, [replace(e, release=release, scores=scores) if e.night == day else e for e in acceptances(ws)])


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
    write_json(accepted_path(ws), entries)


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


# What a system is compared with: the accepted night, the last that passed, a named night, or another system.
#
# Full nights alone are baselines: a night of `run --sample` is compared with the same examples of a full one. How
# an accepted night is followed over later releases belongs to `comparability`.

MEMORY = 30  # nights that are searched for what a system could do before
LABELS = ("expected_doc_ids", "expected_grades", "expected_answer")


@dataclass(frozen=True)
class Baseline:
    """The other side of a comparison. `night` is tonight for another system."""

    name: str  # how it is shown: system bm25, night 2026-11-27, the accepted night 2026-11-03
    night: Night
    system: str
    accepted: Accepted | None = None  # set: followed over the releases since then


@dataclass(frozen=True)
class Pairs:
    """Scores of both sides; `new` and `old` index the shared, scored, equally labelled examples."""

    after: Scores
    before: Scores
    new: Any
    old: Any
    day_before: str | None = None  # the baseline's night; None for another system

    @property
    def n(self) -> int:
        return len(self.new)


class Baselines:
    """Finds baselines and opens each night once."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.full: Workspace = night.ws.sampled(0)
        # a sampled night may be compared with the full night of the same day
        self.before = night.day + "~" if night.ws.sample else night.day
        self._open: dict[str, Night | None] = {}
        self._unequal: dict[tuple[str, str], set[str]] = {}
        self._scores: dict[str, dict[str, str]] = {}

    def find(self, system: str, wanted: str) -> tuple[Baseline | None, str]:
        """The baseline `wanted` (accepted, last_passed, YYYY-MM-DD or a system) of `system`, or why there is none."""
        night = self.night
        if wanted in night.systems:
            return (
                (None, "a system is not compared with itself")
                if wanted == system
                else (Baseline(f"system {wanted}", night, wanted), "")
            )
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", wanted):
            other = self.opened(wanted)
            if other is None or system not in other.systems:
                return None, f"night {wanted} has no results of {system} in the store"
            return Baseline(f"night {wanted}", other, system), ""
        if wanted == "accepted":
            return self.accepted(system)
        if wanted == "last_passed":
            found = self.last_passed(system)
            return (found, "") if found else (None, "no night before this one has passed")
        return None, f"no answers of {wanted} tonight, and no night is called so"

    def accepted(self, system: str) -> tuple[Baseline | None, str]:
        """The accepted night's results of `system`, or why there are none."""
        entry = accepted_for(self.full, self.before)
        if entry is None:
            return None, "no night is accepted yet"
        other = self.opened(entry.night)
        anew = "accept a night anew: ragbench accept NIGHT --by NAME --why REASON"
        if other is None:
            return None, f"the accepted night {entry.night} is gone from the store; {anew}"
        if system not in other.systems:
            return None, f"the accepted night {entry.night} has no results of {system}; {anew}"
        if entry.scores.get(system) != self._hashes(other).get(system):
            return None, f"the accepted night {entry.night} was run again with other results; {anew}"
        return Baseline(f"the accepted night {entry.night}", other, system, entry), ""

    def _hashes(self, night: Night) -> dict[str, str]:
        if night.day not in self._scores:
            self._scores[night.day] = score_hashes(night)
        return self._scores[night.day]

    def last_passed(self, system: str) -> Baseline | None:
        for day in nights_before(self.full, self.before):
            gate = self.full.result(day, GateDecision)
            if gate and gate.verdict == "pass" and (other := self.opened(day)) and system in other.systems:
                return Baseline(f"night {day}", other, system)
        return None

    def night_before(self, system: str) -> Baseline | None:
        for day in nights_before(self.full, self.before):
            if (other := self.opened(day)) and system in other.systems:
                return Baseline(f"night {day}", other, system)
        return None

    def last_scored(self, system: str, metric: str) -> str | None:
        """The latest of the nights before (MEMORY of them) on which the system had a score of the metric.

        A system that gave passages then and gives none now has lost its index: not the same as one that never
        retrieves, to which the metric does not apply.
        """
        for day in nights_before(self.full, self.before)[:MEMORY]:
            summary = read_json(self.full.night(day) / "summary.json") or {}
            figures = summary.get("systems", {}).get(system, {}).get("metrics", {}).get(metric)
            if figures and figures["overall"]["n"]:
                return day
        return None

    def opened(self, day: str) -> Night | None:
        """The full night of `day`; None where the store has none."""
        if day not in self._open:
            folder = self.full.night(day)
            ready = (folder / "manifest.json").exists() and (folder / "scores.parquet").exists()
            self._open[day] = Night.open(self.full, day) if ready else None
        return self._open[day]

    def differs(self, baseline: Baseline, metric: str) -> str | None:
        """Why figures of `metric` cannot be compared with the baseline's; None where they can."""
        if not is_judged(metric) or baseline.night is self.night:
            return None
        now, then = self.night.identity(metric), baseline.night.identity(metric)
        if now != then:
            return f"the judge or its template changed since {baseline.name}"
        return None

    def pairs(self, baseline: Baseline, scores: Scores) -> Pairs | None:
        """Shared examples with a score on both sides; None where the baseline lacks the metric."""
        before = baseline.night.scores.get((baseline.system, scores.metric))
        if before is None:
            return None
        unequal = self.relabelled(baseline.night)
        new, old = [], []
        for row in np.flatnonzero(scores.counted):
            name = scores.ids[row]
            other = before.place.get(name)
            if other is not None and before.counted[other] and name not in unequal:
                new.append(row)
                old.append(other)
        day = None if baseline.night is self.night else baseline.night.day
        return Pairs(scores, before, np.array(new, dtype=int), np.array(old, dtype=int), day)

    def relabelled(self, other: Night, night: Night | None = None) -> set[str]:
        """Examples whose labels differ between two releases (default: tonight's): they measure different things."""
        one, two = other.manifest.release, (night or self.night).manifest.release
        if one == two:
            return set()
        if (one, two) not in self._unequal:
            try:
                then = _labels(other)
            except UserError:  # forgotten or deleted: nothing can be said about its labels
                then = {}
            now = _labels(night or self.night)
            self._unequal[one, two] = {k for k, v in now.items() if k in then and then[k] != v}
        return self._unequal[one, two]


def _labels(night: Night) -> dict[str, tuple[Any, ...]]:
    columns = [night.examples[name].to_pylist() for name in LABELS]
    ids = night.examples["example_id"].to_pylist()
    return {name: tuple(map(repr, values)) for name, *values in zip(ids, *columns, strict=True)}


BUILT_IN = "ragbench_dagster.evaluation.bm25:build"


def gate_systems(night: Night) -> list[str]:
    """The systems that the gate decides on: `gate.systems`, or all but the built-in bm25 where there is another.

    Systems of the settings count even where the night has no answers of theirs: they are missing then.
    """
    settings = night.ws.settings
    if settings.gate.systems != "all":
        return list(settings.gate.systems)
    names = sorted({*settings.systems, *night.systems})
    others = [name for name in names if not _built_in(night, name)]
    return others or names


def _built_in(night: Night, name: str) -> bool:
    found = night.ws.settings.systems.get(name)
    return name == "bm25" if found is None else getattr(found, "engine", None) == BUILT_IN
