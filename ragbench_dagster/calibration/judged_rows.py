"""The one place where calibration asks a judge, and what identifies the judge that answered."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import Workspace

Progress = Callable[[str, int, int], None] | None


def judge_round(
    ws: Workspace, metric: str, items: Sequence[Item], round: str, progress: Progress = None, run: str = ""
) -> list[Verdict]:
    """Verdicts on `items`, fresh for this `round` (its name is part of the ledger key), paid for once, by `run`."""
    from ragbench_dagster.evaluation.judge_runner import judge_items

    return list(judge_items(ws, metric, list(items), round=round, progress=progress, run=run)) if items else []


def week_of(day: str) -> str:
    """The Monday on or before `day`: the name of the weekly round over all labelled rows."""
    given = date.fromisoformat(day)
    return (given - timedelta(days=given.weekday())).isoformat()


def key_missing(judge: Judge) -> bool:
    """True where the judge needs a key and its variable is not set, as in a fork's pull request."""
    return judge.provider != "embedded" and bool(judge.api_key_env) and not os.environ.get(judge.api_key_env)


@dataclass(frozen=True, slots=True)
class Identity:
    """What must be equal for two figures of a metric to be comparable."""

    judge: str  # provider, model and revision
    evaluator: str
    version: str
    template_hash: str
    hash: str  # of all of these and of the settings that can change an answer: the ledger's own
    local: bool = False  # no provider is asked: it cannot float and needs no key

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def identify(ws: Workspace, metric: str) -> Identity:
    """The judge, evaluator and template that grade `metric` under these settings."""
    from ragbench_dagster.evaluation.cache_key import judge_name, prefix
    from ragbench_dagster.evaluation.judge_session import evaluators_for

    judge = ws.settings.judge.for_metric(metric)
    evaluator = evaluators_for([metric], ws.settings.judge, ws)[metric]
    return Identity(
        judge_name(judge),
        str(evaluator.name),
        str(evaluator.version),
        str(evaluator.template_hash or ""),
        prefix(evaluator, judge),
        bool(getattr(evaluator, "local", judge.provider == "embedded")),
    )


def statuses(verdicts: Sequence[Verdict]) -> dict[str, int]:
    return dict(sorted(Counter(v.status for v in verdicts).items()))


def served(verdicts: Sequence[Verdict]) -> dict[str, list[str]]:
    """Names of the models and fingerprints that answered, as the provider states them."""
    return {
        "models": sorted({v.served_model for v in verdicts if v.served_model}),
        "fingerprints": sorted({v.fingerprint for v in verdicts if v.fingerprint}),
    }


def passing_of(verdict: Verdict, threshold: float | None) -> int | None:
    """0 or 1, None unless scored; `threshold` (fitted) overrides the evaluator's own."""
    if verdict.status != "scored":
        return None
    if threshold is not None and verdict.score is not None:
        return int(verdict.score >= threshold)
    return None if verdict.passing is None else int(verdict.passing)


def summary_of(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {"statuses": statuses(verdicts), **served(verdicts)}
