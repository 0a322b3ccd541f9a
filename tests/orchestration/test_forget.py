"""`ragbench forget`: no byte of a person stays, others' figures stay, a rerun and a kill change nothing of that."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ragbench_dagster.cli import app
from ragbench_dagster.dataset.release import list_releases, load_release
from ragbench_dagster.errors import UserError
from ragbench_dagster.results import Manifest
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.ingest import sample_days as sample_traffic
from ragbench_dagster.traffic.ingest import scrub_days
from ragbench_dagster.traffic.suppression import list_file
from tests.support.sample_workspace import SAMPLE, SETTINGS, sample_days

PERSON = "u-canary"
CANARIES = (b"quokka", b"QUOKKA", b"u-canary", b"req_canary")
MORE = "dataset: {min_examples: 10, refresh: daily}\npairwise: [[bm25, logged]]\ntracking: {mlflow_uri: sqlite, wandb_project: rag}\n"
DAYS = 2
OF_RELEASE = ("weight", "category", "count", "cluster")  # of a question, by what else was asked


def of_person(n: int, day: str, lines: list[str]) -> list[str]:
    """What the canary person asked on a day: alone, in a talk, in words that others used too, without their name."""

    def line(hour: int, query: str, **more) -> str:
        row = {
            "timestamp": f"{day}T1{hour}:00:00Z", "request_id": f"req_canary_{n}_{hour}", "user_id": PERSON, "query": query,
            "response": f"the quokkaanswer {n}{hour} stands here", "category": "quokkacat", "latency_ms": 1234.5 + hour,
            "source_nodes": [{"node_id": "two-factor", "score": 0.5, "text": "quokkapassage on two factors"}], **more,
        }  # fmt: skip
        return json.dumps({k: v for k, v in row.items() if v is not None})

    first = "why does the quokkazone panel blink twice"
    shared = json.loads(lines[5])["query"]
    return [
        line(0, first, conversation_id=f"talk-{n}"),
        line(1, "and what about quokkafollow then", conversation_id=f"talk-{n}", history=[first]),
        line(2, "a quokkaturn that nobody signed", conversation_id=f"talk-{n}", user_id=None, request_id=f"r-{n}"),
        line(3, "Please, " + shared.upper() + "!!", response="a quokkaanswer to all"),
        line(4, json.loads(lines[7])["query"] + " quokkaplease"),
    ]


def build(root: Path, with_person: bool) -> Workspace:
    (root / "logs").mkdir(parents=True)
    for n, day in enumerate(sample_days()[-DAYS:]):
        lines = gzip.decompress((SAMPLE / "logs" / f"{day}.jsonl.gz").read_bytes()).decode().splitlines()
        lines += of_person(n, day, lines) if with_person else []
        with gzip.open(root / "logs" / f"{day}.jsonl.gz", "wt") as file:
            file.write("\n".join(lines) + "\n")
    for part in ("corpus.jsonl", "labels.jsonl", "scrub_labels.jsonl"):
        shutil.copy(SAMPLE / part, root)
    shutil.copytree(SAMPLE / "calibration", root / "calibration")
    settings = SETTINGS.format(more="").replace("dataset: {min_examples: 10}\n", MORE)
    (root / "ragbench.yaml").write_text(settings, encoding="utf-8")
    return Workspace.open(root)


def command(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code in (0, 1, 3), (done.output, done.exception)
    return done.stdout


@pytest.fixture(scope="module")
def night(tmp_path_factory) -> Path:
    """A workspace with the person, its night run, its release exported, its queue written, answers drawn to label."""
    folder = tmp_path_factory.mktemp("law")
    ws = build(folder / "ws", True)
    command("run", "-w", str(ws.root), "--json")
    day = sample_days()[-1]
    command("releases", "export", day, "--to", str(folder / "out"), "-w", str(ws.root))
    command("releases", "export", day, "--to", str(folder / "out"), "--format", "csv", "-w", str(ws.root))
    command("label", "next", "-n", "500", "--to", str(folder / "out" / "queue.jsonl"), "-w", str(ws.root))
    command("label", "answers", "--system", "logged", "-n", "500", "-w", str(ws.root))
    queue = [json.loads(line) for line in (folder / "out" / "queue.jsonl").read_text().splitlines()]
    own = [{**row, "expected_answer": "quokkalabel"} for row in queue if "quokkazone" in row["query"]][:1]
    (folder / "filled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own))
    command("label", "import", str(folder / "filled.jsonl"), "-w", str(ws.root))
    (folder / "filled.jsonl").unlink()
    return folder


@pytest.fixture
def copy(night, tmp_path) -> Workspace:
    """A copy of it whose exports lie beside it."""
    shutil.copytree(night, tmp_path / "law", symlinks=True)
    register = tmp_path / "law" / "ws" / "store" / "releases" / "exports.jsonl"
    register.write_text(register.read_text().replace(str(night), str(tmp_path / "law")))
    return Workspace.open(tmp_path / "law" / "ws")


def bytes_of(path: Path) -> list[bytes]:
    """A file's bytes, and what its compressed parts hold."""
    data = path.read_bytes()
    found = [data]
    if data[:4] == b"PAR1":
        table = pq.read_table(path)
        found.append(repr((table.to_pydict(), table.schema.metadata)).encode())
    if data[:2] == b"\x1f\x8b":
        found.append(gzip.decompress(data))
    return found


