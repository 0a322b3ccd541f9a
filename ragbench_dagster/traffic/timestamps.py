"""Times of log lines as microseconds since 1970 (UTC). Which day a line belongs to is decided here alone.

Accepted: ISO 8601 with a zone, or without one (then in `traffic.timezone`), with any number of decimals and
a space instead of T; `2026-11-20 10:15:00 UTC`; epoch numbers, also as text, whose unit shows in their size;
`datetime` values of a Parquet file. Everything else is a bad line, never a guess.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from ragbench_dagster.traffic.requests import Opaque, RowError, WrongType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_US = 86_400_000_000
# A number below 1e11 is seconds (to the year 5138), below 1e14 ms, below 1e17 µs, else ns (to 2286 at 1e19).
_UNITS = ((1e11, 1_000_000), (1e14, 1_000), (1e17, 1))
_NUMBER = re.compile(r"[+-]?\d{9,}(\.\d*)?$")  # shorter digit strings are dates such as 20261120
_ZONE_NAME = re.compile(r"\s*(?:UTC|GMT)$")
# Earlier times come from clocks that were never set; they would make the series of days start decades ago.
_EARLIEST_US = 946_684_800_000_000  # 2000-01-01
_LATEST_US = 253_402_300_800_000_000  # the year 10000, which no calendar of ours has


def parse_time(value: object, zone: tzinfo) -> tuple[int, bool]:
    """The time in microseconds since 1970 (UTC), and whether it came without a zone.

    Args:
        value: text, a number or a `datetime`.
        zone: of times that name none.

    Raises:
        RowError: not a time, or one before the year 2000.
    """
    naive = False
    if isinstance(value, bool) or value is None:
        raise WrongType("timestamp: text or a number is wanted")
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.match(text):
            micros = _from_number(float(text) if "." in text else int(text))
        else:
            micros, naive = _from_datetime(_from_text(text), zone)
    elif isinstance(value, int | float):
        micros = _from_number(value)
    elif isinstance(value, datetime):
        micros, naive = _from_datetime(value, zone)
    elif isinstance(value, date):
        micros, naive = _from_datetime(datetime(value.year, value.month, value.day), zone)
    elif isinstance(value, Opaque):
        raise WrongType(f"timestamp: a time is wanted, not {value.kind}")
    else:
        raise WrongType("timestamp: text or a number is wanted")
    if micros < _EARLIEST_US:
        raise RowError("timestamp: before the year 2000, the clock was not set")
    if micros >= _LATEST_US:
        raise RowError("timestamp: outside the calendar")
    return micros, naive


def day_of(time_us: int) -> date:
    """The UTC day of a time in microseconds since 1970."""
    return date.fromordinal(719_163 + time_us // _DAY_US)


def day_number(day: date) -> int:
    """Days since 1970-01-01."""
    return day.toordinal() - 719_163


def iso_day(number: int) -> str:
    """ISO date of a day number."""
    return date.fromordinal(719_163 + number).isoformat()


def last_days(day: str, n: int) -> list[str]:
    """The `n` ISO days that end with `day`, ascending: every window of days is counted here."""
    last = date.fromisoformat(day)
    return [(last - timedelta(days=ago)).isoformat() for ago in reversed(range(n))]


def _from_text(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    named = _ZONE_NAME.sub("+00:00", text)
    if named.endswith(("z", "Z")):
        named = named[:-1] + "+00:00"
    try:
        return datetime.fromisoformat(named)
    except ValueError:
        raise RowError("timestamp: neither ISO 8601 nor an epoch number") from None


def _from_datetime(moment: datetime, zone: tzinfo) -> tuple[int, bool]:
    naive = moment.tzinfo is None
    if naive:
        moment = moment.replace(tzinfo=zone)
    try:
        return (moment - _EPOCH) // _MICROSECOND, naive
    except OverflowError:
        raise RowError("timestamp: outside the calendar") from None


def _from_number(value: int | float) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise RowError("timestamp: not a finite number")
    for limit, factor in _UNITS:
        if abs(value) < limit:
            return round(value * factor)
    if abs(value) < 1e19:
        return int(value) // 1000
    raise RowError("timestamp: too large for an epoch number")
