"""What may go after some weeks: nights, traffic and caches. Releases, verdicts and what a kept night needs stay.

A night stays where later ones are measured against it. Traffic stays for as long as a kept night's window reaches
back, so that the night can be run again with the same outcome. Of a day whose text goes, keyed hashes of who asked
what form stay (`asked.parquet`): the law may want them found in the releases.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import date, timedelta

from ragbench_dagster.dataset.release import refresh_day_of
from ragbench_dagster.dataset.requesters import keep_who_asked
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.checkpoint import Checkpoint
from ragbench_dagster.reporting.baselines import needed_nights
from ragbench_dagster.reporting.erased_nights import nights_of, surviving_answers
from ragbench_dagster.results import GateDecision
from ragbench_dagster.store import Workspace, read_json, write_json
from ragbench_dagster.traffic.timestamps import last_days

LEAST_DAYS = 28  # labels drawn from the last four weeks' answers correct the judge
BEFORE = 6  # days before a window that follow-ups and logged answers may reach back
GONE = ".gone-"  # a folder on its way out


@dataclass(frozen=True)
class Outdated:
    """What `prune` removes."""

    nights: list[tuple[int, str]]  # sample (0: full), day
    traffic: list[str]
    needed: list[str]  # nights before the cut that stay, for others are measured against them
    first_kept: str


def outdated(ws: Workspace, keep_days: int) -> Outdated:
    """What is older than `keep_days` before the last night and needed by none that stays.

    Raises:
        UserError: too few days to keep; no night yet.
    """
    if keep_days < LEAST_DAYS:
        raise UserError(f"--keep-days {keep_days}: at least {LEAST_DAYS}, for labels of so many days correct the judge")
    nights = [(night.sample, day) for night, day in nights_of(ws)]
    if not nights:
        raise UserError("no night in the store yet, so nothing to prune; run: ragbench run")
    last = max(day for _, day in nights)
    first = (date.fromisoformat(last) - timedelta(days=keep_days - 1)).isoformat()
    needed = {day for day in _measures(ws) if day < first}
    old = [(sample, day) for sample, day in nights if day < first and (sample or day not in needed)]
    kept = min(day for _, day in nights if day >= first)
    start = last_days(refresh_day_of(ws, kept), ws.settings.dataset.window_days + BEFORE)[0]
    days = sorted(p.name for p in (ws.store / "traffic").glob("????-??-??") if (p / "scrubbed.parquet").exists())
    return Outdated(old, [day for day in days if day < start], sorted(needed), first)


def _measures(ws: Workspace) -> set[str]:
    """Nights that others are measured against: the accepted ones, those that thresholds name, the last that passed."""
    named = {t.baseline for t in ws.settings.thresholds.values() if t.baseline}
    passed = [
        day
        for night, day in nights_of(ws)
        if not night.sample and (gate := night.result(day, GateDecision)) and gate.verdict == "pass"
    ]
    return needed_nights(ws) | named | set(passed[-1:])


def drop(ws: Workspace, old: Outdated) -> dict[str, int]:
    """Remove it; the caller holds the store's lock. Killed half-way, the next call removes the rest.

    Returns:
        Counts of what went.
    """
    for sample, day in old.nights:
        folder = ws.sampled(sample).night(day)
        gone = folder.with_name(GONE + folder.name)
        os.rename(folder, gone)  # whole, or not at all, to everyone who looks
        shutil.rmtree(gone, ignore_errors=True)
    for day in old.traffic:
        folder = ws.traffic(day)
        keep_who_asked(ws, day)
        write_json(folder / "facts.json", {**(read_json(folder / "facts.json") or {"day": day}), "pruned": True})
        for name in ("scrubbed", "sampled", "quarantine"):
            (folder / f"{name}.parquet").unlink(missing_ok=True)
        (ws.store / "cache" / "digests" / f"{day}.parquet").unlink(missing_ok=True)
    answers = _drop_answers(ws) if old.nights else 0
    leftovers(ws)
    return {"nights": len(old.nights), "days of traffic": len(old.traffic), "cached answers": answers}


def leftovers(ws: Workspace) -> int:
    """Remove folders that a killed `prune` left on their way out; returns how many."""
    found = list(ws.store.glob(f"nights*/{GONE}*"))
    for folder in found:
        shutil.rmtree(folder, ignore_errors=True)
    return len(found)


def _drop_answers(ws: Workspace) -> int:
    known, gone = surviving_answers(ws), 0
    for path in sorted((ws.store / "cache" / "answers").glob("*.db")):
        with Checkpoint(path) as checkpoint:
            gone += checkpoint.keep_only(known.get(path.stem, set()))
    return gone
