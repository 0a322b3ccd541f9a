"""Judges the answers of a night, of a calibration round or of a file; every verdict is paid for once.

    store/nights/DAY/SYSTEM/verdicts.parquet   records.SCORES, a pure function of the answers and the ledger

How one answer is graded belongs in `judge/` and `embedded/`; what a mean of verdicts says, in reporting.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import spending
from ragbench_dagster.evaluation.asks import by_ask, write_extra
from ragbench_dagster.evaluation.cache_key import batched
from ragbench_dagster.evaluation.items import NightItems, ReleaseLike, score_rows
from ragbench_dagster.evaluation.judge_session import Progress, Session, evaluators_for
from ragbench_dagster.evaluation.kept_texts import item_with, texts_of_item
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.evaluation.logged_requests import LoggedWeek
from ragbench_dagster.metrics import PAIRWISE
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge, Scrub, Settings
from ragbench_dagster.store import Workspace, table_metadata, write_table
from ragbench_dagster.traffic.convert import to_history
from ragbench_dagster.traffic.requests import RowError
from ragbench_dagster.traffic.scrubbed_rows import scrub_texts

_STAGE_ROWS = 2000  # rows of a stage that are judged together
STAGE = "stage judge"  # what pays for them


@dataclass(frozen=True)
class JudgeRun:
    """The verdicts on one system's answers.

    `calls` counts requests to the provider made now, and verdicts the embedded judge computed anew; `cost_usd`
    is what they cost. `unavailable` says why no call could be made ("" where calls can be made).
    """

    scores: pa.Table  # records.SCORES
    calls: int
    cost_usd: float
    statuses: dict[str, int]
    unavailable: str = ""
    warnings: list[str] = field(default_factory=list)
    served_models: list[str] = field(default_factory=list)


def judge_answers(
    ws: Workspace,
    day: str,
    name: str,
    responses: pa.Table,
    release: ReleaseLike,
    progress: Progress | None = None,
    requests: LoggedWeek | None = None,
) -> JudgeRun:
    """Judge the answers of system `name` on every judged metric, and write the night's verdicts.parquet.

    Further asks of heavy questions and production's own `requests` are judged with them, into tables of their own.

    Raises:
        UserError: the judge cannot be used (key refused, quota gone, wrong address or parameter) or its settings
            are wrong; finished verdicts are in the ledger.
        Interrupted: a signal came; finished verdicts are in the ledger.
    """
    metrics = ws.settings.judged_metrics
    evaluators = evaluators_for(metrics, ws.settings.judge, ws)
    version = (responses.schema.metadata or {}).get(b"version", b"").decode() or _stored_version(ws, day, name)
    with Ledger.open(ws) as ledger:
        session = Session(ws, evaluators, ledger, run=day, system=name, system_version=version)
        ledger.forget_failures(day, name, [e.name for e in evaluators.values()])
        folder = ws.night(day, name)
        items = NightItems(responses, release)
        extras = [(ask, NightItems(own, release)) for ask, own in by_ask(folder)]
        week = NightItems(requests.responses, requests) if requests else None
        every = [items, *(more for _, more in extras), *([week] if week else [])]
        total = sum(some.count for some in every) * len(metrics)
        session.run(lambda: ((m, i) for some in every for i in some() for m in metrics), total, progress)
        needs = {metric: sorted(getattr(e, "needs", ())) for metric, e in evaluators.items()}
        table, served = score_rows(name, needs, items, session)
        produced = score_rows(name, needs, week, session)[0] if week else None
        further = [(ask, score_rows(name, needs, more, session)[0]) for ask, more in extras]
    thresholds = {m: e.threshold for m, e in evaluators.items() if m != PAIRWISE and hasattr(e, "threshold")}
    metadata = {
        "system": name,
        "thresholds": json.dumps(thresholds, sort_keys=True),
        "needs": json.dumps(needs, sort_keys=True),
    }
    write_extra(folder, "verdicts", further, metadata)
    if produced is not None:
        write_table(folder / "request_verdicts.parquet", produced, metadata)
    write_table(folder / "verdicts.parquet", table, metadata)
    return JudgeRun(
        table,
        session.calls,
        session.cost_usd,
        dict(sorted(Counter(table["status"].to_pylist()).items())),
        session.unavailable,
        _warnings(ws.settings, name),
        served,
    )


def judge_items(
    ws: Workspace,
    metric: str,
    items: Sequence[Item],
    round: str = "",
    progress: Progress | None = None,
    run: str = "",
) -> list[Verdict]:
    """Verdicts on `items`, in their order.

    Args:
        ws: the workspace, whose ledger is read and written.
        metric: a judged metric.
        items: what to grade; equal items are judged once.
        round: part of the key: another round asks afresh, the same one pays nothing twice.
        progress: called as (label, done, total).
        run: what pays for them (`spending`): a night's day, or a command.

    Returns:
        One verdict an item. `details["from_ledger"]` is set on those that cost nothing now. Where the judge's key
        is not set, verdicts that the ledger lacks have status `error`.

    Raises:
        UserError: as `judge_answers`.
    """
    evaluators = evaluators_for([metric], ws.settings.judge, ws)
    with Ledger.open(ws) as ledger:
        session = Session(ws, evaluators, ledger, round=round, run=run)
        session.run(lambda: ((metric, item) for item in items), len(items), progress)
        return [verdict for _, _, _, verdict in session.verdicts((metric, item) for item in items)]


def stage_judge(
    rows: Iterable[dict[str, Any]], metric: str, judge: Judge, ws: Workspace | None = None
) -> Iterator[dict[str, Any]]:
    """{id, query, contexts, response, reference} -> adds status, score, passing, feedback; in input order.

    Rows are read and judged some thousands at a time. With a workspace its ledger is used.

    Raises:
        UserError: a wrong row (named by its number), or a judge that cannot be used; rows judged before come out first.
    """
    evaluators = evaluators_for([metric], judge, ws)
    judge = judge.for_metric(metric)
    if judge.provider != "embedded" and judge.api_key_env and not os.environ.get(judge.api_key_env):
        raise UserError(f"the variable {judge.api_key_env} (judge.api_key_env) is not set; set it to the judge's key")
    with Ledger.open(ws) if ws else Ledger("sqlite://") as ledger:
        numbered = ((n, row, _row_item(n, row)) for n, row in enumerate(rows, 1))
        for given in batched(numbered, _STAGE_ROWS):
            some = [
                (n, row, item)
                for (n, row, _), item in zip(given, _handed_in([i for *_, i in given], judge, ws), strict=True)
            ]
            session = Session(ws, evaluators, ledger, judge=judge, run=STAGE)
            pairs = [(metric, item) for _, _, item in some]
            fault: UserError | None = None
            try:
                session.run(lambda pairs=pairs: iter(pairs), len(pairs), None)  # type: ignore[misc]
            except UserError as raised:
                fault = raised
            for (_, row, _), (_, _, _, verdict) in zip(some, session.verdicts(pairs), strict=True):
                if fault is None or verdict.status != "error":
                    yield {
                        **row,
                        "status": verdict.status,
                        "score": verdict.score,
                        "passing": verdict.passing,
                        "feedback": verdict.feedback,
                    }
            if fault is not None:
                raise fault
            if ws is None:
                ledger.clear()  # memory stays bounded; without a workspace nothing is kept
    if ws is not None:
        spending.finish(ws, STAGE)


def _handed_in(items: list[Item], judge: Judge, ws: Workspace | None) -> list[Item]:
    """Rows that somebody hands in, scrubbed before a provider or the ledger sees them.

    The embedded judge without a workspace sends nothing anywhere and keeps nothing.
    """
    if ws is None and judge.provider == "embedded" and not judge.evaluators:
        return items
    from ragbench_dagster.traffic.scrubbing import build_scrubber, safe_id

    scrubber = build_scrubber(ws.settings.scrub if ws else Scrub(), ws.root if ws else None)
    done = scrub_texts(scrubber, [texts_of_item(item) for item in items])
    clean = [item_with(item, texts) for item, texts in zip(items, done, strict=True)]
    if ws is None:
        return clean
    return [replace(item, example_id=safe_id(item.example_id, scrubber.plain, ws.keyed)) for item in clean]


def template_hashes(ws: Workspace) -> dict[str, str]:
    """Metric -> hash of its evaluator's name, version and template."""
    from ragbench_dagster.store import digest

    evaluators = evaluators_for(ws.settings.judged_metrics, ws.settings.judge, ws)
    return {m: digest(e.name, e.version, e.template_hash or "", size=8) for m, e in evaluators.items()}


