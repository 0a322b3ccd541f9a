"""A night that is killed, disturbed or shared ends, once it is run again, with the bytes of a calm one.

Each kill at every place and at random moments: tests/bench/bench_crash.py.
"""

import signal

import pytest

from tests.support.disturbed_nights import DAY, NIGHT, WORKERS, day_lines, differences, make, outcome, paid, provider
from tests.support.night_forks import Forks

# A release that was cut from half a file stays (design rule 3), and so do verdicts that were paid and alerts.
KEPT = ("store/releases/", "ledger ", "store/alerts")


@pytest.fixture(scope="module")
def judge():
    with provider() as judge:
        yield judge


@pytest.fixture(scope="module")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture(scope="module")
def calm(forks, judge, tmp_path_factory):
    """(what an undisturbed night leaves, what it paid)"""
    root = make(tmp_path_factory.mktemp("calm") / "ws", judge.base)
    code, said = forks.run(root)
    assert code == NIGHT, said
    asked = paid(judge, root)
    assert set(asked.values()) == {1}
    return outcome(root), asked


@pytest.fixture
def root(tmp_path, judge):
    return make(tmp_path / "ws", judge.base)


def test_kill_9_in_every_part_of_a_night_and_the_clock_set_back_meanwhile(forks, judge, calm, root, tmp_path):
    """One kill a process: in traffic, dataset, answering, judging and reporting; bench_crash has every place."""
    places = ["scrubbed.parquet", f"{DAY}.json", "responses.parquet", "verdicts.parquet", "scores.parquet"]
    kills = 0
    while (code := forks.run(root, kill=signal.SIGKILL, seen=str(tmp_path / "seen"), only=places)[0]) != NIGHT:
        assert code == -signal.SIGKILL
        kills += 1
        if kills == 4:
            code, said = forks.run(root, clock="2026-11-20T12:00:00+00:00")
            assert code == 2
            assert "the day is not over (today is 2026-11-20 UTC by this machine's clock)" in said
    assert kills >= len(places)
    assert differences(root, calm[0]) == []
    again = paid(judge, root)
    assert again.keys() == calm[1].keys()
    assert again.total() <= calm[1].total() + kills * WORKERS


def test_a_log_file_that_grows_and_one_that_is_cut_while_they_are_read(forks, judge, calm, root):
    """Both end as what the log says at last; the file grows as it is read for the sample, after the scan saw less."""
    whole, log = day_lines(20), root / "logs" / f"{DAY}.jsonl"
    log.write_text(whole[:700])
    for opening, data, code in ((2, whole[700:], {2, NIGHT}), (2, None, {2, NIGHT})):
        got, said = forks.run(root, log=str(log), opening=opening, data=data)
        assert got in code, said
        assert "internal error" not in said
    assert len(log.read_text()) == len(whole) // 2
    log.write_text(whole)
    assert forks.run(root)[0] == NIGHT
    assert differences(root, calm[0], KEPT) == []


def test_two_runs_at_once_beside_those_of_sensor_and_schedule(forks, judge, calm, root):
    daemon = forks.start(root, job=True)
    people = [forks.start(root), forks.start(root)]
    ended = [forks.end(one) for one in people]
    assert [code for code, _ in ended] == [NIGHT, NIGHT], ended
    assert any("waiting for another run in this workspace" in said for _, said in ended)
    code, said = forks.end(daemon)
    assert code == 0, said
    assert differences(root, calm[0]) == []
    assert paid(judge, root) == calm[1]  # nothing twice: nothing was killed
