"""What judging a night's answers cost, from the ledger. Unknown is None, not zero."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.reporting.night import Night
from ragbench_dagster.settings import is_judged


def judge_cost(night: Night, system: str) -> dict[str, Any] | None:
    """USD of the judge calls behind the night's verdicts of `system`, in all and for each question.

    Verdicts that an earlier night paid for count too: it is what the night costs from scratch, and it does not
    change when the night is made again. None where no verdict of the night is in the ledger.
    """
    own = [scores for (name, metric), scores in night.scores.items() if name == system and is_judged(metric)]
    questions = max((int((s.status != "not_applicable").sum()) for s in own), default=0)
    if all(night.ws.settings.judge.for_metric(s.metric).provider == "embedded" for s in own):
        return {"judge_usd": 0.0, "per_question_usd": 0.0, "questions": questions}
    from ragbench_dagster.evaluation.ledger import Ledger

    keys = sorted({key for scores in own for key in scores.keys.tolist() if key})
    with Ledger.open(night.ws) as ledger:
        found = ledger.get(keys)
    if not found or not questions:
        return None
    total = sum(verdict.cost_usd for verdict in found.values())
    return {"judge_usd": total, "per_question_usd": total / questions, "questions": questions}
