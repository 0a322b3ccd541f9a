"""kill -9, SIGINT and SIGTERM at seeded random moments of a night, then a rerun: the same bytes as an undisturbed run.

    python -m tests.bench.bench_crash [KILLS=30] [SEED=7]

Takes about KILLS times the length of a small night. Prints one line a kill, and ends with 1 where a byte differs.
"""

import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DAY = "2026-11-20"
SETTINGS = (
    "traffic: {start: 2026-11-18, sample: {rate: 1.0}}\nsystems: {logged: {kind: logged}}\nmetrics: [relevancy]\n"
)


def workspace(root: Path) -> Path:
    (root / "logs").mkdir(parents=True)
    (root / "ragbench.yaml").write_text(SETTINGS)
    for day in (18, 19, 20):
        rows = (
            {
                "timestamp": f"2026-11-{day}T10:{n:02d}:00Z",
                "query": f"how is topic {n % 7} set?",
                "response": "Like so.",
            }
            for n in range(40)
        )
        (root / "logs" / f"2026-11-{day}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / ".key").write_text("ab" * 32 + "\n")  # equal keys, equal hashes
    return root


def start(root: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ragbench_dagster.cli", "run", "--workspace", str(root), "--date", DAY]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def store_bytes(root: Path) -> dict[str, str]:
    """Digest of every file of the store that must be equal: not databases, locks, and what times name."""
    outside = ("timings.parquet", ".lock")
    files = (p for p in (root / "store").rglob("*") if p.is_file() and ".db" not in p.name and p.name not in outside)
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files if "cache" not in p.parts
    }


def main(kills: int, seed: int) -> int:
    base = Path(tempfile.mkdtemp(prefix="ragbench-crash-"))
    calm = workspace(base / "calm" / "ws")  # the report names the folder
    begin = time.monotonic()
    assert start(calm).wait() in (0, 1, 3)
    length = time.monotonic() - begin
    wanted, rng, bad = store_bytes(calm), random.Random(seed), 0
    for number in range(kills):
        root = workspace(base / str(number) / "ws")
        how = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
        process, moment = start(root), rng.uniform(0.1, length)
        time.sleep(moment)
        process.send_signal(how)
        first = process.wait()
        last = start(root)
        errors = last.communicate()[1]
        found = store_bytes(root)
        different = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        halves = [str(p) for p in root.rglob("*.part")]
        print(f"{number}: {how.name} after {moment:.1f} s: {first}, then {last.returncode}; different: {different[:5]}")
        if different or halves or last.returncode not in (0, 1, 3):
            bad += 1
            print(errors.decode()[-500:], halves)
        shutil.rmtree(root)
    print(f"{kills} interruptions, {bad} with another outcome")
    shutil.rmtree(base)
    return int(bad > 0)


if __name__ == "__main__":
    given = [int(value) for value in sys.argv[1:]]
    sys.exit(main(given[0] if given else 30, given[1] if len(given) > 1 else 7))
