"""Disturbances of a night other than kill -9: signals, logs that change while read, a small disk, many runs at once.

Run: pytest tests/bench/bench_disturbances.py -s. Afterwards every stored byte is that of a calm night. Five minutes
of CPU; the suite holds one case of most kinds (tests/commands/test_disturbed_nights.py).
"""

import signal
import subprocess

import pytest

from tests.support.disturbed_nights import (
    DAY,
    KEPT,
    NIGHT,
    calm,  # noqa: F401
    day_lines,
    differences,
    forks,  # noqa: F401
    judge,  # noqa: F401
    make,
    outcome,
    paid,
)


@pytest.fixture
def root(tmp_path, judge):  # noqa: F811
    return make(tmp_path / "ws", judge.base)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_in_traffic_dataset_judging_and_reporting(forks, judge, calm, root, tmp_path, number):  # noqa: F811
    places = ["scrubbed.parquet", f"{DAY}.json", "verdicts.parquet", "gate.json"]
    for _ in range(8):
        code, said = forks.run(root, kill=number, seen=str(tmp_path / "seen"), only=places)
        if code == NIGHT:
            break
        assert code == 130, said
        assert "everything finished is kept" in said
        assert "Traceback" not in said
    assert len((tmp_path / "seen").read_text().splitlines()) >= 4
    assert forks.run(root)[0] == NIGHT
    assert differences(root, calm[0]) == []
    assert paid(judge, root) == calm[1]  # an interrupt lets what is in flight end


@pytest.mark.parametrize("opening", [1, 2, 3])
def test_a_log_file_that_grows_while_it_is_read(forks, calm, root, opening):  # noqa: F811
    """First read by the scan, then for the sample, then for scrubbing; half a line is there at each of them."""
    whole, log = day_lines(20), root / "logs" / f"{DAY}.jsonl"
    log.write_text(whole[:700])
    code, said = forks.run(root, log=str(log), opening=opening, data=whole[700:])
    assert code in (2, NIGHT), said
    assert log.read_text() == whole
    assert "internal error" not in said
    assert forks.run(root)[0] == NIGHT
    assert differences(root, calm[0], KEPT) == []


@pytest.mark.parametrize("data", [None, ""], ids=["to half", "to nothing"])
@pytest.mark.parametrize("opening", [1, 2, 3])
def test_a_log_file_that_is_truncated_while_it_is_read(forks, judge, root, tmp_path, opening, data):  # noqa: F811
    log = root / "logs" / f"{DAY}.jsonl"
    code, said = forks.run(root, log=str(log), opening=opening, data=data)
    assert code in (2, NIGHT), said
    assert "internal error" not in said
    code, said = forks.run(root)
    assert code == NIGHT, said
    other = make(tmp_path / "calm" / "ws", judge.base, last_day=log.read_text())
    code, said = forks.run(other)
    assert code == NIGHT, said
    assert differences(root, outcome(other), KEPT) == []


def test_three_runs_of_one_night_at_once(forks, judge, calm, root):  # noqa: F811
    started = [forks.start(root) for _ in range(3)]
    ended = [forks.end(one) for one in started]
    assert [code for code, _ in ended] == [NIGHT] * 3, ended
    assert sum("waiting for another run in this workspace" in said for _, said in ended) >= 2
    assert differences(root, calm[0]) == []
    assert paid(judge, root) == calm[1]


@pytest.mark.parametrize("size", ["300k", "900k", "1200k", "1500k", "1800k"])
def test_a_disk_that_is_full_and_then_made_larger(forks, judge, calm, tmp_path, size):  # noqa: F811
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no right to mount a tmpfs")
    try:
        root = make(disk / "ws", judge.base)
        code, said = forks.run(root)
        print(f"{size}: {code}: {said.strip().splitlines()[-1][-120:]}")
        assert code == 2, said
        assert "no space left" in said.lower()
        assert list(root.rglob("*.part")) == []
        subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
        assert forks.run(root)[0] == NIGHT
        assert differences(root, calm[0]) == []
    finally:
        subprocess.run(["umount", disk], check=True)
