"""What failed is asked again later, in hash order, once for all: outages pass, faults stay, a kill loses nothing."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from ragbench_dagster.evaluation.answers import answer_release
from ragbench_dagster.store import Workspace, read_json
from tests.support.small_nights import answers, release, workspace

DAY = "2026-11-20"
# Fails on the questions named in fail.txt, which each call may lack after `heals` calls.
ENGINE = """
import time
from itertools import pairwise
def build(workspace, heals=10**9, down=(0, 0), slow=""):
    calls = [0]
    def ask(text):
        with open(workspace.root / "asked.txt", "a", encoding="utf-8") as file:
            file.write(text + "\\n")
        calls[0] += 1
        if slow and slow in text:
            time.sleep(20)
        if down[0] <= calls[0] <= down[1] or ("hard" in text and calls[0] <= heals):
            raise ConnectionError("down")
        return {"answer": f"about {text}", "sources": [{"id": "n1", "text": "context"}]}
    return ask
"""
SETTINGS = (
    "systems: {mine: {kind: engine, engine: 'shaky:build', params: %s, concurrency: 1, retry_after_s: %s, timeout_s: %s}}"
    "\nscrub: {ner: 'off'}"
)


def make(root: Path, params: str = "{}", waits: str = "[0, 0]", timeout: float = 20) -> Workspace:
    return workspace(root, SETTINGS % (params, waits, timeout), shaky_py=ENGINE)


def asked(ws: Workspace) -> list[str]:
    path = ws.root / "asked.txt"
    return path.read_text("utf-8").split("\n")[:-1] if path.exists() else []


def facts(ws: Workspace) -> dict:
    return read_json(ws.night(DAY, "mine") / "attempts.json")


def test_a_fault_of_the_system_is_asked_three_times_and_stays(tmp_path: Path) -> None:
    ws = make(tmp_path)
    small = release(*[f"question {i}" for i in range(8)], "a hard one", "another hard one")
    run = answer_release(ws, DAY, "mine", small)
    assert run.calls == 8 + 3 * 2
    assert asked(ws).count("a hard one") == 3
    assert [answers(run.responses, small)[q]["status"] for q in ("a hard one", "question 1")] == ["error", "scored"]
    found = facts(ws)
    assert (found["asked"], found["failed_first"], found["mended"], found["missing"]) == (10, 2, 0, 2)
    assert (sum(found["order"]), sum(found["order"][1::2]), found["answered_first"]) == (10, 2, 0.8)


def test_an_outage_in_the_middle_is_one_run_of_errors_and_mended(tmp_path: Path) -> None:
    ws = make(tmp_path, "{down: [20, 35]}")
    run = answer_release(ws, DAY, "mine", release(*[f"question {i}" for i in range(60)]))
    assert set(run.responses["status"].to_pylist()) == {"scored"}
    found = facts(ws)
    assert (found["failed_first"], found["mended"], found["missing"]) == (16, 16, 0)
    assert found["order"] == [19, 16, 25]
    assert run.calls == 76
    assert answer_release(ws, DAY, "mine", release(*[f"question {i}" for i in range(60)])).calls == 0
    assert facts(ws) == found


def test_a_run_that_ends_after_any_of_its_files_is_made_whole_by_the_next(tmp_path: Path, monkeypatch) -> None:
    """kill -9 after the answers' table left a night without the facts of its calls, for good."""
    whole = release("question 1", "question 2")
    for number, name in enumerate(("timings.parquet", "attempts.json", "responses.parquet")):
        (tmp_path / str(number)).mkdir()
        ws = make(tmp_path / str(number))

        def moved(source, target, name=name, move=os.replace, **more):
            move(source, target, **more)
            if Path(target).name == name:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", moved)
            with pytest.raises(KeyboardInterrupt):
                answer_release(ws, DAY, "mine", whole)
        assert answer_release(ws, DAY, "mine", whole).calls == 0
        assert facts(ws)["asked"] == 2


def test_questions_are_asked_in_an_order_that_has_nothing_to_do_with_their_own(tmp_path: Path) -> None:
    ws = make(tmp_path)
    questions = [f"{topic} {i}" for topic in ("billing", "login") for i in range(20)]
    answer_release(ws, DAY, "mine", release(*questions))
    order = [text.split()[0] for text in asked(ws)]
    changes = sum(a != b for a, b in pairwise(order))
    assert 10 <= changes <= 30  # sorted: 1; alternating: 39
    times = answer_release(ws, DAY, "mine", release(*questions)).timings
    assert all(t is not None for t in times["started"].to_pylist())


def test_nothing_waits_where_nothing_failed(tmp_path: Path) -> None:
    ws = make(tmp_path, waits="[600, 1800]")
    began = time.monotonic()
    answer_release(ws, DAY, "mine", release("one", "two"))
    assert time.monotonic() - began < 60
    assert facts(ws)["missing"] == 0


def test_a_finished_night_run_again_asks_what_is_missing_once_and_at_once(tmp_path: Path) -> None:
    small = release("one", "a hard one")
    ws = make(tmp_path, waits="[]")
    assert answer_release(ws, DAY, "mine", small).calls == 2
    ws = make(tmp_path, waits="[600]")  # changes no answer
    began = time.monotonic()
    assert answer_release(ws, DAY, "mine", small).calls == 1
    assert time.monotonic() - began < 60
    ws = make(tmp_path, "{heals: 0}")  # another version: everything anew
    assert answer_release(ws, DAY, "mine", small).calls == 2
    assert facts(ws)["missing"] == 0


def test_an_answer_that_does_not_come_in_time_is_told_apart_with_its_limit(tmp_path: Path) -> None:
    ws = make(tmp_path, "{slow: slow}", "[]", timeout=4)
    small = release("a slow one", "a hard one", "one")
    run = answer_release(ws, DAY, "mine", small)
    told = answers(run.responses, small)
    assert [told[q]["status"] for q in ("a slow one", "a hard one", "one")] == ["timed_out", "error", "scored"]
    rows = {row["example_id"]: row for row in run.timings.to_pylist()}
    assert rows[told["a slow one"]["example_id"]]["limit_ms"] == 4000
    assert rows[told["a slow one"]["example_id"]]["latency_ms"] is None
    assert rows[told["one"]["example_id"]]["limit_ms"] is None


SCRIPT = """
import sys
from pathlib import Path
from ragbench_dagster.evaluation.answers import answer_release
from tests.support.small_nights import release
from tests.evaluation.test_attempts import DAY, make
answer_release(make(Path(sys.argv[1]), "{heals: 10}", sys.argv[2]), DAY, "mine",
               release(*(f"question {i}" for i in range(9)), "a hard one"))
"""


def test_kill_9_while_it_waits_loses_nothing_and_the_wait_goes_on(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    ws = make(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), "[300]"], env=environment, cwd=root)
    deadline = time.monotonic() + 60
    while len(asked(ws)) < 10 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (ws.night(DAY, "mine") / "responses.parquet").exists()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), "[3]"], env=environment, cwd=root, timeout=60, check=True
    )
    assert done.returncode == 0
    # Ten calls of the first process, and the question that failed once more; nothing else is asked again.
    assert len(asked(ws)) == 11
    assert asked(ws).count("a hard one") == 2
    found = facts(ws)
    assert (sum(found["order"]), found["failed_first"], found["missing"]) == (10, 1, 1)
