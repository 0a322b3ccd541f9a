"""What judging a night will take, before it runs: calls, tokens, USD and time. What the ledger holds is free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragbench_dagster.evaluation import cache_key
from ragbench_dagster.evaluation.items import NightItems, ReleaseLike
from ragbench_dagster.evaluation.judge_session import evaluators_for
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.metrics import Grading, metric_of
from ragbench_dagster.records import RESPONSES, Item
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import Workspace, read_table, rows_table

_CHARS_PER_TOKEN = 4.0  # of English prose
_KNOWN = 20  # paid verdicts from which on their own means are used
# Until then: tokens of a reply, and what a system is taken to say where it has never answered.
_ANSWER_CHARS, _CONTEXT_CHARS = 400, 4000
_LATENCY_S = 1.5


@dataclass(slots=True)
class _Sum:
    items: int = 0
    paid: int = 0
    calls: float = 0.0
    prompt: float = 0.0
    completion: float = 0.0


def estimate_night(ws: Workspace, day: str) -> dict[str, Any]:
    """The judge's part of the night `day`.

    A system that has not answered for that night is taken to answer as on its last one; one that never answered,
    at a fixed length (`basis` says which).

    Returns:
        {day, rows: [{system, metric, basis, items, paid, calls, prompt_tokens, completion_tokens, cost_usd}], calls,
        prompt_tokens, completion_tokens, cost_usd, seconds, limited_by}. Costs are USD; the embedded judge's are 0.

    Raises:
        UserError: no release serves the day; the judge's settings are wrong or its price is unknown.
    """
    from ragbench_dagster.evaluation.pipeline import night_release
    from ragbench_dagster.evaluation.systems import configured_systems

    release = night_release(ws, day)
    judge = ws.settings.judge
    evaluators = evaluators_for(ws.settings.judged_metrics, judge, ws)
    rows: list[dict[str, Any]] = []
    seconds, limits = 0.0, set()
    seen: set[str] = set()
    with Ledger.open(ws) as ledger:
        for system in configured_systems(ws):
            responses, basis = _answers(ws, day, system, release)
            items = NightItems(responses, release)
            for metric, evaluator in evaluators.items():
                own = judge.for_metric(metric)
                usage = ledger.usage(metric, cache_key.judge_name(own))
                total = _add_up(items(), evaluator, own, ledger, usage, seen)
                rows.append({"system": system, "metric": metric, "basis": basis, **_row(total, own)})
                took, why = _duration(total, own, usage)
                seconds += took
                limits.add(why)
    sums = {name: sum(row[name] for row in rows) for name in ("calls", "prompt_tokens", "completion_tokens")}
    cost = round(sum(row["cost_usd"] for row in rows), 6)
    return {
        "day": day, "rows": rows, **sums, "cost_usd": cost, "seconds": round(seconds, 1),
        "limited_by": sorted(limits - {""}),
    }  # fmt: skip


def _answers(ws: Workspace, day: str, system: str, release: ReleaseLike) -> tuple[pa.Table, str]:
    """The responses to count with, and where they come from."""
    path = ws.night(day, system) / "responses.parquet"
    if path.exists():
        return read_table(path), "answers of this night"
    nights = sorted(ws.night(day).parent.glob(f"*/{system}/responses.parquet"))
    earlier = [p for p in nights if p.parent.parent.name < day]
    if earlier:
        return read_table(earlier[-1]), f"answers of {earlier[-1].parent.parent.name}"
    rows = [
        {"example_id": name, "status": "scored", "response": "x" * _ANSWER_CHARS, "contexts": ["x" * _CONTEXT_CHARS]}
        for name in release.examples["example_id"].to_pylist()
    ]
    return rows_table(rows, RESPONSES), "no answers yet: a usual length is taken"


def _add_up(
    items: Iterator[Item], evaluator: Any, judge: Judge, ledger: Ledger, usage: dict[str, float], seen: set[str]
) -> _Sum:
    shared = cache_key.prefix(evaluator, judge)
    known = usage["n"] >= _KNOWN
    grading = metric_of(evaluator.name).grading or Grading(llm="")
    total = _Sum()
    for some in cache_key.batched(items, 500):
        keys = [cache_key.verdict_key(shared, item) for item in some]
        held = ledger.held(keys)
        for item, key in zip(some, keys, strict=True):
            missing = getattr(evaluator, "missing", None)
            if missing is not None and missing(item):
                continue
            total.items += 1
            if key in held or key in seen:
                total.paid += 1
                continue
            seen.add(key)
            if not hasattr(evaluator, "variables"):  # embedded, or somebody else's
                total.calls += 1
                continue
            total.calls += usage["attempts"] if known else grading.calls
            total.prompt += usage["prompt_tokens"] if known else grading.calls * _prompt_tokens(evaluator, item)
            total.completion += usage["completion_tokens"] if known else grading.calls * grading.reply_tokens
    return total


def _prompt_tokens(evaluator: Any, item: Item) -> float:
    messages = evaluator.messages(item)
    return sum(len(m.content or "") for m in messages) / _CHARS_PER_TOKEN


def _row(total: _Sum, judge: Judge) -> dict[str, Any]:
    from ragbench_dagster.evaluation.judge.budget import cost, price_of

    usd = 0.0 if judge.provider == "embedded" else cost(price_of(judge), total.prompt, total.completion)
    return {
        "items": total.items, "paid": total.paid, "calls": round(total.calls), "prompt_tokens": round(total.prompt),
        "completion_tokens": round(total.completion), "cost_usd": round(usd, 6),
    }  # fmt: skip


def _duration(total: _Sum, judge: Judge, usage: dict[str, float]) -> tuple[float, str]:
    """(seconds, what limits them)."""
    if judge.provider == "embedded" or not total.calls:
        return 0.0, ""
    latency = usage["latency_ms"] / 1000 / max(1.0, usage["attempts"]) if usage["n"] >= _KNOWN else _LATENCY_S
    ways = [(total.calls * latency / judge.concurrency.max, "concurrency")]
    if judge.rpm:
        ways.append((total.calls * 60 / judge.rpm, "requests a minute"))
    if judge.tpm:
        ways.append(((total.prompt + total.completion) * 60 / judge.tpm, "tokens a minute"))
    return max(ways)
