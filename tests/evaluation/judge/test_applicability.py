"""Whether a metric applies is asked before the status of an answer, in the night and when it is reproduced."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult

from ragbench_dagster import records
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.applicability import Given, given, unmet
from ragbench_dagster.evaluation.judge.imported import load
from ragbench_dagster.evaluation.judge_runner import judge_answers
from ragbench_dagster.evaluation.replay import replay_verdicts
from ragbench_dagster.records import Item
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace, rows_table, write_table

DAY = "2026-01-02"
TEXT = "Parcels are sent within two days."
QUESTIONS: list[dict[str, Any]] = [
    {"query": "When are parcels sent?", "expected_answer": "within two days"},
    {"query": "Where do I pay?", "expected_answer": None},
    {"query": "Can I return it?", "expected_answer": "  "},
    {"query": "???", "expected_answer": None},
]
ANSWER = {"status": "scored", "response": TEXT, "contexts": [TEXT]}
FAILED = {"status": "error", "error": "Timeout"}
# How the system fails, what it gives elsewhere -> status of (faithfulness, relevancy, correctness) on each question.
KINDS: dict[str, tuple[list[dict[str, Any]], dict[str, list[str]]]] = {
    "all failed": (
        [FAILED] * 4,
        {
            "correctness": ["failed", "not_applicable", "not_applicable", "not_applicable"],
            "faithfulness": ["failed"] * 4,  # nothing is known of what it gives
            "relevancy": ["failed", "failed", "failed", "not_applicable"],
        },
    ),
    "some failed": (
        [ANSWER, FAILED, FAILED, FAILED],
        {
            "correctness": ["scored", "not_applicable", "not_applicable", "not_applicable"],
            "faithfulness": ["scored", "failed", "failed", "failed"],
            "relevancy": ["scored", "failed", "failed", "not_applicable"],
        },
    ),
    "some refused": (
        [{**FAILED, "status": "refused"}, ANSWER, {**FAILED, "status": "refused"}, ANSWER],
        {
            "correctness": ["refused", "not_applicable", "not_applicable", "not_applicable"],
            "faithfulness": ["refused", "scored", "refused", "scored"],
            "relevancy": ["refused", "scored", "refused", "not_applicable"],
        },
    ),
    "gives no passages": (
        [{**ANSWER, "contexts": []}, FAILED, {**ANSWER, "contexts": None}, FAILED],
        {
            "correctness": ["scored", "not_applicable", "not_applicable", "not_applicable"],
            "faithfulness": ["not_applicable"] * 4,
            "relevancy": ["scored", "failed", "scored", "not_applicable"],
        },
    ),
    "search only": (
        [{**ANSWER, "response": None}, FAILED, {**ANSWER, "response": None}, FAILED],
        {metric: ["not_applicable"] * 4 for metric in ("correctness", "faithfulness", "relevancy")},
    ),
    "not in the log": (
        [ANSWER, {"status": "not_applicable"}, ANSWER, {"status": "not_applicable"}],
        {
            "correctness": ["scored", "not_applicable", "not_applicable", "not_applicable"],
            "faithfulness": ["scored", "not_applicable", "scored", "not_applicable"],
            "relevancy": ["scored", "not_applicable", "scored", "not_applicable"],
        },
    ),
}


def _night(folder: Path, answers: list[dict[str, Any]], settings: str = "") -> tuple[Workspace, Any, Any]:
    ws = Workspace(folder, parse_settings(settings or "metrics: [faithfulness, relevancy, correctness]"))
    about = {"history": [], "category": "c", "conflict": False, "synthetic": False, "weight": 1.0}
    rows = [{"example_id": f"e{n}", **about, **question} for n, question in enumerate(QUESTIONS)]
    release = SimpleNamespace(examples=rows_table(rows, records.EXAMPLES))
    table = rows_table([{"example_id": f"e{n}", **answer} for n, answer in enumerate(answers)], records.RESPONSES)
    write_table(ws.night(DAY, "s") / "responses.parquet", table)
    return ws, table, release


def _statuses(table: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in table.to_pylist():
        found.setdefault(row["metric"], []).append(row["status"])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_counts_only_where_the_metric_applies_in_the_night_and_reproduced(kind: str, tmp_path: Path) -> None:
    answers, expected = KINDS[kind]
    ws, table, release = _night(tmp_path, answers)
    run = judge_answers(ws, DAY, "s", table, release)
    assert _statuses(run.scores) == expected
    assert replay_verdicts(ws, DAY, "s", release).equals(run.scores)


def test_a_judge_that_could_not_be_asked_loses_only_what_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its key every answer is an error of the judge; an unlabelled one is none of correctness."""
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    settings = (
        "metrics: [correctness]\njudge: {provider: openai_like, model: gpt-4o-2024-08-06, api_base: 'http://127.0.0.1:9/v1',"
        " api_key_env: NO_SUCH_KEY, context_window: 8000, price: {input: 1, output: 1}}"
    )
    ws, table, release = _night(tmp_path, [ANSWER] * 4, settings)
    run = judge_answers(ws, DAY, "s", table, release)
    assert run.unavailable
    assert _statuses(run.scores) == {"correctness": ["error", *["not_applicable"] * 3]}


