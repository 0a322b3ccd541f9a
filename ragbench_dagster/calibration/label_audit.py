"""`ragbench label audit`: a few of the week's answers for people to label, evenly from passed and failed ones.

Each week 26 answers of a system, 13 that the judge passed and 13 that it failed. The labels of the last 28 days
say how the judge errs on the answers of these days; from 60 on they replace the calibration rows, from 30 on they
can contradict them (stats/audit_rates.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench_dagster.calibration.judged_rows import week_of
from ragbench_dagster.calibration.labelled_answers import CalibrationRow
from ragbench_dagster.dataset.release import load_release
from ragbench_dagster.errors import UserError
from ragbench_dagster.results import Manifest
from ragbench_dagster.stats.correction import AuditCounts
from ragbench_dagster.store import Workspace, digest, read_json, read_table, write_json, write_text
from ragbench_dagster.traffic.timestamps import last_days

# Answers drawn for people to label who must not know what the judge said of them.
#
# A draw is a file `calibration/NAME.jsonl` with rows to fill in, and an entry of `calibration/draws.json` that holds
# what a person filling them in should not see: the judge's verdicts, which of two answers is the new one, and how
# many answers they were drawn from. Rows say only which draw they belong to.

Answer = dict[str, Any]  # a row of responses.parquet


def draws_path(ws: Workspace) -> Path:
    return ws.calibration / "draws.json"


def read_draws(ws: Workspace, kind: str) -> dict[str, dict[str, Any]]:
    """Name -> facts of all draws of this kind; empty where none was made.

    Raises:
        UserError: a file that was changed by hand into something else.
    """
    found = read_json(draws_path(ws)) or {}
    if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
        raise UserError(f"{draws_path(ws).name}: must hold what was drawn for labelling; restore it")
    return {name: facts for name, facts in sorted(found.items()) if facts.get("kind") == kind}


def write_draw(ws: Workspace, name: str, facts: dict[str, Any], rows: Iterable[dict[str, Any]]) -> Path:
    """Write a draw's rows in an order that tells nothing, then its facts.

    Raises:
        UserError: a file of that name exists.
    """
    path = ws.calibration / f"{name}.jsonl"
    if path.exists():
        raise UserError(f"{path.name}: exists already; label its rows, or move it away to draw anew")
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    write_text(path, "".join(line + "\n" for line in sorted(lines, key=lambda line: digest(name, line))))
    known = read_json(draws_path(ws)) or {}
    write_json(draws_path(ws), {**known, name: facts})
    return path


def to_label(answer: Answer, example: dict[str, Any], metric: str, draw: str) -> dict[str, Any]:
    """A row to be labelled: what the person needs to see and nothing of the judge. Its `id` tells nothing either."""
    return {
        "id": digest(draw, answer["example_id"], answer["answer_hash"])[:16],
        "query": example["query"],
        "history": example["history"] or [],
        "contexts": answer["contexts"] or [],
        "response": answer["response"],
        "reference": example["expected_answer"],
        "human": {metric: None},
        "draw": draw,
    }


def origin(answer: Answer, release: str) -> dict[str, str]:
    """Where a drawn answer comes from: kept beside the verdicts, so that `forget` finds what it must remove."""
    return {"release": release, "example_id": answer["example_id"], "answer_hash": answer["answer_hash"]}


def forget_drawn(
    ws: Workspace, gone: Mapping[str, set[str]], successors: Mapping[str, str], hashes: set[str]
) -> dict[str, set[str]]:
    """Take a person's answers out of `draws.json`; draws lose them as if they had never been drawn.

    Args:
        gone: release -> examples that are removed from it.
        successors: release -> the one in its place.
        hashes: answers that are removed.

    Returns:
        Draw -> ids of the rows to be removed from its file.
    """
    known = read_json(draws_path(ws)) or {}
    found: dict[str, set[str]] = {}
    renewed = {}
    for name, facts in known.items():
        rows = facts.get("rows", {})
        out = {
            own
            for own, place in rows.items()
            if place["example_id"] in gone.get(place["release"], ()) or place["answer_hash"] in hashes
        }
        if out:
            found[name] = out
        kept = {own: {**place, "release": successors.get(place["release"], place["release"])}
                for own, place in rows.items() if own not in out}  # fmt: skip
        renewed[name] = {**facts, "rows": kept}
        if "passed" in facts:
            renewed[name]["passed"] = {own: v for own, v in facts["passed"].items() if own not in out}
        if "pairs" in facts:
            renewed[name]["pairs"] = [p for p in facts["pairs"] if p["old"] not in out and p["new"] not in out]
    if renewed != known:
        write_json(draws_path(ws), renewed)
    return found


def labels_of(rows: Sequence[CalibrationRow], draw: str, metric: str) -> dict[str, int]:
    """Row id -> label of what people filled in of one draw."""
    own = [(row.draw, row.human) for row in rows if row.draw is not None and metric in row.human]
    return {place[1]: human[metric] for place, human in own if place[0] == draw}


def answers_of(ws: Workspace, day: str, system: str) -> dict[str, Answer]:
    """example_id -> answer of a night, of those that hold a text."""
    path = ws.night(day, system) / "responses.parquet"
    if not path.exists():
        return {}
    rows = read_table(path).to_pylist()
    return {row["example_id"]: row for row in rows if row["status"] == "scored" and row["response"] is not None}


def verdicts_of(ws: Workspace, day: str, system: str, metric: str) -> dict[str, int]:
    """example_id -> 1 where the judge passed the answer of that night, 0 where it failed it, in the gate alone."""
    path = ws.night(day) / "scores.parquet"
    if not path.exists():
        return {}
    columns = ["system", "metric", "example_id", "status", "passing", "in_gate"]
    rows = read_table(path, columns).filter(_own(system, metric)).to_pylist()
    return {
        row["example_id"]: int(row["passing"])
        for row in rows
        if row["status"] == "scored" and row["passing"] is not None and row["in_gate"] is not False
    }


def _own(system: str, metric: str) -> Any:
    import pyarrow.compute as pc

    return (pc.field("system") == system) & (pc.field("metric") == metric)


def identity_of(ws: Workspace, day: str, metric: str) -> str | None:
    """The hash of the judge that graded `metric` on that night."""
    found = (read_json(ws.night(day) / "calibration.json") or {}).get("metrics", {}).get(metric) or {}
    name = (found.get("identity") or {}).get("hash")
    return name if isinstance(name, str) else None


def examples_of(ws: Workspace, release: str) -> dict[str, dict[str, Any]]:
    """example_id -> example of a release.

    Raises:
        UserError: the release is missing or was changed.
    """
    return {row["example_id"]: row for row in load_release(ws, release).examples.to_pylist()}


def file_part(metric: str) -> str:
    """A metric's name as a part of a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in metric)


# `ragbench label audit`: a few of the week's answers for people to label, evenly from passed and failed ones.

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
    for night in last_days(day, WEEK):
        manifest = ws.result(night, Manifest)
        if manifest is None or identity_of(ws, night, metric) != judge:
            continue
        verdicts, answers = verdicts_of(ws, night, system, metric), answers_of(ws, night, system)
        if manifest.release not in releases:
            releases[manifest.release] = examples_of(ws, manifest.release)
        examples = releases[manifest.release]
        for name in sorted(verdicts.keys() & answers.keys() & examples.keys()):
            found[_name(answers[name])] = Candidate(answers[name], examples[name], verdicts[name], manifest.release)
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
    first, *_, final = last_days(day, COUNTS)
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
