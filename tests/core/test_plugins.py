"""One loader of the user's own code; the workspace lies behind every library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge import build_evaluator
from ragbench_dagster.evaluation.systems import build_system
from ragbench_dagster.plugins import call_factory, load_factory
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Judge, Settings, parse_settings
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.scrubbing import build_scrubber, pool

EVALUATOR = """
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
class Mine(BaseEvaluator):
    def _get_prompts(self): return {}
    def _get_prompt_modules(self): return {}
    def _update_prompts(self, prompts): pass
    async def aevaluate(self, query=None, response=None, contexts=None, **kwargs):
        return EvaluationResult(score=0.25, passing=True)
def build():
    return Mine()
"""


@pytest.fixture(autouse=True)
def _new_process():
    yield
    RUNTIME.close()


def write(root: Path, **modules: str) -> Path:
    root.mkdir(exist_ok=True)
    for name, code in modules.items():
        (root / f"{name}.py").write_text(code, "utf-8")
    return root


def test_a_workspaces_module_never_stands_in_for_a_library(tmp_path):
    """Of the standard library or installed, loaded already or later: tried in a process where little is loaded."""
    hostile = "raise RuntimeError('the workspace shadows a library')"
    names = ["json", "names", "colorsys", "faker", "stdnum", "typing"]
    write(
        tmp_path,
        my_app="import colorsys, names\ndef build():\n    return names.get_full_name",
        **dict.fromkeys(names, hostile),
    )
    code = (
        "import sys, pathlib; from ragbench_dagster.plugins import load_factory; root = pathlib.Path(sys.argv[1]);"
        "made = load_factory('my_app:build', root, 'key')(); import json, colorsys, names, faker, stdnum;"
        "assert made is names.get_full_name; assert not any(str(root) in (m.__file__ or '') for m in"
        " (json, colorsys, names, faker, stdnum)); print(sys.path[-1] == str(root))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code, tmp_path], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("name", ["json:build", "json.engine:build", "colorsys:build"])
def test_a_module_of_a_librarys_name_is_told_to_be_renamed(tmp_path, name):
    write(tmp_path, json="def build(): pass", colorsys="def build(): pass")
    top = name.split(":")[0].split(".")[0]
    words = rf"^systems.x.engine: .*; {top} is an installed library, .* workspace's {top}.py; rename that$"
    with pytest.raises(UserError, match=words):
        load_factory(name, tmp_path, "systems.x.engine")


def test_the_modules_of_another_workspace_are_forgotten_and_no_others(tmp_path):
    answers = []
    for name in ("one", "two", "one"):
        root = write(
            tmp_path / name,
            shared_part=f"NAME = {name!r}",
            an_app="import shared_part\ndef f(): return shared_part.NAME",
        )
        answers.append(load_factory("an_app:f", root, "key")())
    assert answers == ["one", "two", "one"]
    assert [p for p in sys.path if p.startswith(str(tmp_path))] == [str(tmp_path / "one")]
    inner = write(tmp_path / "one" / "venv", a_library="X = 1")  # on the path in its own right, inside the workspace
    sys.path.append(str(inner))
    try:
        library = load_factory("a_library:X.__add__", tmp_path / "one", "key").__self__  # type: ignore[attr-defined]
        assert library == 1
        RUNTIME.close()
        assert "a_library" in sys.modules
        assert not {"an_app", "shared_part"} & set(sys.modules)
        assert str(tmp_path / "one") not in sys.path
    finally:
        sys.path.remove(str(inner))
        sys.modules.pop("a_library", None)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "must read module:factory"),
        ("app", "must read module:factory"),
        (":f", "must read module:factory"),
        ("a..b:f", "must read module:factory"),
        ("../app:f", "must read module:factory"),
        ("nowhere.at_all:f", "no module 'nowhere'; put it into the workspace folder or install it"),
        ("needs:f", "no module 'not_there'; install not_there, which it imports"),
        ("app:g", "app has no 'g'; name a factory that it defines"),
        ("app:K.g", "app has no 'K.g'"),
        ("app:N", "app:N is a int, not a factory; name a function"),
        ("ends:f", "ends fails while imported: SystemExit: of 3 x"),
        ("broken:f", "broken fails while imported: SyntaxError"),
    ],
)
def test_a_path_that_cannot_be_loaded_is_one_line_with_its_key(tmp_path, path, words):
    write(
        tmp_path,
        app="N = 1\nclass K: pass",
        needs="import not_there",
        ends="import sys\nsys.exit('of 3\\ny')",
        broken="def f(:",
    )
    with pytest.raises(UserError) as fault:
        load_factory(path, tmp_path, "key", lambda message: f"{message} x")
    assert str(fault.value).startswith("key: ")
    assert words in str(fault.value)
    assert "\n" not in str(fault.value)


def test_what_a_factory_raises_is_shown_only_as_the_caller_allows():
    def fails() -> None:
        raise ValueError("the text of a person")

    with pytest.raises(UserError, match=r"^key: the factory failed: ValueError$"):
        call_factory(fails, None, {}, "key")
    with pytest.raises(UserError, match=r"^key: the factory failed: ValueError: THE TEXT"):
        call_factory(fails, None, {}, "key", str.upper)
    with pytest.raises(UserError, match=r"^key.params: got an unexpected keyword argument 'k'$"):
        call_factory(fails, {"k": 1}, {"workspace": 2}, "key")


def recognising(path: str) -> Settings:
    return parse_settings(
        f"scrub: {{ner: 'off', entities: [], recognizers: [{{entity: TICKET, import_path: '{path}'}}]}}"
    )


def test_engines_evaluators_and_recognisers_come_from_the_workspace(tmp_path):
    write(
        tmp_path,
        my_pii="import re\ndef build():\n    return lambda text: [m.span() for m in re.finditer('T-[0-9]+', text)]",
        my_judge=EVALUATOR,
        my_engine="def build():\n    return str.upper",
    )
    ws = Workspace(tmp_path, recognising("my_pii:build"))
    assert build_scrubber(ws.settings.scrub, ws.root).plain("see T-12") == "see <TICKET>"
    judge = Judge.model_validate({"evaluators": {"kind": "my_judge:build"}})
    assert type(build_evaluator("kind", judge, ws)._evaluator).__module__ == "my_judge"
    engine: Any = parse_settings("systems: {x: {kind: engine, engine: 'my_engine:build'}}").systems["x"]
    assert build_system("x", engine, ws).kind == "engine"


def test_a_worker_process_has_the_workspaces_recognisers(tmp_path):
    write(tmp_path, my_pii="def build():\n    return lambda text: [(0, 3)]")
    pool._start(recognising("my_pii:build").scrub.model_copy(update={"processes": 2}), tmp_path)
    assert pool._scrubbers.pop().plain("abcd") == "<TICKET>d"


def test_two_workspaces_with_recognisers_of_one_name_do_not_mix(tmp_path):
    seen = []
    for name, end in (("one", 1), ("two", 2), ("one", 1)):
        root = write(tmp_path / name, my_pii=f"def build():\n    return lambda text: [(0, {end})]")
        seen.append(build_scrubber(recognising("my_pii:build").scrub, root).plain("abc"))
    assert seen == ["<TICKET>bc", "<TICKET>c", "<TICKET>bc"]


@pytest.mark.parametrize("metric", ["semantic_similarity", "faithfulness", "correctness"])
def test_the_users_evaluator_of_a_known_metric_is_the_one_that_is_asked(tmp_path, metric):
    write(tmp_path, my_judge=EVALUATOR)
    settings = parse_settings(f"metrics: [{metric}]\njudge: {{evaluators: {{{metric}: 'my_judge:build'}}}}")
    made = build_evaluator(metric, settings.judge.for_metric(metric), Workspace(tmp_path, settings))
    assert (made.name, type(made._evaluator).__name__) == (metric, "Mine")