def canaries(root: Path) -> list[str]:
    """Files below `root`, the logs left out, that hold a byte of the person."""
    files = [p for p in root.rglob("*") if p.is_file() and not p.is_symlink() and "logs" not in p.parts]
    return sorted(str(p.relative_to(root)) for p in files if any(c in part for part in bytes_of(p) for c in CANARIES))


def state(root: Path) -> dict[str, bytes]:
    """Every stored file that does not depend on the clock."""
    apart = (".db", "mlflow", "wandb", "timings", ".dagster", "alerts", ".lock")
    files = [p for p in root.rglob("*") if p.is_file() and not any(word in str(p.relative_to(root)) for word in apart)]
    return {str(p.relative_to(root)): p.read_bytes() for p in files}


KILLS = ("erase_night", "bury", "compute_again")
SCRIPT = """
import os, signal, sys
from ragbench_dagster.reporting import erasure
real, calls = getattr(erasure, sys.argv[2]), []
def dies(*given, **more):
    calls.append(1)
    result = real(*given, **more)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(erasure, sys.argv[2], dies)
from ragbench_dagster.store import Workspace
ws = Workspace.open(sys.argv[1])
erasure.forget(ws, erasure.marks_of(ws, ["u-canary"], [], []))
"""


@pytest.mark.slow
def test_killed_half_way_the_next_call_finishes_it_as_if_it_had_never_been_killed(copy, tmp_path):
    (copy.root / "ragbench.yaml").write_text(
        (copy.root / "ragbench.yaml").read_text().replace(MORE.splitlines()[2], "")
    )
    from ragbench_dagster.reporting import erasure

    whole = tmp_path / "whole"
    shutil.copytree(copy.root.parent, whole, symlinks=True)
    ws = Workspace.open(whole / "ws")
    moved(ws, copy.root.parent, whole)
    erasure.forget(ws, erasure.marks_of(ws, [PERSON], [], []))
    wanted = state(whole / "ws" / "store") | state(whole / "out")
    wanted.pop("releases/exports.jsonl")
    for step in KILLS:
        place = tmp_path / step
        shutil.copytree(copy.root.parent, place, symlinks=True)
        ws = Workspace.open(place / "ws")
        moved(ws, copy.root.parent, place)
        done = subprocess.run([sys.executable, "-c", SCRIPT, str(ws.root), step], timeout=120)
        assert done.returncode == -signal.SIGKILL, step
        assert erasure.journal(ws).exists()
        assert not any(c in erasure.journal(ws).read_bytes() for c in CANARIES)
        erasure.resume(ws)
        found = state(place / "ws" / "store") | state(place / "out")
        found.pop("releases/exports.jsonl")
        assert found == wanted, step


def moved(ws: Workspace, old: Path, new: Path) -> None:
    register = ws.store / "releases" / "exports.jsonl"
    register.write_text(register.read_text().replace(str(old), str(new)))


