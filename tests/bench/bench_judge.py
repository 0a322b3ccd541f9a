"""The judge's speed side by side with a bare client and with BatchEvalRunner, on one fake provider in one run.

    python -m tests.bench.bench_judge [throughput] [in_process] [limits] [memory]

Prints one line a figure with its target, and exits with 1 where one is missed. Shares of what another client reached
in the same run hold on a busy machine too; absolute rates need an idle one.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from ragbench_dagster.evaluation import judge_session as sessions
from ragbench_dagster.evaluation.judge.catalog import judge_llm
from ragbench_dagster.evaluation.judge_session import Session
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge, parse_settings
from ragbench_dagster.store import Workspace
from tests.support.fake_provider import Act, FakeProvider, Seen

PASSAGE = "The fee is 10 euro a year and is taken in January from the account that was named. " * 30
missed: list[str] = []


def figure(name: str, value: float, target: float, above: bool = True, unit: str = "") -> None:
    fine = value >= target if above else value <= target
    print(
        f"{name}: {value:.4g}{unit} (target {'>=' if above else '<='} {target:g}{unit}) {'ok' if fine else 'MISSED'}",
        flush=True,
    )
    if not fine:
        missed.append(name)


def items(n: int) -> Iterator[Item]:
    return (Item(f"e{i}", f"question {i}?", f"answer {i}", (PASSAGE,), "reference") for i in range(n))


def judge_at(base: str, **more: Any) -> Judge:
    known = {
        "provider": "openai_like", "model": "fake-2026-01-01", "api_base": base, "api_key_env": "",
        "context_window": 8192, "max_tokens": 16, "price": {"input": 1, "output": 1},
    }  # fmt: skip
    return Judge.model_validate(known | more)


def our_run(base: str, n: int, **more: Any) -> tuple[float, float]:
    """(verdicts a second, CPU seconds a verdict) of a whole session: ledger, limiter, parsing and all."""
    ws = Workspace(Path(tempfile.mkdtemp()), parse_settings("").model_copy(update={"judge": judge_at(base, **more)}))
    judge_llm(ws.settings.judge, ws)  # imports are not the run's
    with Ledger.open(ws) as ledger:
        run = Session(ws, sessions.evaluators_for(["faithfulness"], ws.settings.judge, ws), ledger)
        begin, cpu = time.perf_counter(), time.process_time()
        run.run(lambda: (("faithfulness", item) for item in items(n)), n, None)
        took, cpu = time.perf_counter() - begin, time.process_time() - cpu
        assert ledger.count() == n
    return n / took, cpu / n


async def bare(base: str, n: int, workers: int) -> float:
    """Requests a second of the openai client with the same transport, and nothing around it."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

    http = DefaultAioHttpClient(limits=httpx.Limits(max_connections=workers, max_keepalive_connections=workers))
    client = AsyncOpenAI(api_key="none", base_url=base, http_client=http, max_retries=0)
    todo = iter(range(n))

    async def worker() -> None:
        for i in todo:
            message = {"role": "user", "content": f"{PASSAGE} {i}"}
            await client.chat.completions.create(model="m", messages=[message], temperature=0)  # type: ignore[list-item]

    begin = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(workers)))
    took = time.perf_counter() - begin
    await http.aclose()
    return n / took


async def stock(base: str, n: int, workers: int) -> float:
    """Verdicts a second of BatchEvalRunner with the stock evaluator and its default transport."""
    from llama_index.core.evaluation import BatchEvalRunner, FaithfulnessEvaluator
    from llama_index.llms.openai_like import OpenAILike

    llm = OpenAILike(model="m", api_base=base, api_key="none", is_chat_model=True, context_window=8192, temperature=0)
    runner = BatchEvalRunner({"faithfulness": FaithfulnessEvaluator(llm=llm)}, workers=workers)
    todo = list(items(n))
    begin = time.perf_counter()
    await runner.aevaluate_response_strs(
        [i.query for i in todo], [i.response for i in todo], [list(i.contexts) for i in todo]
    )
    return n / (time.perf_counter() - begin)


