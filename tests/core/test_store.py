"""Files of the store are whole or absent, and equal content gives equal bytes."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, digest, dumps, read_json, write_atomic, write_json, write_table


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"v": 1})

    def fail(part):
        part.write_text("half")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_atomic(path, fail)
    assert read_json(path) == {"v": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_the_same_content_does_not_touch_the_file(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"x": [1, 2]})
    assert write_table(path, table)
    before = path.stat().st_mtime_ns
    assert not write_table(path, table)
    assert path.stat().st_mtime_ns == before


def test_printed_json_is_strict():
    text = dumps({"a": math.nan, "b": [np.float64(1.5), np.int64(2)], "c": math.inf})
    assert json.loads(text, parse_constant=lambda c: pytest.fail(c)) == {"a": None, "b": [1.5, 2], "c": None}


def test_parts_of_a_digest_do_not_run_into_each_other():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a") != digest("a", "")


def test_identifiers_become_keyed_hashes_that_say_nothing_elsewhere(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    a, b = Workspace.open(one), Workspace.open(two)
    assert a.keyed("req-1") == Workspace.open(one).keyed("req-1")
    assert a.keyed("req-1") != b.keyed("req-1")
    assert (one / ".key").stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError) as fault:
        write_json(tmp_path / "file" / "below" / "x.json", {})
    assert "cannot be written" in str(fault.value)
    assert "\n" not in str(fault.value)


def test_no_workspace_says_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match="ragbench init"):
        Workspace.open(tmp_path / "none")
