"""One pass of the judge over many items: what the ledger holds is free, the rest is asked once and committed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import cache_key, concurrency, spending
from ragbench_dagster.evaluation.cache_key import Evaluator, batched
from ragbench_dagster.evaluation.concurrency import Meter, Progress, pull
from ragbench_dagster.evaluation.judge import build_evaluator
from ragbench_dagster.evaluation.judge.provider_errors import JudgeUnavailable, Stopped
from ragbench_dagster.evaluation.kept_texts import kept_verdict, prepare
from ragbench_dagster.evaluation.ledger import TRANSIENT, Entry, Ledger
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge, Scrub
from ragbench_dagster.store import Workspace

Pair = tuple[str, Item]  # metric, item
_LOOK_UP = 500  # items looked up in the ledger together; calls in flight wait meanwhile


class Job(NamedTuple):
    key: str
    metric: str
    item: Item


def evaluators_for(metrics: Iterable[str], judge: Judge, ws: Workspace | None) -> dict[str, Evaluator]:
    """Metric to its evaluator, each with the metric's own overrides."""
    return {metric: build_evaluator(metric, judge.for_metric(metric), ws) for metric in metrics}


class Session:
    """Judges (metric, item) pairs against a ledger.

    Args:
        ws: the workspace, None for a stage without one.
        evaluators: metric to evaluator.
        ledger: where verdicts are found and kept.
        judge: its settings; default: the workspace's.
        run: what pays, as `spending` names it: a night's day, a command; "": this process alone, by itself.
        system, system_version, round: where the items come from, as the ledger records it.
    """

    def __init__(
        self,
        ws: Workspace | None,
        evaluators: dict[str, Evaluator],
        ledger: Ledger,
        *,
        judge: Judge | None = None,
        run: str = "",
        system: str = "",
        system_version: str = "",
        round: str = "",
    ) -> None:
        judge = judge or (ws.settings.judge if ws else Judge.model_validate({}))
        self._evaluators = evaluators
        self._ledger = ledger
        self._system = system
        self._ws = ws
        self._root = ws.root if ws else None
        self._run_name = run
        self._prefix: dict[str, str] = {}
        self._entry: dict[str, Entry] = {}
        self._marks: dict[str, dict[str, bool]] = {}  # what must be known of every verdict of a metric
        self._outside: dict[str, bool] = {}  # whether its verdicts hold words of a provider
        self._scrub = ws.settings.scrub if ws else Scrub()
        generator = getattr(ws.settings.systems.get(system), "model", None) if ws else None
        for metric, evaluator in evaluators.items():
            own = judge.for_metric(metric)
            self._prefix[metric] = cache_key.prefix(evaluator, own, round)
            marks = {"floating": not own.pinned, "self_judged": bool(generator) and generator == own.model}
            asks_nobody = own.provider == "embedded" and metric not in own.evaluators
            self._outside[metric] = not (asks_nobody or getattr(evaluator, "local", False))
            self._marks[metric] = {name: True for name, holds in marks.items() if holds}
            self._entry[metric] = Entry(
                key="",
                example_id="",
                evaluator=evaluator.name,
                evaluator_version=evaluator.version,
                template_hash=evaluator.template_hash or "",
                judge=cache_key.judge_name(own),
                parameters=json.dumps(cache_key.parameters(own), sort_keys=True),
                day=run,
                system=system,
                system_version=system_version,
                round=round,
            )
        self._fresh: set[str] = set()
        self._failed: dict[str, Verdict] = {}
        self.calls = 0
        self.cost_usd = 0.0
        self.unavailable = ""

    def key(self, metric: str, item: Item) -> str:
        return cache_key.verdict_key(self._prefix[metric], item)

    def run(self, pairs: Callable[[], Iterator[Pair]], total: int, progress: Progress | None) -> None:
        """Judge what the ledger lacks.

        Args:
            pairs: makes the iterator; it is read lazily.
            total: how many pairs there are.
            progress: called as (label, done, total).
        """
        # Without anything to ask, no loop, no client and no key is needed.
        if next(self._missing(pairs(), None), None) is None:
            return
        self._fresh.clear()
        if any(self._outside.values()):
            prepare(self._scrub, self._root)
        concurrency.run(lambda stop: self._run(pairs(), total, progress, stop))

    def verdicts(self, pairs: Iterable[Pair]) -> Iterator[tuple[str, Item, str, Verdict]]:
        """(metric, item, key, verdict) of every pair, in order; `error` for those that were never judged."""
        for some in batched(pairs, _LOOK_UP):
            keys = [self.key(metric, item) for metric, item in some]
            held = self._ledger.get(list(dict.fromkeys(keys)))
            for (metric, item), key in zip(some, keys, strict=True):
                yield metric, item, key, self._settled(metric, key, held.get(key))

    def _settled(self, metric: str, key: str, held: Verdict | None) -> Verdict:
        if held is None:
            why = self.unavailable or "not judged: the run stopped before"
            return self._failed.get(key) or Verdict("error", feedback=why)
        if key in self._fresh:
            self._fresh.discard(key)  # paid for now; its copies cost nothing
            held = replace(held, details={k: v for k, v in held.details.items() if k != "from_ledger"})
        decide = getattr(self._evaluators[metric], "decide", None)
        return decide(held) if decide is not None and held.status == "scored" else held

    def _missing(self, pairs: Iterator[Pair], meter: Meter | None) -> Iterator[Job]:
        for some in batched(pairs, _LOOK_UP):
            keys = [self.key(metric, item) for metric, item in some]
            held = self._ledger.held(list(dict.fromkeys(keys)))
            known = 0
            for (metric, item), key in zip(some, keys, strict=True):
                if key in held or key in self._fresh or key in self._failed:
                    known += 1
                    continue
                self._fresh.add(key)
                yield Job(key, metric, item)
            if meter is not None and known:
                meter.add(known, fresh=False)

    async def _run(self, pairs: Iterator[Pair], total: int, progress: Progress | None, stop: concurrency.Stop) -> None:
        meter = Meter(self._system or "judge", total, progress, self._aside)

        async def work(job: Job) -> None:
            evaluator = self._evaluators[job.metric]
            try:
                verdict = await evaluator.grade(job.item)
            except Stopped:  # not judged, and not failed
                self._fresh.discard(job.key)
                return
            except UserError:
                raise
            except Exception as fault:  # one bad item never spoils the others
                verdict = Verdict("error", feedback=f"{type(fault).__name__} in the evaluator {evaluator.name}")
            # Committed in this turn of the loop, but after this worker has sent its next call: the provider
            # works while the ledger writes.
            here.call_soon(keep, job, verdict)

        def keep(job: Job, verdict: Verdict) -> None:
            try:
                self._record(job, verdict)
                meter.add()
            except Exception as fault:
                faults.append(fault)
                stop.set()

        here, faults = asyncio.get_running_loop(), list[Exception]()
        workers = max(getattr(e, "workers", 1) for e in self._evaluators.values())
        try:
            if (
                self._ws is not None
                and self._run_name
                and any(hasattr(e, "prepare") for e in self._evaluators.values())
            ):
                spending.enter(self._ws, self._run_name, self._ledger)
            for evaluator in self._evaluators.values():
                prepare: Any = getattr(evaluator, "prepare", None)
                if prepare is not None:
                    await prepare(stop, self._run_name)
            await pull(self._missing(pairs, meter), work, workers, stop)
            await asyncio.sleep(0)
            if faults:
                raise faults[0]
            self._ledger.settle()
        except JudgeUnavailable as fault:
            self.unavailable = str(fault)
            self._fresh.clear()
        finally:
            for evaluator in self._evaluators.values():
                close: Any = getattr(evaluator, "aclose", None)
                if close is not None:
                    await close()
            meter.show()

    def _record(self, job: Job, verdict: Verdict) -> None:
        entry = self._entry[job.metric]._replace(key=job.key, example_id=job.item.example_id)
        if self._marks[job.metric]:
            verdict = replace(verdict, details={**verdict.details, **self._marks[job.metric]})
        if self._outside[job.metric]:
            verdict = kept_verdict(verdict, self._scrub, self._root)
        self._ledger.keep(entry, verdict)
        if verdict.status in TRANSIENT:
            self._failed[job.key] = verdict
            self._fresh.discard(job.key)
        self.calls += verdict.attempts or (verdict.status == "scored")
        self.cost_usd += verdict.cost_usd

    def _aside(self) -> str:
        limits = {str(getattr(e, "limited_by", "") or "") for e in self._evaluators.values()} - {""}
        cost = f"${self.cost_usd:.2f}" if self.cost_usd else ""
        return " ".join(filter(None, (cost, f"({', '.join(sorted(limits))})" if limits else "")))