def test_a_night_from_before_the_needs_were_noted_is_reproduced_as_it_was(tmp_path: Path) -> None:
    ws, table, release = _night(tmp_path, [ANSWER, FAILED, ANSWER, FAILED])
    run = judge_answers(ws, DAY, "s", table, release)
    path = ws.night(DAY, "s") / "verdicts.parquet"
    assert json.loads((pq.read_schema(path).metadata or {})[b"needs"])["correctness"] == ["reference"]
    write_table(path, run.scores, {"system": "s", "thresholds": "{}"})
    again = _statuses(replay_verdicts(ws, DAY, "s", release))
    assert again["correctness"] == ["scored", "failed", "not_applicable", "failed"]


@pytest.mark.parametrize(
    ("needs", "query", "reference", "contexts", "system", "applies"),
    [
        ((), "", None, None, Given(), True),
        (("reference",), "q", "r", None, Given(), True),
        (("reference",), "q", "", None, Given(), False),
        (("reference",), "q", "\n\t", ("p",), Given(), False),
        (("contexts",), "q", "r", None, Given(contexts=False), False),
        (("contexts",), "q", "r", ("p",), Given(contexts=False), True),
        (("contexts",), "q", "r", (" ", ""), Given(), False),
        (("contexts",), "q", "r", (), Given(), False),
        ((), "q", "r", None, Given(response=False), False),
        (("words",), "…?!", "r", ("p",), Given(), False),
        (("words",), "你好", "r", ("p",), Given(), True),
        (("words",), "ทำไม", "r", ("p",), Given(), True),
        (("words",), "C++", "r", ("p",), Given(), True),
        (("words",), "😀", "r", ("p",), Given(), False),
        (("reference", "contexts"), "q", "r", ("p",), Given(), True),
        (("reference", "contexts"), "q", None, ("p",), Given(), False),
    ],
)
def test_the_border_of_each_need(needs, query, reference, contexts, system, applies) -> None:
    about = {"query": query, "expected_answer": reference}
    item = None if contexts is None else Item("e", query, "a", contexts, reference)
    assert (unmet(needs, about, item, system) == "") == applies


def test_a_system_that_never_answered_is_taken_to_give_everything() -> None:
    assert given([]) == given([(False, False, True)]) == Given(True, True)
    assert given([(True, False, True), (False, True, False)]) == Given(False, True)
    assert given([(True, True, False), (True, False, False)]) == Given(True, False)


class Plain(BaseEvaluator):
    """Scores everything 1."""

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        del prompts

    async def aevaluate(self, query=None, response=None, contexts=None, reference=None, **kwargs):
        return EvaluationResult(score=1.0, passing=True)


def with_needs() -> BaseEvaluator:
    made = Plain()
    made.needs = ["reference"]  # type: ignore[attr-defined]
    return made


def with_wrong_needs() -> BaseEvaluator:
    made = Plain()
    made.needs = "labels"  # type: ignore[attr-defined]
    return made


def test_an_imported_evaluator_says_what_it_needs() -> None:
    judge = parse_settings("").judge
    assert load("m", f"{__name__}:Plain", None, judge).needs == ()
    assert load("m", f"{__name__}:with_needs", None, judge).needs == ("reference",)
    with pytest.raises(UserError, match=r"judge\.evaluators\.m: .*needs hold 'labels'; use reference, contexts, words"):
        load("m", f"{__name__}:with_wrong_needs", None, judge)
