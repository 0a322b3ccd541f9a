"""Each seam tried: a new member is one object and one entry of its registry, and works where it is used."""

import asyncio
import json
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any, Literal

import pytest
from llama_index.core.llms import MockLLM

from ragbench_dagster import metrics, settings_parts
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge import build_evaluator
from ragbench_dagster.evaluation.judge.catalog import build_llm_evaluator
from ragbench_dagster.evaluation.judge.evaluators import Faithfulness
from ragbench_dagster.evaluation.retrieval import stage_retrieval
from ragbench_dagster.evaluation.systems import build_system, system_version
from ragbench_dagster.evaluation.systems.system import Answer, Clock, Example, System
from ragbench_dagster.metrics import Grading, Hits, Metric
from ragbench_dagster.records import Item
from ragbench_dagster.reporting import tracking
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.report import section, write_report
from ragbench_dagster.reporting.report.page_data import Table
from ragbench_dagster.reporting.tracking.record import Record
from ragbench_dagster.settings import Judge, Scrub, Traffic, parse_settings
from ragbench_dagster.settings_parts import SystemBase, SystemKind
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.log_format import LogFormat
from ragbench_dagster.traffic.parse import Decoder
from ragbench_dagster.traffic.requests import LogRequest
from ragbench_dagster.traffic.scrubbing import recogniser
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber
from ragbench_dagster.traffic.scrubbing.spans import Span
from tests.support.pages import finish, maker_in
from tests.support.small_nights import workspace


def test_a_metric_is_one_entry(monkeypatch, tmp_path):
    def first(hits: Hits) -> float:
        return float(1 in hits.ranks)

    with pytest.raises(UserError, match="no metric"):
        parse_settings("metrics: [first_hit@3]")
    entry = Metric("first_hit", "retrieval", "1 where the first id is relevant.", "re-rank", low=0.9, formula=first)
    monkeypatch.setitem(metrics.METRICS, "first_hit", entry)
    (row,) = stage_retrieval([{"query_id": "q", "expected": ["a"], "retrieved": ["a"]}], [3], summary=False)
    assert row["first_hit@3"] == 1.0
    maker = maker_in(tmp_path)('metrics: ["first_hit@3"]\nthresholds: {"first_hit@3": {min: 0.9}}', n=300)
    maker.night({"logged": {"first_hit@3": [1.0] * 60 + [0.0] * 240}})
    page = finish(maker.ws, "2026-11-20").read_text()
    assert "re-rank" in page
    summary = json.loads((maker.ws.night("2026-11-20") / "summary.json").read_text())
    assert summary["systems"]["logged"]["metrics"]["first_hit@3"]["overall"]["value"] == pytest.approx(0.2)
    assert json.loads((maker.ws.night("2026-11-20") / "gate.json").read_text())["verdict"] == "fail"


class Tone(Faithfulness):
    """Whether the answer is polite."""

    name = "tone"
    version = "1"
    prompt = "Is this polite? Answer YES or NO.\n{response}"


class Scripted(MockLLM):
    """Says YES to what is polite."""

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        from llama_index.core.base.llms.types import CompletionResponse

        assert prompt.count("Is this polite?") == 1
        return CompletionResponse(text="YES" if "please" in prompt else "NO")


def test_an_evaluator_is_one_class_and_one_entry(monkeypatch):
    with pytest.raises(UserError, match="no metric"):
        parse_settings("metrics: [tone]")
    grading = Grading(f"{__name__}:Tone", probe="wrong")
    monkeypatch.setitem(
        metrics.METRICS, "tone", Metric("tone", "judged", "The answer is polite.", "look", binary=True, grading=grading)
    )
    chosen = parse_settings("metrics: [tone]\nthresholds: {tone: {min: 0.8}}")
    assert chosen.judged_metrics == ["tone"]
    with pytest.raises(UserError, match="the embedded judge does faithfulness, relevancy, correctness, not tone"):
        build_evaluator("tone", chosen.judge)
    evaluator = build_llm_evaluator("tone", Judge(), None, Scripted())
    polite, rude = (Item("a", "q", text, ("c",)) for text in ("please do", "do it"))
    assert [asyncio.run(evaluator.grade(item)).passing for item in (polite, rude)] == [True, False]
    # the prompt is of the key: another one judges anew
    assert evaluator.template_hash != build_llm_evaluator("faithfulness", Judge(), None, Scripted()).template_hash


def test_a_recogniser_is_two_functions_and_one_entry(monkeypatch):
    def might_ship(facts: Facts) -> bool:
        return "IMO" in facts.text

    def ships(facts: Facts) -> Iterator[Span]:
        """Numbers of ships."""
        at = facts.text.find("IMO 9")
        if at >= 0:
            yield Span(at, at + 11, "SHIP_NUMBER")

    with pytest.raises(UserError, match="no entity"):
        Scrubber(Scrub(entities=["SHIP_NUMBER"]))
    entry = recogniser.Recogniser(("SHIP_NUMBER",), might_ship, ships)
    monkeypatch.setitem(recogniser.RECOGNISERS, "ships", entry)
    assert Scrubber(Scrub()).texts(["where is IMO 9074729 now"])[0].text == "where is <SHIP_NUMBER_1> now"
    assert Scrubber(Scrub(entities={"SHIP_NUMBER": False})).texts(["where is IMO 9074729"])[0].spans == ()


