"""What the log-file sensor asks for, tick by tick."""

from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.orchestration.partitions import ranges
from ragbench_dagster.orchestration.sensors import next_tick, requests

A, B = {"2026-11-20": "a"}, {"2026-11-20": "b"}
DAY = ["2026-11-20"]


def test_a_new_day_is_asked_for_once():
    first = next_tick({}, A, DAY)
    assert first.days == DAY
    assert next_tick(first.cursor, A, DAY).days == []  # its run is still queued


def test_content_that_comes_back_gets_a_new_run_key():
    """A -> B -> A: the key of the first A is used up; without a generation the day would stay stale for ever."""
    keys, cursor = [], {}
    for marks in (A, B, A):
        tick = next_tick(cursor, marks, DAY)
        keys += [r.run_key for r in requests(tick, marks)]
        cursor = next_tick(tick.cursor, marks, []).cursor  # the run finished
    assert len(set(keys)) == 3


def test_a_day_that_is_current_is_not_asked_for():
    assert next_tick({}, A, []).days == []


def test_many_days_are_one_range_run_and_single_days_keep_their_checks():
    marks = {f"2026-11-{d:02d}": "x" for d in (1, 2, 3, 7)}
    found = requests(next_tick({}, marks, sorted(marks)), marks)
    assert [(r.job_name, r.partition_key) for r in found] == [("catch_up", None), ("ingest", "2026-11-07")]
    assert found[0].tags["dagster/asset_partition_range_end"] == "2026-11-03"


@given(st.sets(st.dates(min_value=__import__("datetime").date(2020, 1, 1)), max_size=60))
def test_ranges_cover_exactly_the_days(days):
    from datetime import date, timedelta

    covered = []
    for first, last in ranges([d.isoformat() for d in days]):
        day = date.fromisoformat(first)
        while day.isoformat() <= last:
            covered.append(day)
            day += timedelta(days=1)
    assert covered == sorted(days)
