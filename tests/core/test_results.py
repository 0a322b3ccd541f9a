"""What is written as JSON: every Struct comes back from its bytes, and a damaged file is one line."""

import json
import pkgutil
from importlib import import_module
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

import ragbench_dagster
from ragbench_dagster.errors import UserError
from ragbench_dagster.results import Manifest, Result, Stored
from ragbench_dagster.store import dumps, read_struct, write_struct

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | NUMBER | TEXT, st.lists, max_leaves=4)


def _structs() -> list[type[Stored]]:
    """Every Struct that is written anywhere in the package."""
    for module in pkgutil.walk_packages(ragbench_dagster.__path__, "ragbench_dagster."):
        if not module.name.startswith(("ragbench_dagster.orchestration", "ragbench_dagster.definitions")):
            import_module(module.name)
    classes, found = [Stored], set()
    while classes:
        below = classes.pop().__subclasses__()
        classes += below
        found |= set(below)
    return sorted(found - {Result}, key=lambda kind: kind.__name__)


STRUCTS = _structs()
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT, float: NUMBER, int: st.integers(-(2**53), 2**53), bool: st.booleans(), Any: JSON,
    type(None): st.none(), UnsetType: st.just(UNSET),
}  # fmt: skip


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that a stored field may have."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in SIMPLE:
        return SIMPLE[kind]
    if kind is Literal:
        return st.sampled_from(parts)
    if kind is list:
        return st.lists(values_of(parts[0]), max_size=2)
    if kind is dict:
        return st.dictionaries(TEXT, values_of(parts[1]), max_size=2)
    if kind is tuple and parts[-1] is not ...:
        return st.tuples(*map(values_of, parts))
    if kind is tuple:
        return st.lists(values_of(parts[0]), max_size=2).map(tuple)
    if kind in (Union, UnionType):
        return st.one_of(*map(values_of, parts))
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: values_of(hints[name]) for name in kind.__struct_fields__})


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_struct_comes_back_from_its_bytes(kind, data, tmp_path_factory):
    value = data.draw(values_of(kind))
    path = tmp_path_factory.mktemp("s") / "a.json"
    assert write_struct(path, value) == value
    assert read_struct(path, kind) == value
    assert path.read_text() == dumps(json.loads(path.read_text())) + "\n"


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_every_struct_refuses_what_it_does_not_know(kind, tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"no such key": 1}')
    with pytest.raises(UserError, match="cannot be read"):
        read_struct(path, kind)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"release": 3}', r"Expected `str`, got `int` - at `\$.release`"),
        ('{"release": "x", "systems": {"secret": 3}}', r"at `\$.systems\[...\]`"),
        ('{"release": "x", "later": 1}', "unknown field `later`.*update"),
        ("{}", "missing required field `release`"),
        ("[]", "Expected `object`, got `array`"),
        ("{", "no JSON"),
        ("", "no JSON"),
        ('{"release": "\xff"}', "no JSON"),
        ('{"release": "x", "judge": {"a": ' + "[" * 100_000, "nested"),
        ('{"release": "x", "examples": 1e999}', "out of range"),
    ],
)
def test_a_damaged_file_is_one_line_with_its_key(text, line, tmp_path):
    path = tmp_path / "manifest.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=line) as fault:
        read_struct(path, Manifest)
    assert str(fault.value).startswith(f"{path}: ")
    assert "\n" not in str(fault.value)


def test_a_file_of_a_former_version_reads_on(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text('{"release": "2026-11-20-abc", "systems": {"mine": "v1"}}')
    manifest = read_struct(path, Manifest)
    assert manifest is not None
    assert (manifest.systems, manifest.fixed, manifest.warnings, manifest.examples) == ({"mine": "v1"}, [], [], None)


def test_no_file_is_none_and_unknown_figures_are_null(tmp_path):
    path = tmp_path / "manifest.json"
    assert read_struct(path, Manifest) is None
    stored = write_struct(path, Manifest(release="x", answered_first={"mine": float("nan")}))
    assert stored.answered_first == {"mine": None}
    assert json.loads(path.read_text())["answered_first"] == {"mine": None}