def _asked(row: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": row["at"], "query": row["q"], "response": row.get("a")}


def _spans(row: dict[str, Any], zone: tzinfo) -> dict[str, Any]:
    del zone
    return {
        "trace_id": row["t"], "span_id": row["t"], "parent_id": None, "kind": "CHAIN", "start_us": 1, "end_us": 2,
        "naive": False, "question": row["q"], "history": (), "answer": None, "documents": None, "latency_ms": None,
        "session": None, "user": None, "model": None,
    }  # fmt: skip


OURS = LogFormat("Lines of a shop's own search.", values=_asked)
TRACES = LogFormat("Traces of a shop.", rows_of=lambda record: iter([record]), span_fields=_spans, suffixes=(".trace",))


def test_a_log_format_is_one_object_and_one_entry(monkeypatch, tmp_path):
    from ragbench_dagster.traffic.files import Source
    from ragbench_dagster.traffic.logs import Reader

    with pytest.raises(UserError, match="no format"):
        parse_settings("traffic: {format: shop}")
    monkeypatch.setitem(settings_parts.LOG_FORMATS, "shop", f"{__name__}:OURS")
    monkeypatch.setitem(settings_parts.LOG_FORMATS, "shop_traces", f"{__name__}:TRACES")
    line = b'{"at": "2026-11-20T10:00:00Z", "q": "is it open?", "a": "yes"}'
    read = Decoder(Traffic(format="shop")).line(1, line)
    assert isinstance(read, LogRequest)
    assert (read.query, read.response) == ("is it open?", "yes")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "2026-11-20.trace").write_text('{"t": "t1", "q": "is it open?"}\n')
    (tmp_path / "logs" / "2026-11-20.jsonl").write_text('{"t": "t2", "q": "not one of its files"}\n')
    ws = workspace(tmp_path, "traffic: {format: shop_traces}")
    source = Source(ws)
    (file,) = source.files(str)
    (span,) = Reader(source, ws.settings.traffic).read(file)
    assert getattr(span, "question", None) == "is it open?"


class EchoSystem(SystemBase):
    """Says the question again."""

    kind: Literal["echo"]
    times: int = 1


class Echo(System):
    """The system of `EchoSystem`."""

    kind = "echo"

    async def ask(self, example: Example, clock: Clock) -> Answer:
        assert isinstance(self.settings, EchoSystem)
        return Answer("scored", example["query"] * self.settings.times)


def build_echo(name: str, settings: EchoSystem, version: str, ws: Workspace) -> Echo:
    """The system."""
    del ws
    return Echo(name, settings, version)


def test_a_system_kind_is_one_file_and_one_entry(monkeypatch, tmp_path):
    with pytest.raises(UserError, match="kind: 'echo' is none"):
        parse_settings("systems: {mine: {kind: echo}}")
    kind = SystemKind(f"{__name__}:EchoSystem", f"{__name__}:build_echo")
    monkeypatch.setitem(settings_parts.SYSTEM_KINDS, "echo", kind)
    with pytest.raises(UserError, match=r"systems.mine.tims: unknown key, did you mean 'times'\?"):
        parse_settings("systems: {mine: {kind: echo, tims: 2}}")
    ws = workspace(tmp_path, "systems: {mine: {kind: echo, times: 2}}")
    settings = ws.settings.systems["mine"]
    assert ws.settings.model_dump()["systems"]["mine"]["times"] == 2
    system = build_system("mine", settings, ws)
    assert system.version == system_version("mine", settings, ws)
    assert system.version.startswith("echo-")
    assert asyncio.run(system.answer({"example_id": "a", "query": "ab"})).response == "abab"
    other = settings.model_copy(update={"times": 3})
    assert system_version("mine", other, ws) != system.version


def test_a_report_section_is_one_function_and_one_entry(monkeypatch, tmp_path):
    def most_asked(night: Night) -> Table:
        queries = night.examples["query"].to_pylist()
        return Table(["question", "requests"], [[queries[0] + "<b>", 7]])

    maker = maker_in(tmp_path)("metrics: [faithfulness]", n=60)
    maker.night({"logged": {"faithfulness": [1.0] * 60}})
    before = finish(maker.ws, "2026-11-20").read_text()
    entry = section.Section("Most asked", "What most people ask.", table=most_asked)
    monkeypatch.setitem(section.SECTIONS, "most_asked", entry)
    page = write_report(maker.ws, "2026-11-20").read_text()
    assert '<li><a href="#most_asked">Most asked</a></li>' in page
    assert '<section id="most_asked"' in page
    assert "What most people ask." in page
    assert "question 0&lt;b&gt;" in page
    assert page.replace('<li><a href="#most_asked">Most asked</a></li>\n', "").startswith(before[: len(before) // 2])


SENT: list[Any] = []


def send(ws: Workspace, record: Record) -> dict[str, Any]:
    """Keep the night's figures."""
    SENT.append((ws.root, record.metrics))
    return {"board_run": "r1"}


def withdraw(ws: Workspace, identity: dict[str, str], day: str) -> str:
    """Remove them."""
    raise UserError(f"the board is closed on {day}")


def test_a_tracker_is_two_functions_and_one_entry(monkeypatch, tmp_path):
    maker = maker_in(tmp_path)("metrics: [faithfulness]", n=60)
    maker.night({"logged": {"faithfulness": [1.0] * 60}})
    finish(maker.ws, "2026-11-20")
    assert tracking.track(maker.ws, "2026-11-20") == {"tracker": "none configured"}
    entry = tracking.Tracker("Board", lambda chosen: chosen.experiment == "ragbench", f"{__name__}:send", f"{__name__}:withdraw")  # fmt: skip
    monkeypatch.setitem(tracking.TRACKERS, "board", entry)
    assert tracking.track(maker.ws, "2026-11-20") == {"tracker": "board", "board_run": "r1"}
    assert any("faithfulness" in name for name in SENT[-1][1])
    (line,) = tracking.untrack(maker.ws, "2026-11-20")
    assert line == "2026-11-20: its Board run is still there: the board is closed on 2026-11-20"
