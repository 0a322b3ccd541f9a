"""Nothing that people hand in, log or set leaves its place: planted values are searched in every byte that is written.

One process runs the commands on a workspace with a planted value in every field, beside a judge and a system that
echo, quote, fail and redirect, with every library logging at level debug, MLflow, W&B and alerts on. Then every file
(store, Dagster's home, temporary folders, home) and everything printed is opened and searched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.canary_bytes import found_in
from tests.support.canary_world import DAYS, SECRETS, Plants, Service, judge, system, write_workspace

# Each command as the command line runs it, in one process: starting thirty would take minutes.
# A line `!module:function TEXT` makes that function fail with TEXT, for the next command alone.
DRIVER = """\
import importlib, logging, sys, time
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, force=True)
from ragbench_dagster import cli
broken = []
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("!"):
        place, _, text = line[1:].strip().partition(" ")
        module, function = place.split(":")
        module = importlib.import_module(module)
        def fail(*_, text=text, **__):
            raise ValueError(text)
        broken.append((module, function, getattr(module, function)))
        setattr(module, function, fail)
        continue
    sys.argv = ["ragbench", *line.split()]
    before = time.process_time()
    try:
        cli.main()
        code = 0
    except SystemExit as end:
        code = end.code
    while broken:
        setattr(*broken.pop())
    logging.getLogger().setLevel(logging.DEBUG)
    print(f"#CODE {code} {line.strip()}", f"{time.process_time() - before:.1f} s", file=sys.stderr, flush=True)
