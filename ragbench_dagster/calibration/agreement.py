"""Does the judge say what people say? Figures of one evaluator against human labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ragbench_dagster.calibration.labelled_answers import CalibrationRow, binary, lookup, number
from ragbench_dagster.errors import UserError
from ragbench_dagster.stats import agreement_tables
from ragbench_dagster.stats.agreement_tables import KAPPA_MIN, Table, describe, kappa_interval, kappa_of
from ragbench_dagster.stats.intervals import Floats


def stage_agreement(
    rows: Iterable[dict[str, Any]], human: str, judge: str, threshold: float | None = None
) -> dict[str, Any]:
    """Agreement over rows in hand: `ragbench stage agreement`.

    Args:
        rows: JSON objects.
        human: dotted path to the human label, 0 or 1.
        judge: dotted path to the verdict: 0/1, or a score together with `threshold`.
        threshold: a score at or above it passes.

    Returns:
        `n`, `left_out`, `table`, `accuracy`, `balanced_accuracy`, `sensitivity`, `specificity`, `kappa`,
        `reason` (why kappa is null or weak, else null) and `ci`; for scores also `roc_auc` and `spearman`.

    Raises:
        UserError: a label that is not 0/1, a verdict that is no number or needs a threshold; names the row.
    """
    labels: list[int] = []
    scores: list[float] = []
    read = without_human = without_judge = 0
    for read, row in enumerate(rows, 1):
        label = binary(lookup(row, human), f"row {read}: {human}")
        score = number(lookup(row, judge), f"row {read}: {judge}")
        if score is not None and threshold is None and score not in (0.0, 1.0):
            raise UserError(f"row {read}: {judge} is not 0 or 1; say from which score on it passes: --threshold T")
        if label is None or score is None:
            without_human += label is None
            without_judge += label is not None and score is None
            continue
        labels.append(label)
        scores.append(score)
    truth, found = np.array(labels, dtype=float), np.array(scores, dtype=float)
    passing = (found >= (0.5 if threshold is None else threshold)).astype(float)
    result = describe(Table.of(truth, passing))
    result["left_out"] = read - len(labels)
    result["left_out_by"] = {"no_human_label": without_human, "no_verdict": without_judge}
    if threshold is not None:
        result["threshold"] = threshold
        ranks = agreement_tables.describe_ranks(truth, found)
        ci = result["ci"]
        assert isinstance(ci, dict)
        for name, (value, interval) in ranks.items():
            result[name], ci[name] = value, interval
    return result


def evaluator_agreement(human: Floats, passing: Floats, scores: Floats | None) -> dict[str, Any]:
    """The nightly figures of one evaluator: as `stage_agreement`, and kappa null where it says nothing.

    Args:
        human: labels, 0 or 1.
        passing: the judge's verdicts, 0 or 1.
        scores: the evaluator's own scale, where it is graded.
    """
    table = Table.of(human, passing)
    result = describe(table)
    if table.smaller_class < KAPPA_MIN:
        result["kappa"] = None
    if scores is not None and len(np.unique(scores)) > 2:
        ci = result["ci"]
        assert isinstance(ci, dict)
        for name, (value, interval) in agreement_tables.describe_ranks(human, scores).items():
            result[name], ci[name] = value, interval
    return result


# How far people agree with each other: a judge cannot be asked for more.
#
# Each row with several raters contributes all its ordered pairs with a total weight of one, so the table of
# rater against rater is symmetric and its kappa is the chance-corrected agreement of two raters drawn at
# random (Scott 1955; Fleiss 1971 for any number of raters). The interval comes from Dirichlet draws.


def human_agreement(rows: Sequence[CalibrationRow], metric: str) -> dict[str, Any] | None:
    """Agreement of people on `metric`; None where no row has two raters or more (grades: no kappa here)."""
    votes = [np.array(r.raters[metric]) for r in rows if len(r.raters.get(metric, ())) > 1]
    votes = [v for v in votes if set(v.tolist()) <= {0.0, 1.0}]
    if not votes:
        return None
    both_good = mixed = both_bad = 0.0
    for v in votes:
        size, good = len(v), float(v.sum())
        pairs = size * (size - 1)
        both_good += good * (good - 1) / pairs
        both_bad += (size - good) * (size - good - 1) / pairs
        mixed += 2 * good * (size - good) / pairs
    cells = (both_good, mixed / 2, mixed / 2, both_bad)
    kappa = float(kappa_of(*(np.array(c) for c in cells)))
    return {
        "rows": len(votes),
        "agreement": (both_good + both_bad) / len(votes),
        "kappa": kappa if np.isfinite(kappa) else None,
        "ci": kappa_interval(cells) if np.isfinite(kappa) else None,
    }