def _row_item(number: int, row: dict[str, Any]) -> Item:
    def text(name: str, needed: bool) -> str | None:
        value = row.get(name)
        if value is None and not needed:
            return None
        if not isinstance(value, str):
            raise UserError(f"row {number}: {name} must be text, not {type(value).__name__}")
        return value

    contexts = row.get("contexts") or ()
    if not isinstance(contexts, list | tuple) or not all(isinstance(t, str) for t in contexts):
        raise UserError(f"row {number}: contexts must be a list of texts")
    try:
        history = to_history(row.get("history"), row.get("query") or "")
    except RowError as fault:
        raise UserError(f"row {number}: {fault}") from fault
    return Item(
        example_id=str(row.get("id", number)),
        query=text("query", True) or "",
        response=text("response", True) or "",
        contexts=tuple(contexts),
        reference=text("reference", False),
        history=history,
        second=text("second", False),
    )


def _stored_version(ws: Workspace, day: str, name: str) -> str:
    return table_metadata(ws.night(day, name) / "responses.parquet").get(b"version", b"").decode("utf-8", "replace")


def _warnings(settings: Settings, name: str) -> list[str]:
    judge = settings.judge
    if judge.provider == "embedded":
        return []
    found = []
    model = getattr(settings.systems.get(name), "model", None)
    if model and model == judge.model:
        found.append(f"{name}: the judge grades answers of its own model ({model}); such judges favour themselves")
    if not judge.pinned:
        found.append(f"judge {judge.model}: not pinned, it may change from one night to the next")
    return found
