"""Scanning and sampling logs, side by side with plain readers of the same files.

    python -m tests.bench.bench_traffic [--days 100] [--per-day 245]

Prints one JSON object; exits 1 where a target is missed. Targets: 20,000 lines with 5 passages each scanned and
sampled in at most 5 s of CPU, a scan of unchanged logs in 0.2 s, memory below 400 MB, and the first scan (which
checks every field, hashes every line and indexes them) below the time in which pandas reads the good lines.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("RAGBENCH_SHARED") or Path(__file__).resolve().parents[3] / "shared")


def make(folder: Path, days: int, per_day: int) -> Path:
    """Logs with passage texts, from the shared generator."""
    out = folder / "made"
    command = [sys.executable, SHARED / "tools/make_traffic.py", "--benchmark", SHARED / "data/retrieval_feedbackqa"]
    options = ["--out", out, "--days", days, "--per-day", per_day, "--texts"]
    subprocess.run([str(part) for part in command + options], check=True, stdout=subprocess.DEVNULL)
    return out


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and the result."""
    begin = time.process_time()
    result = work()
    return round(time.process_time() - begin, 3), result


def ours(root: Path) -> dict[str, Any]:
    from ragbench_dagster.store import Workspace
    from ragbench_dagster.traffic.ingest import sample_days
    from ragbench_dagster.traffic.scan import scan_logs

    ws = Workspace.open(root)
    scan_s, index = cpu(lambda: scan_logs(ws))
    sample_s, facts = cpu(lambda: sample_days(ws, index.days))
    again_s, _ = cpu(lambda: scan_logs(ws))
    return {
        "scan_s": scan_s,
        "sample_s": sample_s,
        "scan_unchanged_s": again_s,
        "read": sum(f.read for f in facts.values()),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def standard_json(root: Path) -> int:
    """What a script would do: json.loads on every line that is JSON, nothing checked."""
    found = 0
    for path in sorted((root / "logs").iterdir()):
        with open(path, "rb") as lines:
            for line in lines:
                try:
                    found += isinstance(json.loads(line), dict)
                except ValueError:
                    continue
    return found


def pandas_reader(root: Path) -> int:
    """pandas, on the lines that it can read at all (it stops at a bad one, so they are taken out first)."""
    import io

    import pandas as pd

    found = 0
    for path in sorted((root / "logs").iterdir()):
        good = [x for x in path.read_bytes().split(b"\n") if x.startswith(b"{") and x.endswith(b"}")]
        text = b"\n".join(x for x in good if b"\xff" not in x).decode("utf-8")
        found += len(pd.read_json(io.StringIO(text), lines=True, dtype=False))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--per-day", type=int, default=245)  # fewer on weekends: 20,000 lines
    parser.add_argument("--only-ours", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only_ours:
        print(json.dumps(ours(asked.only_ours)))
        return
    with tempfile.TemporaryDirectory() as folder:
        root = make(Path(folder), asked.days, asked.per_day)
        # A process of its own, so that the peers' memory is not ours.
        command = [sys.executable, "-m", "tests.bench.bench_traffic", "--only-ours", str(root)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        size = sum(p.stat().st_size for p in (root / "logs").iterdir())
        json_s, _ = cpu(lambda: standard_json(root))
        pandas_s, _ = cpu(lambda: pandas_reader(root))
    total = found["scan_s"] + found["sample_s"]
    report = {"lines": found["read"], "mb": size >> 20, "ours": found, "json.loads_s": json_s, "pandas_s": pandas_s}
    missed = [
        name
        for name, holds in {
            "scan and sample within 5 s": total <= 5,
            "unchanged within 0.2 s": found["scan_unchanged_s"] <= 0.2,
            "below 400 MB": found["peak_mb"] < 400,
            "scan below pandas": found["scan_s"] <= pandas_s,
        }.items()
        if not holds
    ]
    print(json.dumps({**report, "missed": missed}, indent=1))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
