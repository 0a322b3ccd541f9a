"""`ragbench label audit`: a few of the week's answers for people to label, evenly from passed and failed ones.

Each week 26 answers of a system, 13 that the judge passed and 13 that it failed. The labels of the last 28 days
say how the judge errs on the answers of these days; from 60 on they replace the calibration rows, from 30 on they
can contradict them (stats/audit_rates.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ragbench_dagster.calibration.blind import (
    Answer,
    answers_of,
    examples_of,
    file_part,
    identity_of,
    labels_of,
    origin,
    read_draws,
    to_label,
    verdicts_of,
    write_draw,
)
from ragbench_dagster.calibration.judged import week_of
from ragbench_dagster.calibration.rows import CalibrationRow
from ragbench_dagster.calibration.stats.audit_rates import AuditCounts
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, digest, read_json

AUDIT = "audit"
A_WEEK = 26  # answers a week: 104 in the 28 days for which labels count
WEEK, COUNTS = 7, 28  # days that an audit draws from, and that its labels count


def draw_audit(ws: Workspace, day: str, system: str, metric: str, n: int = A_WEEK) -> tuple[Path, dict[str, Any]]:
    """Draw answers of the 7 days to `day` for people to label.

    Args:
        metric: a judged metric.
        n: answers; half of them passed, half failed, as far as there are.

    Returns:
        The file to fill in, and what was drawn: {passed, failed, week_passed, week_n}.

    Raises:
        UserError: no such metric, no answers in these days, or this week was drawn already.
    """
    if metric not in ws.settings.judged_metrics:
        known = ", ".join(ws.settings.judged_metrics)
        raise UserError(f"--metric {metric}: no judged metric of this workspace; it has {known}")
    name = f"audit-{system}-{file_part(metric)}-{week_of(day)}"
    judge = identity_of(ws, day, metric)
    if judge is None:
        raise UserError(f"{day}: the judge of {metric} was not calibrated; run: ragbench run --date {day}")
    week = _week(ws, day, system, metric, judge)
    if not week:
        raise UserError(f"{day}: no answer of the system {system!r} was judged for {metric} in the 7 days before")
    taken = _taken(ws, day, system, metric)
    drawn = _balanced([one for one in week if _name(one.answer) not in taken], n, name)
    if not drawn:
        raise UserError(f"{day}: every answer of these days has been drawn in the last {COUNTS} days")
    rows, passed, origins = [], {}, {}
    for one in drawn:
        row = to_label(one.answer, one.example, metric, name)
        rows.append(row)
        passed[row["id"]] = one.verdict
        origins[row["id"]] = origin(one.answer, one.release)
    counts = {"week_passed": sum(one.verdict for one in week), "week_n": len(week)}
    facts = {
        "kind": AUDIT, "system": system, "system_kind": _kind(ws, system), "metric": metric, "day": day,
        "judge": judge, **counts, "passed": dict(sorted(passed.items())), "rows": dict(sorted(origins.items())),
    }  # fmt: skip
    path = write_draw(ws, name, facts, rows)
    return path, {"passed": sum(passed.values()), "failed": len(passed) - sum(passed.values()), **counts}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that may be drawn."""

    answer: Answer
    example: dict[str, Any]
    verdict: int  # 1 where the judge passed it
    release: str


def _week(ws: Workspace, day: str, system: str, metric: str, judge: str) -> list[Candidate]:
    """The distinct answers of the 7 days to `day` that this judge graded, the latest verdict of each."""
    found: dict[str, Candidate] = {}
    releases: dict[str, dict[str, dict[str, Any]]] = {}
    last = date.fromisoformat(day)
    for back in reversed(range(WEEK)):
        night = (last - timedelta(days=back)).isoformat()
        manifest = read_json(ws.night(night) / "manifest.json")
        if manifest is None or identity_of(ws, night, metric) != judge:
            continue
        verdicts, answers = verdicts_of(ws, night, system, metric), answers_of(ws, night, system)
        if manifest["release"] not in releases:
            releases[manifest["release"]] = examples_of(ws, manifest["release"])
        examples = releases[manifest["release"]]
        for name in sorted(verdicts.keys() & answers.keys() & examples.keys()):
            found[_name(answers[name])] = Candidate(answers[name], examples[name], verdicts[name], manifest["release"])
    return [found[name] for name in sorted(found)]


def _name(answer: Mapping[str, Any]) -> str:
    return digest(answer["example_id"], answer["answer_hash"])[:24]


def _kind(ws: Workspace, system: str) -> str:
    found = ws.settings.systems.get(system)
    return str(found.kind) if found is not None else system


def _balanced(week: Sequence[Candidate], n: int, salt: str) -> list[Candidate]:
    """`n` at random, half passed and half failed; where one side has too few the other fills up."""
    order = sorted(week, key=lambda one: digest(salt, _name(one.answer)))
    passed, failed = ([one for one in order if one.verdict == side] for side in (1, 0))
    few_failed, few_passed = len(failed) < n // 2, len(passed) < n - n // 2
    take = n - len(failed) if few_failed else len(passed) if few_passed else n - n // 2
    return [*passed[:take], *failed[: n - min(take, len(passed))]]


def _current(ws: Workspace, day: str, system: str, metric: str) -> dict[str, dict[str, Any]]:
    """Draws of the 28 days to `day`."""
    last = date.fromisoformat(day)
    first, final = (last - timedelta(days=COUNTS - 1)).isoformat(), last.isoformat()
    return {
        name: facts
        for name, facts in read_draws(ws, AUDIT).items()
        if facts["system"] == system and facts["metric"] == metric and first <= facts["day"] <= final
    }


def _taken(ws: Workspace, day: str, system: str, metric: str) -> set[str]:
    current = _current(ws, day, system, metric).values()
    return {_name(place) for facts in current for place in facts["rows"].values()}


def audit_counts(
    ws: Workspace, day: str, rows: Sequence[CalibrationRow], system: str, metric: str, judge: str | None
) -> AuditCounts | None:
    """What the audits of the 28 days to `day` say of this judge on this kind of system; None without a label.

    A draw of which nothing is labelled yet does not count; in one that is begun, what is left open counts as unsure.

    Args:
        rows: of `read_calibration`.
        judge: identity hash of the night's judge.
    """
    sums = dict.fromkeys(("passed", "passed_good", "failed", "failed_good", "week_passed", "week_n", "unsure"), 0)
    for name, facts in _current(ws, day, system, metric).items():
        if facts["judge"] != judge or facts["system_kind"] != _kind(ws, system):
            continue
        labels = labels_of(rows, name, metric)
        known = {key: verdict for key, verdict in facts["passed"].items() if key in labels}
        if not known:
            continue
        for key, verdict in known.items():
            side = "passed" if verdict else "failed"
            sums[side] += 1
            sums[f"{side}_good"] += labels[key]
        sums["unsure"] += len(facts["passed"]) - len(known)
        sums["week_passed"] += facts["week_passed"]
        sums["week_n"] += facts["week_n"]
    return AuditCounts(**sums) if sums["week_n"] else None
