"""A provider whose faults are drawn by hash, so that the number of requests that an honest client makes is known."""

import hashlib
import re
import sys
from typing import Any

from tests.support.fake_provider import Act, Seen

RATES = (("429", 0.05), ("500", 0.02), ("hang", 0.01), ("cut", 0.005), ("garbage", 0.01))
RETRY_AFTER_S = 0.2
MAX_ATTEMPTS = 6


def item_of(seen: Seen) -> str:
    """The metric and number that a request is about; a re-ask is about the same."""
    found = re.findall(r"item-(\d+)x", seen.prompt)[-1]
    first = str(seen.body["messages"][0]["content"])
    metric = "correctness" if "holistic" in first else "relevancy" if "in line with" in first else "faithfulness"
    return f"{metric} {found}"


def fault(item: str, attempt: int) -> str:
    """What happens to the `attempt`th request about `item`; "" for an answer."""
    draw = int.from_bytes(hashlib.sha256(f"{item} {attempt}".encode()).digest()[:8], "big") / 2**64
    for name, rate in RATES:
        if draw < rate:
            return name
        draw -= rate
    return ""


def plan(seen: Seen) -> Act:
    item = item_of(seen)
    what = fault(item, seen.attempt)
    if what == "429":
        return Act(
            status=429, headers={"retry-after-ms": str(int(RETRY_AFTER_S * 1000))}, raw={"error": {"message": "x"}}
        )
    if what == "500":
        return Act(status=500, raw={"error": {"message": "boom"}})
    if what == "hang":
        return Act(hang=True)
    if what == "cut":
        return Act(cut="half" if seen.attempt % 2 else "before")
    if what == "garbage":
        return Act("I wonder.", delay_s=0.005)
    return Act("4.0\nAlike." if item.startswith("correctness") else "YES", delay_s=0.005)


def expected(item: str) -> tuple[str, int]:
    """(status, requests) of an item under an honest client: retries for faults, one re-ask for garbage."""
    requests, tries, garbage = 0, 0, 0
    while True:
        requests, tries = requests + 1, tries + 1
        what = fault(item, requests)
        if what == "garbage":
            garbage, tries = garbage + 1, 0
            if garbage == 2:
                return "unparsable", requests
        elif not what:
            return "scored", requests
        elif tries == MAX_ATTEMPTS:
            return "error", requests


def night(n: int) -> tuple[Any, Any]:
    """(responses, release) of `n` examples whose number stands in every text."""
    from tests.support.judge_items import Release, responses

    release = Release([""] * n)
    rows = release.examples.to_pylist()
    for i, row in enumerate(rows):
        row["query"], row["expected_answer"] = f"What of item-{i}x?", f"Reference of item-{i}x."
    from ragbench_dagster import records
    from ragbench_dagster.store import rows_table

    release.examples = rows_table(rows, records.EXAMPLES)
    return responses([f"Answer of item-{i}x." for i in range(n)]), release


if __name__ == "__main__":  # faulty.py WORKSPACE BASE N: judges a night, to be killed
    from pathlib import Path

    from ragbench_dagster.evaluation.judge_runner import judge_answers
    from ragbench_dagster.settings import Judge, parse_settings
    from ragbench_dagster.store import Workspace

    judge = Judge.model_validate(
        {"provider": "openai_like", "model": "fake-2026-01-01", "api_base": sys.argv[2], "api_key_env": "",
         "context_window": 8192, "price": {"input": 1, "output": 1}, "timeout_s": 5,
         "concurrency": {"min": 16, "start": 32, "max": 32}}
    )  # fmt: skip
    settings = parse_settings("metrics: [faithfulness, relevancy, correctness]").model_copy(update={"judge": judge})
    run = judge_answers(Workspace(Path(sys.argv[1]), settings), "2026-01-02", "s", *night(int(sys.argv[3])))
    print(run.statuses, run.calls, flush=True)
