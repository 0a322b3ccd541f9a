"""Engines by import path: every way to be called, timed, bounded, and isolated from each other."""

import asyncio
import json
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems import Answer, System, build_system
from ragbench_dagster.settings import EngineSystem, RetrieverSystem
from ragbench_dagster.store import Workspace

ENGINES = """
import asyncio, time
from types import SimpleNamespace
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.schema import NodeWithScore, TextNode

NODES = [NodeWithScore(node=TextNode(id_="n1", text="t1"), score=0.5)]

class Engine(BaseQueryEngine):
    def __init__(self, stream=False):
        super().__init__(callback_manager=None)
        self.stream = stream
    def _get_prompt_modules(self):
        return {}
    def _query(self, bundle):
        raise AssertionError("the async way is there")
    async def _aquery(self, bundle):
        if not self.stream:
            return Response(f"about {bundle.query_str}", NODES)
        async def tokens():
            for word in ("about ", bundle.query_str):
                await asyncio.sleep(0.02)
                yield word
        return AsyncStreamingResponse(tokens(), NODES)

class Retriever(BaseRetriever):
    def _retrieve(self, bundle):
        return NODES

def query_engine(): return Engine()
def streaming_engine(): return Engine(stream=True)
def retriever(): return Retriever()

def sync_query_engine():
    def query(text):
        def tokens():
            for word in ("about ", text):
                time.sleep(0.02)
                yield word
        return StreamingResponse(tokens(), NODES)
    return SimpleNamespace(query=query)

def plain(): return lambda text: f"about {text}"
def coroutine():
    async def ask(text):
        await asyncio.sleep(0.01)
        return {"answer": f"about {text}", "sources": [{"id": "n1", "text": "t1", "score": 0.5}]}
    return ask
def generator():
    def ask(text):
        yield "about "
        yield text
        yield {"source_nodes": [{"id": "n1", "text": "t1", "score": 0.5}]}
    return ask
def async_generator():
    async def ask(text):
        yield "about "
        yield text
    return ask
class Callable:
    async def __call__(self, text): return f"about {text}"
def instance(): return Callable()
def hidden_coroutine():
    async def ask(text): return f"about {text}"
    return lambda text: ask(text)

def conversation(): return lambda query, history: " | ".join([*history, query])
def with_workspace(workspace, suffix=""): return lambda text: workspace.root.name + suffix
def temperamental():
    def ask(text):
        if "boom" in text: raise ValueError(f"cannot answer {text}")
        if "hang" in text: time.sleep(30)
        if "stop" in text: raise StopIteration
        if "exit" in text: raise SystemExit(3)
        if "none" in text: return None
        time.sleep(0.05)
        return f"about {text}"
    return ask
def async_hang():
    async def ask(text):
        await asyncio.sleep(30)
    return ask
def index(): return SimpleNamespace(as_query_engine=lambda: 1, as_retriever=lambda: 1)
def nothing(): return None
def number(): return 5
def fails(): raise RuntimeError("no database\\nsecond line")
def strict(top_k): return lambda text: "x"
NOT_CALLABLE = 5
"""


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    (tmp_path / "engines.py").write_text(textwrap.dedent(ENGINES), encoding="utf-8")
    return Workspace.open(tmp_path)


def make(ws: Workspace, factory: str, kind: str = "engine", **more: Any) -> System:
    model = EngineSystem if kind == "engine" else RetrieverSystem
    path = factory if ":" in factory else f"engines:{factory}"
    return build_system("mine", model.model_validate({"kind": kind, "engine": path, **more}), ws)


def ask(system: System, *queries: str, history: tuple[str, ...] = ()) -> list[Answer]:
    async def all_at_once() -> list[Answer]:
        try:
            return await asyncio.gather(
                *(system.answer({"example_id": q, "query": q, "history": list(history)}) for q in queries)
            )
        finally:
            await system.aclose()

    return asyncio.run(all_at_once())


@pytest.mark.parametrize(
    ("factory", "passages"),
    [
        ("query_engine", True), ("streaming_engine", True), ("sync_query_engine", True), ("plain", False),
        ("coroutine", True), ("generator", True), ("async_generator", False), ("instance", False),
        ("hidden_coroutine", False),
    ],
)  # fmt: skip
def test_every_way_to_answer(factory: str, passages: bool, ws: Workspace) -> None:
    (answer,) = ask(make(ws, factory), "seats")
    assert (answer.status, answer.response, answer.error) == ("scored", "about seats", None)
    assert answer.retrieved_ids == (("n1",) if passages else ())
    assert answer.contexts == (("t1",) if passages else ())
    assert answer.latency_ms is not None
    assert answer.latency_ms > 0


@pytest.mark.parametrize("factory", ["streaming_engine", "sync_query_engine", "generator", "async_generator"])
def test_streaming_systems_report_the_time_to_the_first_token(factory: str, ws: Workspace) -> None:
    (answer,) = ask(make(ws, factory), "seats")
    assert answer.first_token_ms is not None
    assert 0 <= answer.first_token_ms <= (answer.latency_ms or 0)


def test_others_report_none(ws: Workspace) -> None:
    assert ask(make(ws, "plain"), "seats")[0].first_token_ms is None


def test_a_retriever_alone_gives_passages_and_no_response(ws: Workspace) -> None:
    (answer,) = ask(make(ws, "retriever", kind="retriever"), "seats")
    assert (answer.status, answer.response, answer.retrieved_ids) == ("scored", None, ("n1",))