@pytest.mark.parametrize("way", ["request", "text"])
def test_one_request_or_one_text_goes_and_the_persons_others_stay(copy, tmp_path, way):
    (copy.root / "ragbench.yaml").write_text(
        (copy.root / "ragbench.yaml").read_text().replace(MORE.splitlines()[2], "")
    )
    text = "why does the quokkazone panel blink twice"
    if way == "request":
        words = ["--request", "req_canary_0_0", "--request", "req_canary_1_0"]
    else:
        (tmp_path / "texts.txt").write_text("Why does the QUOKKAZONE panel blink twice?\n")
        words = ["--text-file", str(tmp_path / "texts.txt")]
    removed = json.loads(command("forget", *words, "--json", "-w", str(copy.root)))["removed"]
    assert removed["requests"] == 3 * DAYS  # the turns that bring it along go too
    held = [q for row in list_releases(copy) for q in load_release(copy, row["id"]).examples["query"].to_pylist()]
    assert not any("quokkazone" in q for q in held)
    assert any("quokkaplease" in q for q in held)
    sample_traffic(copy, sample_days()[-DAYS:])
    scrub_days(copy, sample_days()[-DAYS:])
    rows = [
        r for day in sample_days()[-DAYS:] for r in pq.read_table(copy.traffic(day) / "scrubbed.parquet").to_pylist()
    ]
    assert not any("quokkazone" in text for r in rows for text in [r["query"], *r["history"]])
    assert any("quokkaturn" in r["query"] for r in rows)  # without what was said before it
    assert not [p for p in copy.store.rglob("*") if p.is_file() and any(text.encode() in b for b in bytes_of(p))]


def test_whom_to_forget_must_be_named(copy):
    for words in (["forget"], ["forget", "--user", " "], ["forget", "--text-file", "no-such-file"]):
        done = CliRunner().invoke(app, [*words, "-w", str(copy.root)])
        assert isinstance(done.exception, UserError), words


@pytest.mark.slow
def test_no_byte_of_the_person_stays_and_the_rerun_is_that_of_logs_without_them(night, tmp_path):
    # MLflow writes down where its files lie: the workspace itself, not a copy; so this test comes last.
    ws, law, day = Workspace.open(night / "ws"), night, sample_days()[-1]
    old = ws.result(day, Manifest).release
    assert {"out/queue.jsonl", "ws/labels.jsonl", f"ws/store/nights/{day}/report.html"} <= set(canaries(law))
    before = state(law)
    looked = json.loads(command("forget", "--user", PERSON, "--dry-run", "--json", "-w", str(ws.root)))["removed"]
    assert {k: v for k, v in state(law).items() if "cache" not in k} == {
        k: v for k, v in before.items() if "cache" not in k
    }
    done = command("forget", "--user", PERSON, "--json", "-w", str(ws.root))
    assert not any(c in done.encode() for c in CANARIES)
    removed = json.loads(done)["removed"]
    assert removed | looked == removed
    assert removed["requests"] == 5 * DAYS
    assert all(
        removed[what] > 0
        for what in ("releases", "examples", "nights", "exports", "verdicts", "labels", "drawn answers")
    )
    assert canaries(law) == []
    with pytest.raises(UserError, match="stands in its place"):
        load_release(ws, old)
    assert oct(list_file(ws).stat().st_mode)[-3:] == "600"
    # Their rows only: everybody else's are what they were.
    rows = {
        (r["system"], r["metric"], r["example_id"]): r
        for r in pq.read_table(ws.night(day) / "scores.parquet").to_pylist()
    }
    old_rows = pq.read_table(before_table(before, law, ws.night(day) / "scores.parquet")).to_pylist()
    kept = [r for r in old_rows if (r["system"], r["metric"], r["example_id"]) in rows]
    assert 0.8 * len(old_rows) < len(kept) < len(old_rows)
    for row in kept:
        now = rows[row["system"], row["metric"], row["example_id"]]
        assert {k: v for k, v in now.items() if k not in OF_RELEASE} == {
            k: v for k, v in row.items() if k not in OF_RELEASE
        }
    # The logs still hold them: the day run again gives what it gives without them.
    said = json.loads(command("run", "-w", str(ws.root), "--json"))
    assert canaries(law) == []
    fresh = build(tmp_path / "fresh", False)
    plain = json.loads(command("run", "-w", str(fresh.root), "--json"))
    for name in ("release", "requests", "systems"):
        one, other = said[name], plain[name]
        if name == "systems":
            one, other = (
                {s: {m: v for m, v in ms.items() if "latency" not in m} for s, ms in x.items()} for x in (one, other)
            )
        assert one == other, name


def before_table(before: dict[str, bytes], law: Path, path: Path):
    import io

    return io.BytesIO(before[str(path.relative_to(law))])
