"""A night's answers become typed verdicts; each is asked for once."""

import asyncio
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragbench_dagster import records
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import judge_session
from ragbench_dagster.evaluation.judge_runner import judge_answers, judge_items, stage_judge
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace, read_table
from tests.support.judge_items import Release, responses


class Length:
    """Passes answers of three letters or more; what the answer says decides how it fails."""

    version = "1"
    template_hash = "t"
    workers = 4

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[str] = []

    async def grade(self, item: Item) -> Verdict:
        self.asked.append(item.response)
        await asyncio.sleep(0.001)
        if item.response == "crash":
            raise RuntimeError("the text under test must not be told")
        if item.response in ("error", "refused", "over_budget", "unparsable"):
            return Verdict(item.response, attempts=1)  # type: ignore[arg-type]
        return Verdict("scored", float(len(item.response)), len(item.response) > 2, attempts=1, cost_usd=0.5)


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> dict[str, Length]:
    made: dict[str, Length] = {}

    def build(metric: str, judge: Any, ws: Any) -> Length:
        return made.setdefault(metric, Length(metric))

    monkeypatch.setattr(judge_session, "build_evaluator", build)
    return made


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, parse_settings("metrics: [faithfulness, correctness]"))


def test_every_answer_ends_scored_or_typed_and_identical_ones_are_judged_once(ws: Workspace, judges: dict[str, Length]):
    answers = ["yes", "no", "crash", None, "refused"]
    table = responses([*answers, "yes"])
    run = judge_answers(ws, "2026-01-02", "s", table, Release([*answers, "yes"]))
    assert run.scores.schema.equals(records.SCORES)
    rows = {(r["metric"], r["example_id"]): r for r in run.scores.to_pylist()}
    assert len(rows) == 12
    assert [rows["correctness", f"e{n}"]["status"] for n in range(6)] == [
        "scored", "scored", "error", "failed", "refused", "scored",
    ]  # fmt: skip
    assert [rows["correctness", f"e{n}"]["value"] for n in range(6)] == [1.0, 0.0, None, 0.0, None, 1.0]
    assert rows["correctness", "e0"]["score"] == 3.0
    assert rows["correctness", "e0"]["key"] == rows["correctness", "e5"]["key"]
    assert rows["correctness", "e0"]["key"] != rows["faithfulness", "e0"]["key"]
    assert rows["correctness", "e0"]["in_gate"] is False
    assert rows["correctness", "e1"]["in_gate"] is True
    assert rows["correctness", "e3"]["feedback"] == "Timeout"
    assert "text under test" not in str(run.scores.to_pylist())
    assert sorted(judges["correctness"].asked) == ["crash", "no", "refused", "yes"]
    assert run.calls == 6  # three that answered, two metrics; a crash made no call
    assert run.cost_usd == 2.0
    assert run.statuses == {"error": 2, "failed": 2, "refused": 2, "scored": 6}
    assert read_table(ws.night("2026-01-02", "s") / "verdicts.parquet").equals(run.scores)


