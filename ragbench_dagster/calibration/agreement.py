"""Does the judge say what people say? Figures of one evaluator against human labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ragbench_dagster.calibration.labels import binary, lookup, number
from ragbench_dagster.calibration.stats import graded
from ragbench_dagster.calibration.stats.intervals import Floats
from ragbench_dagster.calibration.stats.tables import KAPPA_MIN, Table, describe
from ragbench_dagster.errors import UserError


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
        ranks = graded.describe_ranks(truth, found)
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
        for name, (value, interval) in graded.describe_ranks(human, scores).items():
            result[name], ci[name] = value, interval
    return result
