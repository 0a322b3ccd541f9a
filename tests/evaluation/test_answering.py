"""Answering a release: each question once, nothing lost, nothing asked twice, nothing personal written."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.answers import answer_release
from ragbench_dagster.records import RESPONSES, TIMINGS
from ragbench_dagster.store import Workspace
from tests.support.small_nights import answers, release, workspace

DAY = "2026-11-20"
COUNTING = """
import time
from pathlib import Path

def build(workspace, fail_on="", pause=0.0):
    asked = workspace.root / "asked.txt"
    def ask(text):
        with open(asked, "a", encoding="utf-8") as file:
            file.write(text + "\\n")
        time.sleep(pause)
        if fail_on and fail_on in text and not (workspace.root / "mended").exists():
            raise ValueError("no")
        return {"answer": f"about {text}", "sources": [{"id": "n1", "score": 0.5, "text": "context"}]}
    return ask
"""
SETTINGS = "systems: {mine: {kind: engine, engine: 'counting:build', params: %s, concurrency: 4, retry_after_s: []}}\nscrub: {ner: 'off'}"


def make(root: Path, params: str = "{}") -> Workspace:
    return workspace(root, SETTINGS % params, counting_py=COUNTING)


def asked(ws: Workspace) -> list[str]:
    path = ws.root / "asked.txt"
    return path.read_text("utf-8").split("\n")[:-1] if path.exists() else []


def files(ws: Workspace) -> dict[str, bytes]:
    return {str(p.relative_to(ws.store)): p.read_bytes() for p in sorted(ws.store.rglob("*")) if p.is_file()}


def test_every_question_is_asked_once_and_answered_in_the_order_of_its_id(tmp_path: Path) -> None:
    ws = make(tmp_path)
    small = release("one", "two", "three")
    run = answer_release(ws, DAY, "mine", small)
    assert sorted(asked(ws)) == ["one", "three", "two"]
    assert run.calls == 3
    assert run.responses.schema.remove_metadata() == RESPONSES
    assert run.timings.schema.remove_metadata() == TIMINGS
    ids = run.responses["example_id"].to_pylist()
    assert ids == sorted(ids) == run.timings["example_id"].to_pylist()
    row = answers(run.responses, small)["two"]
    assert (row["response"], row["contexts"], row["retrieved_ids"]) == ("about two", ["context"], ["n1"])
    assert all(t > 0 for t in run.timings["latency_ms"].to_pylist())


def test_the_same_command_again_asks_nothing_and_leaves_every_byte(tmp_path: Path) -> None:
    ws = make(tmp_path)
    first = answer_release(ws, DAY, "mine", release("one", "two"))
    before = files(ws)
    again = answer_release(ws, DAY, "mine", release("one", "two"))
    assert again.calls == 0
    assert len(asked(ws)) == 2
    assert files(ws) == before
    assert again.responses.equals(first.responses)
    assert again.timings.equals(first.timings)


def test_lost_tables_are_made_again_from_the_checkpoint_without_a_call(tmp_path: Path) -> None:
    ws = make(tmp_path)
    answer_release(ws, DAY, "mine", release("one", "two"))
    path = ws.night(DAY, "mine") / "responses.parquet"
    before = path.read_bytes()
    path.unlink()
    assert answer_release(ws, DAY, "mine", release("one", "two")).calls == 0
    assert path.read_bytes() == before


def test_a_changed_release_asks_only_what_is_new(tmp_path: Path) -> None:
    ws = make(tmp_path)
    answer_release(ws, DAY, "mine", release("one", "two"))
    small = release("two", "three", id="r2")
    run = answer_release(ws, DAY, "mine", small)
    assert run.calls == 1
    assert set(answers(run.responses, small)) == {"two", "three"}


def test_another_night_and_another_version_ask_anew(tmp_path: Path) -> None:
    ws = make(tmp_path)
    small = release("one")
    assert answer_release(ws, DAY, "mine", small).calls == 1
    assert answer_release(ws, "2026-11-21", "mine", small).calls == 1
    assert answer_release(make(tmp_path, "{pause: 0.01}"), DAY, "mine", small).calls == 1


def test_a_pure_system_answers_once_for_all_nights(tmp_path: Path) -> None:
    ws = workspace(tmp_path, corpus_jsonl='{"doc_id": "a", "text": "Seats can be cancelled at any time."}\n')
    small = release("can seats be cancelled?")
    assert answer_release(ws, DAY, "bm25", small).calls == 1
    run = answer_release(ws, "2026-11-21", "bm25", small)
    assert run.calls == 0
    assert run.responses["response"].to_pylist() == ["Seats can be cancelled at any time."]


def test_equal_questions_are_asked_once_and_fanned_out(tmp_path: Path) -> None:
    ws = make(tmp_path)
    small = release("one")
    import pyarrow as pa

    twin = small.examples.set_column(0, "example_id", pa.array(["e-other"]))
    doubled = type(small)("r1", pa.concat_tables([twin, small.examples]), small.forms)
    run = answer_release(ws, DAY, "mine", doubled)
    assert (run.calls, run.responses.num_rows, asked(ws)) == (1, 2, ["one"])


def test_a_failed_question_is_typed_and_asked_again_next_time(tmp_path: Path) -> None:
    ws = make(tmp_path, "{fail_on: two}")
    small = release("one", "two")
    row = answers(answer_release(ws, DAY, "mine", small).responses, small)["two"]
    assert row["status"] == "error"
    assert row["error"].startswith("ValueError in ask")
    assert row["answer_hash"] is None
    (tmp_path / "mended").touch()
    run = answer_release(ws, DAY, "mine", small)
    assert run.calls == 1
    assert answers(run.responses, small)["two"]["response"] == "about two"


def test_nothing_personal_is_written_although_the_engine_echoes_it(tmp_path: Path) -> None:
    engine = """
    def build():
        def ask(text):
            return {"answer": "write to ada@example.org or call +44 20 7946 0958",
                    "sources": [{"id": "mail-ada@example.org", "text": "ask ada@example.org, or eve@example.com"}]}
        return ask
    """
    ws = workspace(
        tmp_path,
        "systems: {echo: {kind: engine, engine: 'echo:build'}}\nscrub: {ner: 'off'}",
        echo_py=textwrap.dedent(engine),
    )
    small = release("who do I ask?")
    row = answers(answer_release(ws, DAY, "echo", small).responses, small)["who do I ask?"]
    assert "ada@" not in json.dumps(row)
    assert "7946" not in json.dumps(row)
    shared = row["response"].split()[2]
    assert shared.startswith("<EMAIL_ADDRESS")
    assert row["contexts"][0].startswith(f"ask {shared}, or <EMAIL_ADDRESS")
    assert row["contexts"][0].count(shared) == 1
    written = b"".join(files(ws).values())
    assert b"ada@example" not in written
    assert b"7946" not in written


def test_progress_names_the_system_and_ends_at_the_total(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    answer_release(make(tmp_path), DAY, "mine", release("one", "two"), lambda *step: told.append(step))
    assert told[-1][0].startswith("mine answers")
    assert told[-1][1:] == (2, 2)


def test_an_empty_release_is_an_empty_table(tmp_path: Path) -> None:
    run = answer_release(make(tmp_path), DAY, "mine", release())
    assert (run.responses.num_rows, run.calls) == (0, 0)


def test_a_damaged_checkpoint_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    ws = make(tmp_path)
    path = ws.store / "cache" / "answers" / "mine.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(UserError, match=r"mine\.db: damaged; delete it and run again"):
        answer_release(ws, DAY, "mine", release("one"))


SCRIPT = """
import sys
from pathlib import Path
from ragbench_dagster.evaluation.answers import answer_release
from tests.support.small_nights import release
from tests.evaluation.test_answering import DAY, make
answer_release(make(Path(sys.argv[1]), "{pause: 0.05}"), DAY, "mine", release(*(f"question {i}" for i in range(60))))
"""


def test_kill_9_loses_only_the_calls_in_flight(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], env=environment, cwd=root)

    ws = make(tmp_path)
    for wanted in (12, 30):
        process = start()
        deadline = time.monotonic() + 60
        while len(asked(ws)) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start().wait(timeout=120) == 0
    calls = asked(ws)
    assert set(calls) == {f"question {i}" for i in range(60)}
    assert len(calls) <= 60 + 2 * 4  # two kills, four answers in flight
    found = answer_release(make(tmp_path, "{pause: 0.05}"), DAY, "mine", release(*(f"question {i}" for i in range(60))))
    assert found.calls == 0
    assert set(found.responses["status"].to_pylist()) == {"scored"}
    with sqlite3.connect(ws.store / "cache" / "answers" / "mine.db") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (60,)


def test_an_interrupt_keeps_what_is_finished(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    ws = make(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while len(asked(ws)) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert b"Interrupted" in said
    with sqlite3.connect(ws.store / "cache" / "answers" / "mine.db") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone()[0] == len(asked(ws))