"""


@dataclass
class World:
    """What was planted, where it may stand, and what was printed."""

    root: Path
    plants: Plants
    foreign: Service
    asked: Service
    alerted: Service
    printed: str = ""
    codes: dict[str, int] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)  # by the function that failed

    @property
    def inputs(self) -> list[Path]:
        given = ("logs", "calibration", "corpus.jsonl", "labels.jsonl", "scrub_labels.jsonl", "canary_engine.py")
        return [*(self.root / "ws" / name for name in given), self.root / "in"]

    @property
    def canaries(self) -> list[str]:
        # Numbers are planted with blanks or in one piece: their digits alone are searched too.
        digits = ["".join(c for c in value if c.isdigit()) for value in self.plants.made if value.startswith("+")]
        return [*self.plants.made, *digits, *SECRETS.values(), "canaryson", "5551239876"]


def run(world: World, env: dict[str, str], *commands: str) -> None:
    script, lines = world.root / "in" / "driver.py", world.root / "in" / "commands.txt"
    script.write_text(DRIVER, encoding="utf-8")
    lines.write_text("\n".join(commands) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(lines)],
        cwd=world.root / "cwd", env=env, capture_output=True, timeout=600, input=b"", check=False,
    )  # fmt: skip
    text = done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")
    for line in text.split("\n"):
        if line.startswith("#CODE "):
            _, code, command = line.rsplit(" ", 2)[0].split(" ", 2)
            world.codes[command] = int(code)
    world.printed += text


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("canaries")
    for name in ("tmp", "home", "cwd", "in"):
        (root / name).mkdir()
    plants = Plants()
    foreign = Service(lambda *_: (200, {}, {"response": "stolen"}))
    alerted = Service(lambda *_: (200, {}, {}))
    asked, provider = system(plants, f"http://127.0.0.1:{foreign.port}"), judge(plants)
    write_workspace(root / "ws", plants, provider.port, asked.port)
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RAGBENCH_") and "PROXY" not in name.upper()
    }
    alerts = f"json://127.0.0.1:{alerted.port}/{SECRETS['CANARY_ALERT_TOKEN']}"
    env |= {**SECRETS, "CANARY_ALERTS": alerts, "TMPDIR": str(root / "tmp"), "HOME": str(root / "home"), "XDG_CACHE_HOME": str(root / "home"),
            "RAGBENCH_WORKSPACE": str(root / "ws")}  # fmt: skip
    found = World(root, plants, foreign, asked, alerted)
    run(
        found, env,
        f"run --date {DAYS[1]}", f"run --date {DAYS[1]} --json", "leaderboard", "failures", "label next",
        f"label answers --system prod -n 3 --date {DAYS[1]}",
    )  # fmt: skip
    break_and_run(found, env)
    yield found
    for service in (foreign, alerted, asked, provider):
        service.close()


def break_and_run(world: World, env: dict[str, str]) -> None:
    """A failure in every stage: each is told, and nothing of what it choked on."""
    ws = world.root / "ws"
    settings = (ws / "ragbench.yaml").read_text(encoding="utf-8")

    def changed(old: str, new: str) -> None:
        assert old in settings
        (ws / "ragbench.yaml").write_text(settings.replace(old, new), encoding="utf-8")

    refused = Service(
        lambda path, headers, *_: (
            401,
            {},
            {"error": {"message": f"wrong key {headers['authorization']} of {world.plants.mail('refused')}"}},
        )
    )
    changed("canary_engine:build", "canary_engine:broken")
    run(world, env, f"run --date {DAYS[0]}")
    changed("judge-2026-01-01,", "judge-2026-02-02,")
    text = (ws / "ragbench.yaml").read_text(encoding="utf-8")
    (ws / "ragbench.yaml").write_text(
        text.replace(text.split("127.0.0.1:")[2].split("/")[0], str(refused.port)), encoding="utf-8"
    )
    run(world, env, f"calibrate --date {DAYS[0]}")
    (ws / "ragbench.yaml").write_text(settings, encoding="utf-8")
    fail_everywhere(world, env)
    with open(next((ws / "calibration").glob("maria*")), "a", encoding="utf-8") as file:
        file.write(f'{{"query": "{world.plants.mail("broken")}", "human": 1}}\n')
    run(world, env, f"run --date {DAYS[1]}")
    refused.close()


# What each stage and command calls; a fault there quotes what it worked on, as a library's would.
STAGES = """\
traffic.ingest:sample_days traffic.ingest:scrub_days traffic.privacy:verify_days traffic.privacy:measure_scrubbing
dataset.release:cut_release dataset.dedupe:measure_dedupe evaluation.answers:answer_release
evaluation.pipeline:score_retrieval_night evaluation.pipeline:judge_night calibration.calibrate:calibrate
reporting.pairwise:judge_pairs reporting.scores:build_scores reporting.summary:summarise reporting.leaderboard:rank
reporting.gate.decide:decide reporting.report:write_report reporting.tracking:track
""".split()
COMMANDS = {
    "traffic.preview:preview": "logs check", "traffic.scan:scan_logs": "doctor",
    "reporting.erasure:survey": "forget --request nobody --dry-run", "reporting.retention:outdated": "prune --dry-run",
    "reporting.report:write_report": f"report --date {DAYS[1]}", "dataset.labelling:label_queue": "label next",
    "dataset.export:export_release": "releases export --format jsonl --out ../in/export.jsonl",
    "reporting.reproduce:reproduce_night": f"reproduce {DAYS[1]}", "evaluation.estimate:estimate_night": "estimate",
}  # fmt: skip


def fail_everywhere(world: World, env: dict[str, str]) -> None:
    tried = [(place, f"run --date {DAYS[1]}") for place in STAGES] + list(COMMANDS.items())
    lines = []
    for place, command in tried:
        quoted = f"cannot read {world.plants.mail('bug')} {world.plants.card()} {world.plants.key()} here"
        lines += [f"!ragbench_dagster.{place} {quoted}", command]
    before, codes = len(world.printed), dict(world.codes)
    run(world, env, *lines)
    world.codes = codes
    said = [line for line in world.printed[before:].split("\n") if line.startswith("#CODE ")]
    for (place, _), line in zip(tried, said, strict=True):
        world.broken[f"{place} {line.split(' ', 2)[2]}"] = int(line.split(" ")[1])


def test_every_stage_and_command_failed_where_it_was_made_to(world: World) -> None:
    assert len(world.broken) == len(STAGES) + len(COMMANDS)
    passed = [place.split(" ")[0:2] for place, code in world.broken.items() if code != 2]
    # What comes after the gate costs the night nothing; it is told.
    assert passed == [["reporting.report:write_report", "run"], ["reporting.tracking:track", "run"]]


def test_the_commands_ran_and_the_failures_failed(world: World) -> None:
    """Else nothing would have been there to leak."""
    assert world.codes[f"run --date {DAYS[1]}"] == 2, "the last one met a broken file"
    for command in (f"run --date {DAYS[1]} --json", "leaderboard", "failures", "label next"):
        assert world.codes[command] in (0, 1, 3), (command, world.printed[-3000:])
    store = world.root / "ws" / "store"
    assert (store / "mlflow.db").exists()
    assert list((store / "wandb").glob("offline-run-*"))
    assert world.alerted.seen
    assert len(world.asked.seen) > 20
    assert "EMAIL_ADDRESS" in json.dumps([p.name for p in store.rglob("*")]) or any(store.rglob("*.parquet"))


def test_no_planted_value_is_in_any_byte_that_was_written(world: World) -> None:
    assert found_in([world.root], world.canaries, left_out=world.inputs) == []


def test_no_planted_value_is_in_anything_that_was_printed(world: World) -> None:
    low = world.printed.lower()
    assert [c for c in world.canaries if c.lower() in low] == []
    assert "debug" in low, "libraries logged at level debug"


def test_the_foreign_host_got_nothing(world: World) -> None:
    assert world.foreign.seen == []


def test_the_search_finds_what_stands_in_any_kind_of_file(tmp_path: Path) -> None:
    import base64
    import gzip
    import sqlite3

    import pyarrow as pa
    import pyarrow.parquet as pq

    value = "someone.42.canary@mail42.example.org"
    (tmp_path / "a.txt").write_text(base64.b64encode(f"xx{value}".encode()).decode())
    (tmp_path / "b.gz").write_bytes(gzip.compress(gzip.compress(value.encode())))
    pq.write_table(pa.table({"x": [value]}), tmp_path / "c.parquet", compression="zstd")
    with sqlite3.connect(tmp_path / "d.db") as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (?)", (gzip.compress(value.encode()),))
    (tmp_path / f"{value}.log").write_text("")
    (tmp_path / "clean.txt").write_text("nothing")
    found = {Path(line.split(": ", 1)[1]).name for line in found_in([tmp_path], [value])}
    assert found == {"a.txt", "b.gz", "c.parquet", "d.db", f"{value}.log"}
