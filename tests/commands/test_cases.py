"""The cases from the field that a machine decides, through the real command, by the log's own runner."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDERS = ("cases", "more")
# Wrong today: case -> the point of issue 11 that mends it. Strict: a case that comes out right must leave the list.
WRONG: dict[str, str] = {}


def cases():
    named = os.environ.get("RAGBENCH_SHARED")
    shared = (Path(named) if named else Path(__file__).resolve().parents[3] / "shared") / "cases"
    found = sorted(p.parent for name in FOLDERS for p in (shared / name).glob("*/expect.json"))
    if not found:
        return [pytest.param(shared, id="none")]
    return [pytest.param(p, id=p.name, marks=_marks(p.name)) for p in found]


def _marks(name):
    if name not in WRONG:
        return ()
    return pytest.mark.xfail(reason=f"issue 11, point {WRONG[name]}", strict=True, raises=AssertionError)


@pytest.mark.parametrize("case", cases())
def test_a_case_from_the_field_comes_out_right(shared, case, tmp_path):
    ragbench = tmp_path / "ragbench"
    ragbench.write_text(f'#!/bin/sh\nexec {sys.executable} -m ragbench_dagster.cli "$@"\n', encoding="utf-8")
    ragbench.chmod(0o755)
    command = [sys.executable, shared / "cases" / "try_case.py", case, ragbench]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
