"""The sentinel: a fixed sample of labelled rows that the judge grades afresh every night.

Tonight's round of verdicts against the rounds of the accepted reference (calibration/sentinel.py) shows whether
the judge has moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragbench_dagster.calibration import judged_rows
from ragbench_dagster.calibration.judged_rows import Identity, Progress, passing_of, summary_of
from ragbench_dagster.calibration.labelled_answers import CalibrationRow, read_calibration
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import spending
from ragbench_dagster.records import Verdict
from ragbench_dagster.stats.drift import ROUNDS, RoundTest, beta_binomial_tail, rounds_moved
from ragbench_dagster.stats.paired import mcnemar
from ragbench_dagster.store import Workspace, digest, read_json, write_json

SALT = "sentinel-v1"


def labelled(rows: Sequence[CalibrationRow], metric: str) -> list[CalibrationRow]:
    """The rows that people labelled for `metric`; what was drawn from a night's answers is left out."""
    return [row for row in rows if metric in row.human and row.sample is None and row.draw is None]


def sentinel_rows(rows: Sequence[CalibrationRow], metric: str, size: int) -> list[CalibrationRow]:
    """The fixed sample of `size` rows: those with the smallest salted hash, so that new rows change few."""
    own = sorted(labelled(rows, metric), key=lambda row: digest(SALT, row.key))
    return sorted(own[:size], key=lambda row: row.key)


def judge_sentinel(
    ws: Workspace, day: str, rows: Sequence[CalibrationRow], progress: Progress = None
) -> dict[str, tuple[list[CalibrationRow], list[Verdict]]]:
    """Metric to its sentinel rows and tonight's verdicts on them: the first money of a night, for without these no
    judged metric decides.

    Raises:
        UserError: a judge that cannot be asked.
    """
    found = {}
    for metric in ws.settings.judged_metrics:
        own = sentinel_rows(rows, metric, ws.settings.calibration.sentinel)
        found[metric] = own, judged_rows.judge_round(ws, metric, [r.item for r in own], day, progress, day)
    return found