def throughput() -> None:
    command = [sys.executable, "-m", "tests.support.fake_provider", "0.2"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    base = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    try:
        wide = {"concurrency": {"min": 1, "start": 128, "max": 128}}
        our_run(base, 300, **wide)  # warm
        ours, bares, cpus = [], [], []
        for _ in range(3):  # by turns, so that a busy moment hits both
            bares.append(asyncio.run(bare(base, 3000, 128)))
            rate, cpu = our_run(base, 3000, **wide)
            ours.append(rate)
            cpus.append(cpu)
        peer = asyncio.run(stock(base, 600, 128))
        print(f"ours {max(ours):.0f}/s, bare client {max(bares):.0f}/s, BatchEvalRunner {peer:.0f}/s, ideal 640/s")
        figure("share of the bare client's rate", max(ours) / max(bares), 0.85)
        figure("times BatchEvalRunner", max(ours) / peer, 4)
        figure("CPU a verdict with HTTP", min(cpus) * 1000, 2, above=False, unit=" ms")
    finally:
        server.kill()


class InProcess:
    """A judge that takes `delay_s` and no CPU."""

    name, version, template_hash = "faithfulness", "1", "t"

    def __init__(self, delay_s: float, workers: int) -> None:
        self.delay_s, self.workers = delay_s, workers

    async def grade(self, item: Item) -> Verdict:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        return Verdict("scored", 1.0, True, feedback="YES", raw="YES", served_model="m", attempts=1)


def _session(evaluator: InProcess, n: int) -> tuple[float, float, float]:
    """(seconds, CPU seconds, growth of the resident set in MB) of a session over `n` items and its reading back."""
    ws = Workspace(Path(tempfile.mkdtemp()), parse_settings(""))
    with Ledger.open(ws) as ledger:
        run = Session(ws, {"faithfulness": evaluator}, ledger)
        pairs: Callable[[], Iterator[tuple[str, Item]]] = lambda: (("faithfulness", i) for i in items(n))  # noqa: E731
        memory, begin, cpu = _resident_mb(), time.perf_counter(), time.process_time()
        run.run(pairs, n, None)
        took, cpu = time.perf_counter() - begin, time.process_time() - cpu
        assert sum(verdict.status == "scored" for _, _, _, verdict in run.verdicts(pairs())) == n
        return took, cpu, max(_resident_mb(), _peak_mb() if n > 50_000 else 0) - memory


def in_process() -> None:
    _session(InProcess(0, 16), 500)  # warm
    ours, bares = [], []
    for _ in range(3):
        bares.append(asyncio.run(_only_sleep(0.02, 4000, 16)))
        ours.append(_session(InProcess(0.02, 16), 4000)[0])
    print(f"16 workers that only sleep 20 ms: {4000 / min(bares):.0f}/s; with ledger and all {4000 / min(ours):.0f}/s")
    figure("share of the ideal 800 a second at 20 ms and 16 workers", 4000 / min(ours) / 800, 0.95)
    cpu = min(_session(InProcess(0.0, 16), 5000)[1] for _ in range(3))
    figure("CPU a verdict without HTTP", cpu / 5000 * 1000, 0.3, above=False, unit=" ms")


async def _only_sleep(delay_s: float, n: int, workers: int) -> float:
    todo = iter(range(n))

    async def worker() -> None:
        for _ in todo:
            await asyncio.sleep(delay_s)

    begin = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(workers)))
    return time.perf_counter() - begin


def memory() -> None:
    _session(InProcess(0, 16), 2000)  # warm
    took, _, grown = _session(InProcess(0, 16), 100_000)
    print(f"100,000 verdicts in {took:.0f} s")
    figure("growth over 100,000 verdicts", grown, 50, above=False, unit=" MB")


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def limits() -> None:
    """A server that enforces 600 requests and 60,000 tokens over any 60 seconds; 100 tokens a call on average."""
    from collections import deque

    taken: deque[tuple[float, int]] = deque()
    refused = [0]

    def plan(seen: Seen) -> Act:
        while taken and taken[0][0] <= seen.at - 60:
            taken.popleft()
        tokens = 60 + len(provider.seen) * 7 % 80
        if len(taken) >= 600 or sum(t for _, t in taken) + tokens > 60_000:
            refused[0] += 1
            return Act(status=429, headers={"retry-after": "1"}, raw={"error": {"message": "limit"}})
        taken.append((seen.at, tokens))
        return Act("YES", delay_s=0.2, prompt_tokens=tokens - 2, completion_tokens=2)

    n = 1200
    with FakeProvider(plan) as provider:
        rate, _ = our_run(provider.base, n, rpm=600, tpm=60_000, concurrency={"min": 1, "start": 16, "max": 128})
        first, last = provider.seen[0].at, provider.seen[-1].at
        used = (len(provider.seen) - refused[0] - 1) / (last - first) * 60
        print(
            f"{len(provider.seen)} requests in {last - first:.1f} s, {refused[0]} answered 429, {rate * 60:.0f} a minute"
        )
        figure("share of the limit that is used", max(used / 600, used * 99.5 / 60_000), 0.97)
        figure("share answered 429", refused[0] / len(provider.seen), 0.005, above=False)


if __name__ == "__main__":
    parts = {"memory": memory, "in_process": in_process, "throughput": throughput, "limits": limits}
    for name in sys.argv[1:] or parts:
        parts[name]()
    sys.exit(1 if missed else 0)
