"""`ragbench label changes`: answers that changed between two nights, for people to judge old and new.

What calibration rows cannot know is whether the judge errs alike on both nights' answers. 30 examples whose
verdict got better, 30 whose got worse and 60 whose answer changed under the same verdict are drawn; people label
both answers of each without knowing which is which. Their change replaces the judge's (stats/judged_change.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragbench_dagster.calibration.label_audit import (
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
from ragbench_dagster.calibration.labelled_answers import CalibrationRow
from ragbench_dagster.errors import UserError
from ragbench_dagster.results import Manifest
from ragbench_dagster.stats.correction import UNSURE
from ragbench_dagster.stats.judged_change import LabelledStratum, PairsChange, changed_pairs
from ragbench_dagster.store import Workspace, digest

CHANGES = "changes"
WANTED = {"gained": 30, "lost": 30, "same": 60}  # examples of each kind of change


def draw_changes(ws: Workspace, day: str, before: str, system: str, metric: str) -> tuple[Path, dict[str, int]]:
    """Draw changed pairs of answers of `system` between the nights `before` and `day`.

    Args:
        metric: a judged metric.

    Returns:
        The file to fill in, and how many examples there are: {gained, lost, same, unchanged, drawn}.

    Raises:
        UserError: no such metric or nights, another judge on one of them, no changed answer, or drawn already.
    """
    if metric not in ws.settings.judged_metrics:
        known = ", ".join(ws.settings.judged_metrics)
        raise UserError(f"--metric {metric}: no judged metric of this workspace; it has {known}")
    if identity_of(ws, day, metric) != identity_of(ws, before, metric) or identity_of(ws, day, metric) is None:
        raise UserError(f"the judge of {metric} on {day} is not the one of {before}: their verdicts cannot be compared")
    old, new = _graded(ws, before, system, metric), _graded(ws, day, system, metric)
    kinds: dict[str, list[str]] = {kind: [] for kind in WANTED}
    unchanged = 0
    for name in sorted(old.keys() & new.keys()):
        if old[name][0]["answer_hash"] == new[name][0]["answer_hash"]:
            unchanged += 1
        else:
            kinds[_kind(old[name][1], new[name][1])].append(name)
    sizes = {kind: len(names) for kind, names in kinds.items()}
    if not any(sizes.values()):
        raise UserError(f"no answer of {system!r} that both nights judged for {metric} changed from {before} to {day}")
    draw = f"changes-{system}-{file_part(metric)}-{before}-{day}"
    releases = {night: m.release for night in (before, day) if (m := ws.result(night, Manifest)) is not None}
    examples = examples_of(ws, releases[day])
    rows: dict[str, dict[str, Any]] = {}
    pairs, origins = [], {}
    for kind, names in kinds.items():
        for name in sorted(names, key=lambda name: digest(draw, name))[: WANTED[kind]]:
            keys = []
            for night, (answer, _) in ((before, old[name]), (day, new[name])):
                row = to_label(answer, examples[name], metric, draw)
                rows[row["id"]] = row
                origins[row["id"]] = origin(answer, releases[night])
                keys.append(row["id"])
            pairs.append({"kind": kind, "old": keys[0], "new": keys[1]})
    facts = {
        "kind": CHANGES, "system": system, "metric": metric, "day": day, "before": before,
        "judge": identity_of(ws, day, metric), "sizes": sizes, "unchanged": unchanged, "pairs": pairs, "rows": origins,
    }  # fmt: skip
    path = write_draw(ws, draw, facts, rows.values())
    return path, {**sizes, "unchanged": unchanged, "drawn": len(pairs)}


def _graded(ws: Workspace, day: str, system: str, metric: str) -> dict[str, tuple[Answer, int]]:
    answers, verdicts = answers_of(ws, day, system), verdicts_of(ws, day, system, metric)
    if not verdicts:
        raise UserError(
            f"{day}: no answer of the system {system!r} was judged for {metric}; run: ragbench run --date {day}"
        )
    return {name: (answers[name], verdicts[name]) for name in sorted(answers.keys() & verdicts.keys())}


def _kind(old: int, new: int) -> str:
    return "same" if old == new else "gained" if new > old else "lost"


def labelled_changes(
    ws: Workspace, rows: Sequence[CalibrationRow], day: str, system: str, metric: str, judge: str | None
) -> dict[str, PairsChange | str]:
    """Earlier night -> the change that people saw since, or why their labels are no random sample.

    Args:
        rows: of `read_calibration`.
        judge: identity hash of the night's judge.
    """
    found = {}
    for name, facts in read_draws(ws, CHANGES).items():
        if (facts["day"], facts["system"], facts["metric"], facts["judge"]) == (day, system, metric, judge):
            labels = labels_of(rows, name, metric)
            if labels:
                found[facts["before"]] = _change(facts, labels)
    return found


def _change(facts: dict[str, Any], labels: dict[str, int]) -> PairsChange | str:
    counts = {kind: {"better": 0, "worse": 0, "same": 0} for kind in WANTED}
    known = [pair for pair in facts["pairs"] if pair["old"] in labels and pair["new"] in labels]
    left = len(facts["pairs"]) - len(known)
    if left > UNSURE * len(facts["pairs"]):
        return f"{left} of {len(facts['pairs'])} changed pairs are not labelled: not a random sample"
    for pair in known:
        old, new = labels[pair["old"]], labels[pair["new"]]
        counts[pair["kind"]]["same" if old == new else "better" if new > old else "worse"] += 1
    strata = [LabelledStratum(facts["sizes"][kind], **counts[kind]) for kind in WANTED]
    found = changed_pairs(strata, facts["unchanged"])
    return found if found is not None else "a kind of change has no labelled pair: label one of each"