def test_a_second_run_asks_only_what_failed_and_writes_the_same_bytes(ws: Workspace, judges: dict[str, Length]):
    answers: list[str | None] = ["yes", "error", "over_budget", "unparsable"]
    first = judge_answers(ws, "2026-01-02", "s", responses(answers), Release(answers))
    path = ws.night("2026-01-02", "s") / "verdicts.parquet"
    before = path.read_bytes(), path.stat().st_mtime_ns
    for judge in judges.values():
        judge.asked.clear()
    second = judge_answers(ws, "2026-01-02", "s", responses(answers), Release(answers))
    assert sorted(judges["correctness"].asked) == ["error", "over_budget"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert second.scores.equals(first.scores)
    assert second.cost_usd == 0.0


def test_another_system_with_the_same_answers_pays_nothing(ws: Workspace, judges: dict[str, Length]):
    judge_answers(ws, "2026-01-02", "s", responses(["yes"]), Release(["yes"]))
    assert judge_answers(ws, "2026-01-03", "other", responses(["yes"]), Release(["yes"])).calls == 0


def test_a_round_asks_afresh_and_pays_once(ws: Workspace, judges: dict[str, Length]):
    items = [Item("a", "q", "yes"), Item("b", "q", "no"), Item("c", "q", "yes")]
    for name, asked in (("", 2), ("", 0), ("2026-01-02", 2), ("2026-01-02", 0), ("2026-01-03", 2)):
        found = judge_items(ws, "correctness", items, round=name)
        assert [v.passing for v in found] == [True, False, True]
        assert sum(v.attempts for v in found if not v.details.get("from_ledger")) == asked


def test_every_input_is_part_of_the_key(ws: Workspace, judges: dict[str, Length]):
    base = Item("a", "q", "yes", ("one", "two"), "r", ("h",), "s")
    others = [
        replace(base, query="Q"),
        replace(base, response="yes!"),
        replace(base, contexts=("onetwo",)),
        replace(base, contexts=("two", "one")),
        replace(base, reference=None),
        replace(base, reference=""),
        replace(base, history=()),
        replace(base, second=None),
        replace(base, contexts=("one", "two", "h"), history=()),
    ]
    assert len(judge_items(ws, "correctness", [base, *others])) == 10
    assert len(judges["correctness"].asked) == 10
    judge_items(ws, "correctness", [replace(base, example_id="z")])
    assert len(judges["correctness"].asked) == 10


def test_the_stage_keeps_the_order_and_adds_four_fields(judges: dict[str, Length]):
    judge = parse_settings("").judge
    rows = [{"id": n, "query": "q", "contexts": None, "response": "x" * (n % 5), "more": n} for n in range(40)]
    out = list(stage_judge(rows, "faithfulness", judge))
    assert [r["id"] for r in out] == list(range(40))
    assert out[3] == {**rows[3], "status": "scored", "score": 3.0, "passing": True, "feedback": ""}
    assert len(judges["faithfulness"].asked) == 5


@pytest.mark.parametrize(
    ("row", "words"),
    [({"query": "q"}, "row 2: response"), ({"query": 3, "response": "r"}, "row 2: query"),
     ({"query": "q", "response": "r", "contexts": "c"}, "row 2: contexts")],
)  # fmt: skip
def test_a_wrong_row_is_named(judges: dict[str, Length], row: dict[str, Any], words: str):
    good = {"query": "q", "response": "r"}
    with pytest.raises(UserError, match=words):
        list(stage_judge([good, row], "faithfulness", parse_settings("").judge))


def test_two_nights_in_one_process_have_a_loop_each(ws: Workspace, judges: dict[str, Length]):
    for day, answers in (("2026-01-02", ["abc"]), ("2026-01-03", ["abcd"])):
        assert judge_answers(ws, day, "s", responses(answers), Release(answers)).statuses == {"scored": 2}


def test_it_runs_inside_a_running_loop_too(ws: Workspace, judges: dict[str, Length]):
    async def notebook() -> list[Verdict]:
        return judge_items(ws, "correctness", [Item("a", "q", "yes")])

    assert asyncio.run(notebook())[0].passing is True


SLOW = """
import asyncio, sys
from ragbench_dagster.errors import Interrupted
from ragbench_dagster.evaluation import judge_session as session
from ragbench_dagster.evaluation.judge_runner import judge_items
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace
from pathlib import Path
class Slow:
    name, version, template_hash, workers = "slow", "1", "t", 5
    async def grade(self, item):
        print("asked", flush=True)
        await asyncio.sleep(0.2)
        return Verdict("scored", 1.0, True)
session.build_evaluator = lambda metric, judge, ws: Slow()
ws = Workspace(Path(sys.argv[1]), parse_settings(""))
class FromDagster(BaseException):
    pass
def dagsters(*_):
    raise FromDagster
if sys.argv[2:]:
    import signal
    signal.signal(signal.SIGINT, dagsters)
    signal.signal(signal.SIGTERM, dagsters)
try:
    judge_items(ws, "correctness", [Item(str(n), str(n), "r") for n in range(1000)])
except Interrupted as fault:
    print(fault)
    sys.exit(130)
except FromDagster:
    print("Dagster was told")
    sys.exit(77)
"""


ENDS = {
    "the command line": ([], 130, "stopped; every finished verdict was kept, run again to go on\n"),
    # Dagster's handler raises; inside a running loop a callback would swallow it.
    "Dagster": (["dagster"], 77, "Dagster was told\n"),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("more", "code", "last"), ENDS.values(), ids=ENDS)
def test_a_signal_ends_it_gracefully_and_keeps_what_was_in_flight(tmp_path: Path, number, more, code, last):
    command = [sys.executable, "-c", SLOW, str(tmp_path), *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(7):
        assert process.stdout.readline() == "asked\n"
    begin = time.monotonic()
    process.send_signal(number)
    said = process.stdout.read()
    process.wait(20)
    assert time.monotonic() - begin < 5
    assert process.returncode == code
    assert said.endswith(last)
    asked = 7 + said.count("asked")
    with Ledger(f"sqlite:///{tmp_path}/store/ledger.db") as book:
        assert book.count() == asked