def spent(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """{calls, cost_usd} of those verdicts that were made in this run."""
    fresh = [v for v in verdicts if not v.details.get("from_ledger")]
    calls = sum(v.attempts or int(v.status == "scored") for v in fresh)
    return {"calls": calls, "cost_usd": sum(v.cost_usd for v in fresh)}


def fitted_threshold(
    ws: Workspace, metric: str, rows: Sequence[CalibrationRow], scores: Mapping[str, float]
) -> float | None:
    """The score from which on a log-probability judge's verdict passes; None for judges that say pass or fail.

    Args:
        scores: row key -> score, of the rows that were scored.
    """
    import numpy as np

    from ragbench_dagster.stats.agreement_tables import best_threshold

    judge = ws.settings.judge.for_metric(metric)
    if judge.provider == "embedded" or judge.read != "logprobs":
        return None
    if judge.logprob_threshold is not None:
        return judge.logprob_threshold
    pairs = [(row.human[metric], scores[row.key]) for row in rows if metric in row.human and row.key in scores]
    if not pairs:
        return None
    human, values = np.array(pairs, dtype=float).T
    return best_threshold(human, values)


def scores_of(rows: Sequence[CalibrationRow], verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Row key -> the judge's score, of the rows that were scored."""
    pairs = zip(rows, verdicts, strict=True)
    return {row.key: v.score for row, v in pairs if v.status == "scored" and v.score is not None}


def drift(
    reference: dict[str, Any] | None,
    tonight: dict[str, int | None],
    verdicts: Sequence[Verdict],
    alarm: float,
    evaluators: int,
    alarmed_before: bool = False,
) -> dict[str, Any]:
    """Tonight's sentinel against the accepted reference.

    State: `not set up`; `steady`; `warning`, where tonight alarms and the night before did not: no PASS tonight;
    `drifted`, where two nights running alarm, or another model is served: the judge decides nothing.

    Args:
        reference: of `reference.accepted`, or None.
        tonight: row key -> 0 or 1, None where not scored.
        verdicts: the same rows' verdicts, for the served model and the status mix.
        alarm: false alarms a night over all evaluators.
        evaluators: evaluators with a sentinel.
        alarmed_before: the night before alarmed against the same reference.
    """
    now = summary_of(verdicts)
    if reference is None or not reference.get("votes"):
        why = "no accepted reference" if reference is None else "the accepted reference lacks the rounds of each row"
        return {"state": "not set up", "message": f"{why}: ragbench calibrate --accept", **now}
    known = {
        key: (*votes, found) for key, votes in reference["votes"].items() if (found := tonight.get(key)) is not None
    }
    passes, rounds, own = (list(column) for column in zip(*known.values(), strict=True)) if known else ([], [], [])
    test = rounds_moved(passes, rounds, own, alarm / max(evaluators, 1))
    to_fail = sum(1 for k, n, v in known.values() if v == 0 and 2 * k > n)
    to_pass = sum(1 for k, n, v in known.values() if v == 1 and 2 * k < n)
    line = _odd_line(test, rounds)
    before = set(reference.get("models", []))
    other_model = bool(before and now["models"] and not set(now["models"]) <= before)
    causes = []
    if test.alarm:
        causes.append(line + (", and the night before alarmed too" if alarmed_before else ""))
    if other_model:
        causes.append("the provider now serves another model than the accepted one")
    closed = other_model or (test.alarm and alarmed_before)
    return {
        "state": "drifted" if closed else "warning" if test.alarm else "steady",
        "alarm": test.alarm,
        "reference": reference.get("when"),
        "causes": causes,
        "odd": test.odd,
        "informative": test.informative,
        "rows": test.rows,
        "alarm_at": test.alarm_at,
        "p": test.p,
        "line": line,
        "rounds": len(reference.get("rounds", [])),
        "to_pass": to_pass,
        "to_fail": to_fail,
        "direction_p": mcnemar(to_pass, to_fail),
        "notes": _notes(reference, now),
        **now,
    }


def _odd_line(test: RoundTest, rounds: Sequence[int]) -> str:
    """The count in words, with what chance explains."""
    odd = f"{test.odd} of {test.rows} sentinel verdicts are the odd one out of {_words(rounds)}"
    if test.odd == 0:
        return odd
    rare = "less than 1 of 1,000,000" if test.one_in > 1_000_000 else f"1 of {test.one_in:,}"
    return f"{odd}; chance explains that in {rare} nights"


def _words(rounds: Sequence[int]) -> str:
    """How many verdicts a row has, tonight's among them."""
    names = {3: "three", 4: "four", 5: "five", 6: "six"}
    sizes = sorted({n + 1 for n in rounds})
    return " to ".join(names.get(n, str(n)) for n in sizes[:1] + sizes[1:][-1:])


def _notes(reference: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Changes worth knowing that close nothing by themselves."""
    notes = []
    prints = set(reference.get("fingerprints", []))
    if prints and now["fingerprints"] and not set(now["fingerprints"]) <= prints:
        notes.append("the provider's system fingerprint is new")
    was, total = reference.get("statuses", {}), sum(reference.get("statuses", {}).values())
    lost_before = total - was.get("scored", 0)
    rows = sum(now["statuses"].values())
    lost = rows - now["statuses"].get("scored", 0)
    if total and rows and beta_binomial_tail(lost, rows, lost_before + 1, total - lost_before + 1) <= 0.01:
        notes.append(f"{lost} of {rows} sentinel rows got no verdict, {lost_before} of {total} when accepted")
    return notes


# The accepted reference: five rounds of verdicts on the sentinel, which drift is measured against.
#
# `ragbench calibrate --accept` takes the rounds of the last nights, each of which judged the sentinel afresh, and
# judges what is missing to five now. Rounds of five different nights hold a judge that wanders a little from night
# to night; rounds of one session do not, so a reference says where its rounds come from. It is a person's decision
# and lies beside the labels, not in the store:
#
#     calibration/accepted.json: {who, when, why, metrics: {METRIC: {identity, rounds: [NIGHT or "judged WHEN n"],
#         votes: {ROW_KEY: [passes, rounds]}, threshold, statuses, models, fingerprints}}}

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
            f"judged {when} {place + 1}", sentinel, judged_rows.judge_round(ws, metric, items, name, progress, ACCEPT)
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
    identity = judged_rows.identify(ws, metric).as_dict()["hash"]
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
        "identity": judged_rows.identify(ws, metric).as_dict(),
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
