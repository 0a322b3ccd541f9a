"""Nights one after the other in one process on one instance: memory, growth, and figures against fresh runs.

    python -m tests.bench.bench_nights [NIGHTS]        default 30; about 5 minutes of one core

Prints a line a night and fails where memory grows by more than 5 %, where prune leaves more than the kept nights need, or
where a night differs from a fresh workspace that runs it alone.
"""

from __future__ import annotations

import gc
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from ragbench_dagster.orchestration.event_log import drop_runs
from ragbench_dagster.orchestration.runs import run_night
from ragbench_dagster.reporting.retention import drop, outdated
from ragbench_dagster.reporting.summary import summary_for_json
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.store import Workspace
from tests.support.sample_workspace import SAMPLE, SETTINGS, sample_days

FLAT = 0.05  # of the memory after the first nights
WARM = 8  # nights until every cache of the process is full
WINDOW = "dataset: {window_days: 14, min_examples: 10}"
KEEP = 28


def make(root: Path) -> Workspace:
    (root / "logs").mkdir(parents=True)
    for day in sample_days():
        shutil.copy(SAMPLE / "logs" / f"{day}.jsonl.gz", root / "logs")
    for part in ("corpus.jsonl", "labels.jsonl", "scrub_labels.jsonl"):
        shutil.copy(SAMPLE / part, root)
    shutil.copytree(SAMPLE / "calibration", root / "calibration")
    settings = SETTINGS.format(more="").replace("dataset: {min_examples: 10}", WINDOW)
    (root / "ragbench.yaml").write_text(settings, encoding="utf-8")
    return Workspace.open(root)


def resident_mb() -> float:
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS: this bench needs Linux")


def size_mb(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink()) / 1e6


def figures(ws: Workspace, day: str) -> dict[str, Any]:
    systems = summary_for_json(ws, day)["systems"]
    kept = {s: {m: v for m, v in ms.items() if "latency" not in m} for s, ms in systems.items()}
    return {"release": ws.result(day, Manifest).release, "systems": kept}


def main(nights: int) -> int:
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        ws = make(Path(folder) / "one")
        days = sample_days()[-nights:]
        memory, store, home = [], [], []
        for day in days:
            run_night(ws, day)
            memory.append(resident_mb())
            store.append(size_mb(ws.store))
            home.append(size_mb(ws.dagster_home))
            print(
                f"{day}  {memory[-1]:7.1f} MB resident  store {store[-1]:7.2f} MB  .dagster {home[-1]:7.2f} MB",
                flush=True,
            )
        if len(memory) > WARM + 3:
            early, late = statistics.median(memory[WARM : WARM + 3]), statistics.median(memory[-3:])
            print(f"memory: {early:.1f} MB after {WARM} nights, {late:.1f} MB at the end: {late / early - 1:+.1%}")
            if late > early * (1 + FLAT):
                faults.append("memory grows")
            a_night = len(store) - 1 - WARM
            print(f"growth a night: store {(store[-1] - store[WARM]) / a_night:.3f} MB, "
                  f".dagster {(home[-1] - home[WARM]) / a_night:.3f} MB")  # fmt: skip
        print(
            "last verdicts:",
            json.dumps({d: getattr(ws.result(d, GateDecision), "verdict", None) for d in days[-3:]}),
        )
        for day in (days[len(days) // 2], days[-1]):
            alone = make(Path(folder) / f"fresh-{day}")
            shutil.copy(ws.root / ".key", alone.root / ".key")
            run_night(alone, day)
            same = figures(alone, day) == figures(ws, day)
            print(f"{day}: figures {'equal to' if same else 'DIFFER from'} those of a fresh workspace")
            if not same:
                faults.append(f"{day} differs from a fresh run")
        old = outdated(ws, KEEP)
        counts = drop(ws, old)
        counts["runs"] = drop_runs(ws, lambda run: run[1] < old.first_kept, lambda day: True)
        print(
            f"prune --keep-days {KEEP}: {counts}; store {size_mb(ws.store):.2f} MB, .dagster {size_mb(ws.dagster_home):.2f} MB"
        )
        if len(list((ws.store / "nights").glob("2*"))) > KEEP + len(old.needed):
            faults.append("prune left more nights than it keeps")
    print("FAULTS: " + "; ".join(faults) if faults else "all held")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
