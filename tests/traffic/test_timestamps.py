"""Times: what is accepted, which day it means, and what is refused."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.traffic.requests import RowError
from ragbench_dagster.traffic.timestamps import day_number, day_of, iso_day, last_days, parse_time

MOMENT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SECONDS = 1795168800  # 2026-11-20T10:00:00Z, from `date -d @1795168800 -u`


def at(value, zone=UTC):
    micros, naive = parse_time(value, zone)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros), naive


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-20T10:00:00Z",
        "2026-11-20 10:00:00+00:00",
        "2026-11-20T12:00:00+02:00",
        "2026-11-20T05:00:00.000-0500",
        "2026-11-20T10:00:00.000000000Z",
        "2026-11-20 10:00:00 UTC",
        "2026-11-20 10:00:00.000 UTC",
        " 2026-11-20T10:00:00z ",
        SECONDS,
        float(SECONDS),
        SECONDS * 1000,
        SECONDS * 1_000_000,
        SECONDS * 1_000_000_000,
        str(SECONDS),
        f"{SECONDS}.000",
        str(SECONDS * 1000),
        MOMENT,
    ],
)
def test_spellings_of_one_moment(value):
    assert at(value) == (MOMENT, False)


def test_nanoseconds_are_cut_to_microseconds():
    assert at("2026-11-20T10:15:00.123456789Z")[0].microsecond == 123456
    assert at(SECONDS * 1_000_000_000 + 123_456_789)[0].microsecond == 123456


def test_time_without_a_zone_is_taken_in_the_workspaces_zone():
    assert at("2026-11-20 10:00:00") == (MOMENT, True)
    assert at("2026-11-20 05:00:00", ZoneInfo("America/New_York")) == (MOMENT, True)
    assert at(datetime(2026, 11, 20, 10, 0)) == (MOMENT, True)
    assert at("2026-11-20")[0] == datetime(2026, 11, 20, tzinfo=UTC)


def test_day_is_the_utc_day():
    assert day_of(parse_time("2026-11-20T00:30:00+02:00", UTC)[0]) == date(2026, 11, 19)
    assert day_of(parse_time("2026-11-19T23:30:00-05:00", UTC)[0]) == date(2026, 11, 20)


@pytest.mark.parametrize(
    "value",
    ["yesterday", "", "  ", None, True, [], {}, "1e9", "2026-13-01", "NaN", float("nan"), float("inf"), 1e30, 10**30],
)
def test_no_time_is_refused_without_its_text(value):
    with pytest.raises(RowError) as fault:
        parse_time(value, UTC)
    assert "yesterday" not in str(fault.value)


@pytest.mark.parametrize("value", [0, "1970-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", -5, 20261120])
def test_clock_that_was_never_set_does_not_start_the_series_in_1970(value):
    with pytest.raises(RowError, match="2000"):
        parse_time(value, UTC)


@given(st.datetimes(datetime(2000, 1, 2), datetime(2286, 1, 1)))
def test_every_unit_of_epoch_gives_the_same_second(moment):
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    seconds = int(moment.timestamp())
    for factor in (1, 1000, 1_000_000, 1_000_000_000):
        assert at(seconds * factor)[0] == moment


@given(st.datetimes(datetime(2000, 1, 2), datetime(2999, 1, 1)))
def test_iso_text_round_trips_to_the_microsecond(moment):
    assert at(moment.isoformat() + "Z") == (moment.replace(tzinfo=UTC), False)


@given(st.dates(date(2000, 1, 1), date(2999, 1, 1)))
def test_day_numbers_round_trip(day):
    assert iso_day(day_number(day)) == day.isoformat()


def test_the_last_days_end_with_the_day_across_months_and_leap_days():
    assert last_days("2024-03-01", 3) == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert last_days("2026-01-01", 1) == ["2026-01-01"]
    assert last_days("2026-01-01", 0) == []
