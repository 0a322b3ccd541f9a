"""The cases from the field that a machine decides, through the real command, by the log's own runner."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def cases():
    named = os.environ.get("RAGBENCH_SHARED")
    shared = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    folder = shared / "cases" / "cases"
    return sorted(p.name for p in folder.iterdir() if (p / "expect.json").exists()) if folder.is_dir() else ["none"]


@pytest.mark.parametrize("case", cases())
def test_a_case_from_the_field_comes_out_right(shared, case, tmp_path):
    ragbench = tmp_path / "ragbench"
    ragbench.write_text(f'#!/bin/sh\nexec {sys.executable} -m ragbench_dagster.cli "$@"\n', encoding="utf-8")
    ragbench.chmod(0o755)
    command = [sys.executable, shared / "cases" / "try_case.py", shared / "cases" / "cases" / case, ragbench]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
