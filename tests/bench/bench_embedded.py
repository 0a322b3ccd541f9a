"""The embedded judge against its target: below 1 ms of CPU a verdict where passages recur, as they do in a night.

    python -m tests.bench.bench_embedded

Answers of the built-in system on the sample workspace, ten passages each. Prints one JSON object; exit code 1 above
the target.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from ragbench_dagster.evaluation import bm25
from ragbench_dagster.evaluation.embedded import build, judged_here
from ragbench_dagster.records import Item
from ragbench_dagster.store import Workspace

SAMPLE = Path(__file__).resolve().parents[2] / "data"
TARGET_MS = 1.0


def items() -> list[Item]:
    engine = bm25.build(Workspace.open(SAMPLE))
    found = []
    for line in (SAMPLE / "labels.jsonl").read_text("utf-8").split("\n"):
        if line.strip():
            label = json.loads(line)
            response = engine.query(label["query"])
            contexts = tuple(node.node.get_content() for node in response.source_nodes)
            found.append(Item("e", label["query"], str(response), contexts, label["expected_answer"]))
    return found


def main() -> int:
    answers = items()
    spent: dict[str, float] = {}
    for metric in judged_here():
        evaluator = build(metric)
        begin = time.process_time()
        for item in answers:
            evaluator.grade_sync(item)
        spent[metric] = round(1000 * (time.process_time() - begin) / len(answers), 3)
    print(json.dumps({"answers": len(answers), "cpu_ms_per_verdict": spent, "target_ms": TARGET_MS}))
    return int(max(spent.values()) >= TARGET_MS)


if __name__ == "__main__":
    sys.exit(main())
