"""Rows of the stage filters: strict JSON in and out, whatever they hold."""

import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.commands import stages
from ragbench_dagster.errors import UserError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def written(rows, monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out, encoding="utf-8"))
    stages.write_rows(rows)
    return out.getvalue().split(b"\n")[:-1]


@given(st.lists(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), max_size=4))
def test_whatever_is_written_is_one_strict_json_line_a_row(rows):
    with pytest.MonkeyPatch.context() as patch:
        lines = written(rows, patch)
    assert len(lines) == len(rows)
    for line in lines:
        assert isinstance(json.loads(line.decode("utf-8"), parse_constant=pytest.fail), dict)


def test_unknown_is_null_and_numpy_is_a_number(monkeypatch):
    (line,) = written([{"a": math.nan, "b": np.float64(1.5), "c": "\ud83d"}], monkeypatch)
    assert json.loads(line) == {"a": None, "b": 1.5, "c": "\ufffd"}


@pytest.mark.parametrize("bad", [b"{", b"[1]", b'{"a": NaN}', b'{"a": 1e400}', b"\xff\xfe", b"nope"])
def test_a_bad_row_is_named_by_its_number(bad):
    with pytest.raises(UserError, match="row 2"):
        list(stages.read_rows(io.BytesIO(b'{"a": 1}\n' + bad + b"\n")))


def test_only_a_line_feed_ends_a_row():
    data = '\ufeff{"a": "x\u2028y\u0085z"}\r\n\n{"a": 9007199254740993}\n'.encode()
    assert list(stages.read_rows(io.BytesIO(data))) == [{"a": "x\u2028y\u0085z"}, {"a": 9007199254740993}]
