"""A night that is killed, disturbed or shared ends, once it is run again, with the bytes of a calm one.

Each kill at every place and at random moments: tests/bench/bench_crash.py.
"""

import signal

import pytest

from tests.support.disturbed_nights import (
    DAY,
    NIGHT,
    WORKERS,
    calm,  # noqa: F401
    day_lines,
    differences,
    forks,  # noqa: F401
    judge,  # noqa: F401
    make,
    paid,
)


@pytest.fixture
def root(tmp_path, judge):  # noqa: F811
    return make(tmp_path / "ws", judge.base)


def test_kill_9_between_files_while_a_log_grows_and_the_clock_is_set_back(forks, judge, calm, root, tmp_path):  # noqa: F811
    """After scrubbing and before the search of what it wrote; while answers are put in place; bench_crash has the rest."""
    places, seen = ["11-18/scrubbed.parquet", "bm25/timings.parquet"], str(tmp_path / "seen")
    whole, log = day_lines(20), root / "logs" / f"{DAY}.jsonl"
    log.write_text(whole[:700])  # half a line, until the scan has opened it
    for grows in ({"log": str(log), "opening": 1, "data": whole[700:]}, {}):
        code, said = forks.run(root, kill=signal.SIGKILL, seen=seen, only=places, **grows)
        assert code == -signal.SIGKILL, said
        assert log.read_text() == whole
    code, said = forks.run(root, clock="2026-11-20T12:00:00+00:00")
    assert code == 2
    assert "the day is not over (today is 2026-11-20 UTC by this machine's clock)" in said
    code, said = forks.run(root)
    assert code == NIGHT, said
    assert differences(root, calm[0]) == []
    again = paid(judge, root)
    assert again.keys() == calm[1].keys()
    assert again.total() <= calm[1].total() + len(places) * WORKERS


def test_a_run_beside_those_of_sensor_and_schedule(forks, judge, calm, root):  # noqa: F811
    daemon, person = forks.start(root, job=True), forks.start(root)
    code, said = forks.end(person)
    assert code == NIGHT, said
    code, said = forks.end(daemon)
    assert code == 0, said
    assert differences(root, calm[0]) == []
    assert paid(judge, root) == calm[1]  # nothing twice: nothing was killed
