"""The sentinel: a fixed sample of labelled rows that the judge grades afresh every night.

Tonight's round of verdicts against the rounds of the accepted reference (calibration/reference.py) shows whether
the judge has moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbench_dagster.calibration import judged
from ragbench_dagster.calibration.judged import Progress, summary_of
from ragbench_dagster.calibration.rows import CalibrationRow
from ragbench_dagster.calibration.stats.drift import RoundTest, beta_binomial_tail, rounds_moved
from ragbench_dagster.calibration.stats.paired import mcnemar
from ragbench_dagster.records import Verdict
from ragbench_dagster.store import Workspace, digest

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
        found[metric] = own, judged.judge_round(ws, metric, [r.item for r in own], day, progress, day)
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

    from ragbench_dagster.calibration.stats.graded import best_threshold

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
