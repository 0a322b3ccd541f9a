"""What judging costs: said before, capped while it runs, the same afterwards; and the night recomputed for nothing."""

import asyncio
import re

import pyarrow as pa
import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import estimate as estimates
from ragbench_dagster.evaluation.judge import build_evaluator
from ragbench_dagster.evaluation.judge_runner import judge_answers, judge_items
from ragbench_dagster.evaluation.replay import replay_verdicts
from ragbench_dagster.records import Item
from ragbench_dagster.settings import Judge
from ragbench_dagster.store import read_table, write_table
from tests.support.fake_provider import Act
from tests.support.judge_items import Release, responses

DAY = "2026-01-02"


def items(n: int) -> list[Item]:
    return [Item(f"e{i}", f"question {i}?", f"answer {i}", (f"passage {i}",)) for i in range(n)]


def test_the_cap_holds_and_what_it_left_out_is_asked_next_time(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES", prompt_tokens=1000, completion_tokens=0))
    one = {"concurrency": {"min": 1, "start": 1, "max": 1}, "price": {"input": 10.0, "output": 0.0}}
    ws = workspace(judge_of(provider.base, **one, budget_usd=0.055))
    found = judge_items(ws, "faithfulness", items(20))
    statuses = [v.status for v in found]
    assert statuses.count("scored") == len(provider.seen) == 5  # a cent each
    assert statuses.count("over_budget") == 15
    assert all(v.score is None and "budget" in v.feedback for v in found if v.status == "over_budget")
    more = workspace(judge_of(provider.base, **one, budget_usd=10))
    assert [v.status for v in judge_items(more, "faithfulness", items(20))] == ["scored"] * 20
    assert len(provider.seen) == 20


def test_all_systems_of_a_night_share_one_budget(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES", prompt_tokens=1000, completion_tokens=0))
    judge = judge_of(
        provider.base, budget_usd=0.055, price={"input": 10.0, "output": 0.0},
        concurrency={"min": 1, "start": 1, "max": 1},
    )  # fmt: skip
    ws = workspace(judge, metrics=["faithfulness"])
    for system in ("one", "two"):
        said = [f"{system} {i}" for i in range(4)]
        judge_answers(ws, DAY, system, responses(said), Release(said))
    assert len(provider.seen) == 5


def test_a_budget_of_nothing_is_one_line(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES"))
    with pytest.raises(UserError, match=r"judge\.budget_usd"):
        judge_items(workspace(judge_of(provider.base, budget_usd=0)), "faithfulness", items(3))
    assert provider.seen == []
    free = workspace(judge_of(provider.base, budget_usd=0, price={"input": 0, "output": 0}))
    assert judge_items(free, "faithfulness", items(3))[0].status == "scored"


@pytest.mark.parametrize(
    ("change", "words"),
    [({"price": None}, r"judge\.price"), ({"model": "gpt-4o"}, "not pinned"),
     ({"context_window": None}, r"judge\.context_window"), ({"templates": {"faithfulness": "no.txt"}}, "no.txt")],
)  # fmt: skip
def test_settings_that_no_verdict_can_be_had_with_are_named(judge_of, workspace, change, words):
    judge = judge_of("http://127.0.0.1:9/v1", **change)
    with pytest.raises(UserError, match=words):
        build_evaluator("faithfulness", judge, workspace(judge))


@pytest.mark.parametrize(
    ("more", "fine"),
    [({"model": "gpt-4o"}, False), ({"model": "gpt-4o-2024-08-06"}, True), ({"model": "m-20250101"}, True),
     ({"model": "m@sha256:" + "a" * 64}, True), ({"model": "m-v12345678"}, False), ({"model": "m", "revision": "r1"}, True),
     ({"model": "m", "allow_floating": True}, True)],
)  # fmt: skip
def test_a_judge_must_be_pinned(judge_of, workspace, more, fine):
    judge = judge_of("http://127.0.0.1:9/v1", **more)
    if fine:
        build_evaluator("faithfulness", judge, workspace(judge))
    else:
        with pytest.raises(UserError, match="pinned"):
            build_evaluator("faithfulness", judge, workspace(judge))


def test_a_floating_judge_and_one_that_grades_its_own_are_recorded(serve, judge_of, workspace):
    from ragbench_dagster.settings import parse_settings

    provider = serve(lambda seen: Act("YES"))
    judge = judge_of(provider.base, model="gpt-4o", allow_floating=True)
    systems = parse_settings('systems: {s: {kind: engine, engine: "a:b", model: gpt-4o}}').systems
    ws = workspace(judge, metrics=["faithfulness"], systems=systems)
    run = judge_answers(ws, DAY, "s", responses(["one"]), Release(["one"]))
    assert any("own model" in w for w in run.warnings)
    assert any("not pinned" in w for w in run.warnings)
    item = Item("e0", "q", "one", ("p",), "r")
    details = judge_items(ws, "faithfulness", [item])[0].details
    assert details["floating"] is True


def test_a_prompt_beyond_the_window_is_truncated_and_never_sent(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES"))
    ws = workspace(judge_of(provider.base, context_window=1000))
    long = Item("a", "q", "r", ("many different words indeed " * 400,))
    verdict = judge_items(ws, "faithfulness", [long])[0]
    assert (verdict.status, verdict.score) == ("truncated", None)
    assert "1000 tokens" in verdict.feedback
    assert provider.seen == []
    # Many bytes, few tokens: counted, not guessed by length.
    spaces = Item("b", "q", "r", (" " * 3000 + "x",))
    assert judge_items(ws, "faithfulness", [spaces])[0].status == "scored"


def test_per_passage_is_a_declared_policy(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES" if "passage-2" in seen.prompt else "NO"))
    ws = workspace(judge_of(provider.base, context_window=2000, long_context="per_passage"))
    passages = tuple(f"passage-{i} " + "some words of it " * 200 for i in range(4))
    verdict = judge_items(ws, "faithfulness", [Item("a", "q", "r", passages)])[0]
    assert (verdict.status, verdict.passing) == ("scored", True)
    assert verdict.details["per_passage"] == 4
    assert len(provider.seen) == 4


def test_ones_own_template_is_used_and_part_of_the_key(serve, judge_of, workspace, tmp_path):
    provider = serve(lambda seen: Act("NO"))
    (tmp_path / "own.txt").write_text(
        'Q: {query}\nA: {response}\nP: {contexts}\nSupported? {"verdict": "YES"} or NO', "utf-8"
    )
    ws = workspace(judge_of(provider.base, templates={"faithfulness": "own.txt"}))
    item = Item("a", "what?", "this", ("that",))
    judge_items(ws, "faithfulness", [item])
    assert provider.seen[0].prompt == 'Q: what?\nA: this\nP: that\nSupported? {"verdict": "YES"} or NO'
    judge_items(ws, "faithfulness", [item])
    assert len(provider.seen) == 1
    (tmp_path / "own.txt").write_text("{query} {response} {contexts}?", "utf-8")
    judge_items(ws, "faithfulness", [item])
    assert len(provider.seen) == 2
    (tmp_path / "own.txt").write_text("{question}", "utf-8")
    with pytest.raises(UserError, match="question"):
        judge_items(ws, "faithfulness", [item])


def test_a_metric_may_have_another_judge(serve, judge_of, workspace):
    one, other = serve(lambda seen: Act("YES")), serve(lambda seen: Act("4.0\nfine"))
    change = {"correctness": {"api_base": other.base, "model": "other-2026-01-01"}}
    ws = workspace(judge_of(one.base, metrics=change), metrics=["faithfulness", "correctness"])
    run = judge_answers(ws, DAY, "s", responses(["a"]), Release(["a"]))
    assert run.statuses == {"scored": 2}
    assert (len(one.seen), len(other.seen)) == (1, 1)
    assert other.seen[0].body["model"] == "other-2026-01-01"


@pytest.fixture
def estimated(monkeypatch: pytest.MonkeyPatch):
    """estimate_night on a release and systems of the test's own."""
    from ragbench_dagster.evaluation import pipeline, systems

    def run(ws, release, names=("s",)):
        monkeypatch.setattr(pipeline, "night_release", lambda ws, day: release)
        monkeypatch.setattr(systems, "configured_systems", lambda ws: dict.fromkeys(names))
        return estimates.estimate_night(ws, DAY)

    return run


def test_the_estimate_says_what_the_night_then_takes(serve, judge_of, workspace, estimated):
    def plan(seen):
        tokens = len(seen.prompt) // 4
        return Act("YES", prompt_tokens=tokens, completion_tokens=8)

    provider = serve(plan)
    ws = workspace(judge_of(provider.base, rpm=6000), metrics=["faithfulness", "relevancy"])
    said = [f"answer {i}" for i in range(50)]
    write_table(ws.night(DAY, "s") / "responses.parquet", responses(said))
    before = estimated(ws, Release(said))
    run = judge_answers(ws, DAY, "s", responses(said), Release(said))
    assert before["calls"] == run.calls == 100
    assert before["cost_usd"] == pytest.approx(run.cost_usd, rel=0.02)
    assert [row["basis"] for row in before["rows"]] == ["answers of this night"] * 2
    assert before["seconds"] > 0
    after = estimated(ws, Release(said))
    assert (after["calls"], after["cost_usd"], after["seconds"]) == (0, 0, 0)
    assert [row["paid"] for row in after["rows"]] == [50, 50]


def test_a_system_that_never_answered_is_estimated_by_a_usual_length(judge_of, workspace, estimated):
    ws = workspace(judge_of("http://127.0.0.1:9/v1"), metrics=["faithfulness"])
    found = estimated(ws, Release(["x"] * 30))
    (row,) = found["rows"]
    assert row["items"] == 30
    assert row["calls"] == 1  # equal answers are judged once
    assert "no answers yet" in row["basis"]
    embedded = workspace(Judge.model_validate({}), metrics=["faithfulness"])
    assert estimated(embedded, Release(["x"] * 30))["cost_usd"] == 0


def test_a_night_is_recomputed_from_the_ledger_without_a_call(serve, judge_of, workspace):
    said = ["one", "two", None, "three", "broken"]
    provider = serve(lambda seen: Act("NO" if "two" in seen.prompt else "YES", status=400 if "broken" in seen.prompt else 200,
                                      raw={"error": {"message": "no"}} if "broken" in seen.prompt else None))  # fmt: skip
    ws = workspace(judge_of(provider.base), metrics=["faithfulness", "relevancy"])
    table, release = responses(said), Release(said)
    write_table(ws.night(DAY, "s") / "responses.parquet", table)
    run = judge_answers(ws, DAY, "s", table, release)
    assert set(run.statuses) == {"scored", "error", "failed"}  # failed: an answer that the system did not give
    calls = len(provider.seen)
    again = replay_verdicts(ws, DAY, "s", release)
    assert again.equals(read_table(ws.night(DAY, "s") / "verdicts.parquet"))
    assert len(provider.seen) == calls
    # Another night that succeeds where this one failed changes nothing about this one.
    provider.plan = lambda seen: Act("YES")
    judge_answers(ws, "2026-01-03", "s", table, release)
    assert replay_verdicts(ws, DAY, "s", release).equals(again)
    # A table that was tampered with is found out.
    kept = read_table(ws.night(DAY, "s") / "verdicts.parquet")
    forged = kept.set_column(kept.schema.get_field_index("value"), "value", pa.array([1.0] * kept.num_rows))
    assert not replay_verdicts(ws, DAY, "s", release).equals(forged)


def test_progress_tells_rate_cost_and_what_limits(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES", delay_s=0.02))
    heard: list[tuple[str, int, int]] = []
    ws = workspace(judge_of(provider.base, rpm=1200, price={"input": 1000, "output": 0}))
    judge_items(ws, "faithfulness", items(40), progress=lambda *words: heard.append(words))
    assert heard[-1][1:] == (40, 40)
    assert len(heard) < 12
    assert any(re.search(r"/s .*\$\d", label) and "requests a minute" in label for label, _, _ in heard)


def test_two_nights_in_one_process_each_with_a_loop_and_a_client_of_their_own(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("YES"))
    ws = workspace(judge_of(provider.base), metrics=["faithfulness"])
    for day in (DAY, "2026-01-03"):
        said = [f"{day} {i}" for i in range(30)]
        assert judge_answers(ws, day, "s", responses(said), Release(said)).statuses == {"scored": 30}

    async def inside() -> list[str]:
        return [v.status for v in judge_items(ws, "faithfulness", items(3))]

    assert asyncio.run(inside()) == ["scored"] * 3