def test_history_is_passed_where_it_is_taken_and_put_before_the_question_elsewhere(ws: Workspace) -> None:
    assert ask(make(ws, "conversation"), "and now?", history=("a", "b"))[0].response == "a | b | and now?"
    assert ask(make(ws, "plain"), "and now?", history=("a",))[0].response == "about a\nand now?"


def test_the_factory_gets_the_workspace_and_its_parameters_by_keyword(ws: Workspace) -> None:
    system = make(ws, "with_workspace", params={"suffix": "!"})
    assert ask(system, "q")[0].response == f"{ws.root.name}!"


def test_one_bad_question_never_spoils_the_others_and_its_text_is_not_in_the_error(ws: Workspace) -> None:
    system = make(ws, "temperamental", timeout_s=0.5)
    answers = ask(system, "good", "boom secret", "hang", "stop", "exit", "none", "fine")
    assert [a.status for a in answers] == ["scored", "error", "timed_out", *["error"] * 3, "scored"]
    assert [a.error and a.error.split()[0] for a in answers[1:6]] == [
        "ValueError", "Timeout:", "StopIteration:", "SystemExit:", "EmptyAnswer:",
    ]  # fmt: skip
    assert "secret" not in str(answers[1].error)
    assert "engines.py" in str(answers[1].error)


def test_a_call_that_hangs_holds_no_slot_of_the_others(ws: Workspace) -> None:
    """A thread pool would starve: its hung threads cannot be killed."""
    begin = time.monotonic()
    answers = ask(make(ws, "temperamental", timeout_s=0.3), *[f"hang {i}" for i in range(20)], "good")
    assert time.monotonic() - begin < 5
    assert answers[-1].status == "scored"
    (slow,) = ask(make(ws, "async_hang", timeout_s=0.1), "q")
    assert slow.error == "Timeout: no answer within 0.1 s"


def test_a_system_whose_calls_never_come_back_is_given_up_in_one_line(ws: Workspace) -> None:
    system = make(ws, "temperamental", timeout_s=0.05)

    async def many() -> None:
        for i in range(0, 100, 10):
            await asyncio.gather(*(system.answer({"example_id": "x", "query": f"hang {i + j}"}) for j in range(10)))

    with pytest.raises(UserError, match=r"systems\.mine: \d+ calls did not come back"):
        asyncio.run(many())


def test_latency_is_the_systems_own_time_whatever_runs_beside_it(ws: Workspace) -> None:
    answers = ask(make(ws, "temperamental"), *[f"q{i}" for i in range(30)])
    times = sorted(a.latency_ms or 0 for a in answers)
    assert times[0] >= 50
    assert times[len(times) // 2] < 500  # 30 calls of 50 ms one after the other would take 1500


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("no_colon_here:", "must read module:factory"),
        ("no_such_module:f", "no module 'no_such_module'; put it into the workspace folder or install it"),
        ("engines:no_such", "engines has no 'no_such'"),
        ("engines:NOT_CALLABLE", "is a int, not a factory"),
        ("engines:fails", "the factory failed: RuntimeError: no database$"),
        ("engines:nothing", "the factory returned nothing"),
        ("engines:number", "the factory returned a int"),
        ("engines:index", r"return index\.as_query_engine"),
        ("engines:strict", r"systems\.mine\.params: missing a required argument: 'top_k'"),
    ],
)
def test_a_system_that_cannot_be_built_is_one_line(factory: str, words: str, ws: Workspace) -> None:
    with pytest.raises(UserError, match=words) as caught:
        make(ws, factory)
    assert str(caught.value).startswith("systems.mine")
    assert "\n" not in str(caught.value)


def test_a_module_that_fails_while_imported_is_named(ws: Workspace) -> None:
    (ws.root / "broken_one.py").write_text("1 / 0\n", encoding="utf-8")
    (ws.root / "needs_one.py").write_text("import not_installed_here\n", encoding="utf-8")
    with pytest.raises(UserError, match="broken_one fails while imported: ZeroDivisionError"):
        make(ws, "broken_one:build")
    with pytest.raises(UserError, match="no module 'not_installed_here'; install not_installed_here"):
        make(ws, "needs_one:build")


def test_two_workspaces_with_modules_of_one_name_do_not_mix(tmp_path: Path) -> None:
    answers = []
    for name in ("one", "two", "one"):
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        (root / "my_app.py").write_text(f"def build():\n    return lambda q: {name!r}\n", encoding="utf-8")
        answers.append(ask(make(Workspace.open(root), "my_app:build"), "q")[0].response)
    assert answers == ["one", "two", "one"]


def test_the_version_follows_code_settings_and_corpus_but_not_speed(ws: Workspace) -> None:
    def version(factory: str = "engines:plain", **more: Any) -> str:
        return make(ws, factory, **more).version

    first = version()
    assert first == version(timeout_s=5, concurrency=1)
    assert first != version(params={}, ids="document")
    assert version(version="2026-11-01") == "2026-11-01"
    seeing = version("engines:with_workspace")
    (ws.root / "corpus.jsonl").write_text(json.dumps({"doc_id": "a", "text": "b"}), encoding="utf-8")
    assert version("engines:with_workspace") != seeing
    assert version() == first
    code = (ws.root / "engines.py").read_text("utf-8")
    (ws.root / "engines.py").write_text(code + "\n# changed\n", encoding="utf-8")
    assert version() != first
