"""A second run waits for the first, and says so: at once, again and again, and without a terminal."""

import subprocess
import sys
import time

from ragbench_dagster.orchestration import resources

HOLD = (
    "import sys, time; from pathlib import Path; from ragbench_dagster.orchestration.resources import store_lock\n"
    "with store_lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(float(sys.argv[2]))"
)


def holding(root, seconds):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(root), str(seconds)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_run_that_waits_says_so_at_once_and_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(resources, "TELL_S", 0.5)
    process = holding(tmp_path, 1.6)
    begin = time.monotonic()
    with resources.store_lock(tmp_path):
        assert time.monotonic() - begin > 0.5
    process.wait()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("waiting for another run in this workspace") for line in lines)
    assert "(" not in lines[0]


def test_the_first_line_comes_before_any_wait(tmp_path, monkeypatch):
    process = holding(tmp_path, 30)

    class Said(Exception):
        pass

    def said(line):
        raise Said

    begin = time.monotonic()
    try:
        with resources.store_lock(tmp_path, said):
            raise AssertionError("the lock is held")
    except Said:
        assert time.monotonic() - begin < 5
    finally:
        process.kill()
        process.wait()
    with resources.store_lock(tmp_path):  # a killed run holds nothing
        pass
