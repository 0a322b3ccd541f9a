"""How long a provider asks us to wait, in every spelling that providers use.

Headers (`Retry-After` in seconds or as a date, `retry-after-ms`, `x-ratelimit-reset-*` as `6m0s`, epoch numbers in
seconds or milliseconds, RFC 3339), fields of the body (Google's RetryInfo, OpenRouter's metadata) and prose ("Please
try again in 1.2s"). What is done with a wait belongs in `retry.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_UNITS = {
    "ms": 0.001, "msec": 0.001, "msecs": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400,
}  # fmt: skip
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_PART = rf"(?P<n>\d+(?:\.\d+)?)\s*(?P<u>{_UNIT})(?![a-zA-Z])"
# Compact forms run on without a space: 6m0s, 1h2m3.5s.
_RUN = rf"\d+(?:\.\d+)?\s*(?:{_UNIT})(?![a-zA-Z])(?:(?:\s*,?\s*(?:and\s+)?)\d+(?:\.\d+)?\s*(?:{_UNIT})(?![a-zA-Z]))*"
_DURATION = re.compile(rf"\s*(?:{_RUN})\s*", re.IGNORECASE)
_PARTS = re.compile(_PART, re.IGNORECASE)
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_CUE = r"(?:try again|retry(?:ing)?|retry[- ]?after|retry[- ]?delay|available again|resets?|wait(?:ing)?|come back)"
_PROSE = re.compile(rf"\b{_CUE}\b[^.;\n\d]{{0,40}}({_RUN})", re.IGNORECASE)
_PROSE_DATE = re.compile(rf"\b{_CUE}\b[^.;\n\d]{{0,40}}({_ISO})", re.IGNORECASE)
_PROSE_BARE = re.compile(r"\bretry[-_ ]?after\b[\"']?\s*(?:is|[:=])?\s*[\"']?(\d+(?:\.\d+)?)\b", re.IGNORECASE)
_RESETS = (
    "x-ratelimit-reset", "x-rate-limit-reset", "ratelimit-reset", "x-ratelimit-reset-after", "retry-at",
)  # fmt: skip
_PAIRS = (  # (reset, remaining): the reset that counts is of the limit that is used up
    ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("anthropic-ratelimit-requests-reset", "anthropic-ratelimit-requests-remaining"),
    ("anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-tokens-remaining"),
    ("anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-input-tokens-remaining"),
    ("anthropic-ratelimit-output-tokens-reset", "anthropic-ratelimit-output-tokens-remaining"),
)
_FIELDS = {  # names in a body -> factor to seconds
    "retry_after": 1, "retry-after": 1, "retryafter": 1, "retry_after_seconds": 1, "retryafterseconds": 1,
    "retry_after_ms": 0.001, "retryafterms": 0.001, "retry_after_milliseconds": 0.001,
    "retrydelay": 1, "retry_delay": 1, "reset_in": 1, "wait_seconds": 1,
}  # fmt: skip


def wait_of(headers: Mapping[str, str], body: Any, now: float) -> float | None:
    """Seconds to wait before the next attempt; None where nothing says so.

    Args:
        headers: of the answer, names in any case.
        body: its decoded JSON, or text.
        now: seconds since 1970, for dates; the answer's own `Date` header, where there is one, is used instead.
    """
    try:
        found = _wait_of(headers, body, now)
    except Exception:  # dates and numbers of any size: what cannot be read says nothing
        return None
    return None if found is None or math.isnan(found) else found


def _wait_of(headers: Mapping[str, str], body: Any, now: float) -> float | None:
    lower = {str(k).lower(): str(v) for k, v in headers.items()}
    now = _moment(lower.get("date", "")) or now
    found = _explicit(lower, now)
    if found is None:
        found = _in_body(body, now)
    if found is None:
        found = in_prose(body if isinstance(body, str) else _message(body), now)
    return _resets(lower, now) if found is None else found


def seconds(value: Any, now: float) -> float | None:
    """A wait in seconds from a number, a duration, an epoch number or a date; None where it is none.

    Epoch numbers are told by their size: above 1e11 milliseconds, above 1e9 seconds; else it is a duration.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        try:
            value = float(text)
        except ValueError:
            return duration(text) if _DURATION.fullmatch(text) else _until(text, now)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if value > 1e11:
        return max(0.0, value / 1000 - now)
    if value > 1e9:
        return max(0.0, value - now)
    return max(0.0, float(value))


def duration(text: str) -> float:
    """Seconds of `6m0s`, `250ms`, `1 hour and 3 minutes`."""
    return sum(float(m["n"]) * _UNITS[m["u"].lower()] for m in _PARTS.finditer(text))


def in_prose(text: str, now: float) -> float | None:
    """The wait that a message asks for."""
    text = text[:4000]
    if found := _PROSE.search(text):
        return duration(found[1])
    if found := _PROSE_DATE.search(text):
        return _until(found[1], now)
    if found := _PROSE_BARE.search(text):
        return seconds(found[1], now)
    return None


def _explicit(headers: Mapping[str, str], now: float) -> float | None:
    milliseconds = headers.get("retry-after-ms", "").strip()
    try:
        value = float(milliseconds) / 1000
        if math.isfinite(value) and value >= 0:
            return value
    except ValueError:
        pass
    return seconds(headers.get("retry-after"), now)


def _resets(headers: Mapping[str, str], now: float) -> float | None:
    """The reset of the limit that is used up; the longest where none says that it is."""
    used_up, all_resets = [], []
    for reset, remaining in _PAIRS:
        wait = seconds(headers.get(reset), now)
        if wait is not None:
            all_resets.append(wait)
            if headers.get(remaining, "").strip() in ("0", "0.0"):
                used_up.append(wait)
    for name in _RESETS:
        wait = seconds(headers.get(name), now)
        if wait is not None:
            all_resets.append(wait)
    return max(used_up or all_resets, default=None)


def _in_body(body: Any, now: float, depth: int = 0) -> float | None:
    """A field anywhere in the body that holds the wait; headers quoted in it count as headers."""
    if depth > 6:
        return None
    if isinstance(body, Mapping):
        for name, value in body.items():
            key = str(name).lower()
            if key in _FIELDS:
                wait = seconds(value, now)
                if wait is not None:
                    plain = isinstance(value, int | float) or str(value).strip().replace(".", "", 1).isdigit()
                    return wait * _FIELDS[key] if plain else wait
            if key == "headers" and isinstance(value, Mapping):
                quoted = {str(k).lower(): str(v) for k, v in value.items()}
                wait = _explicit(quoted, now)
                wait = _resets(quoted, now) if wait is None else wait
                if wait is not None:
                    return wait
        children: Any = body.values()
    elif isinstance(body, list):
        children = body
    else:
        return None
    for child in children:
        wait = _in_body(child, now, depth + 1)
        if wait is not None:
            return wait
    return None


def _message(body: Any) -> str:
    """The prose of an error body."""
    if isinstance(body, Mapping):
        error = body.get("error", body)
        if isinstance(error, str):
            return error
        if isinstance(error, Mapping):
            texts = [error.get("message"), error.get("detail"), body.get("message"), body.get("detail")]
            raw = error.get("metadata")
            texts.append(raw.get("raw") if isinstance(raw, Mapping) else None)
            return "\n".join(text for text in texts if isinstance(text, str))
    if isinstance(body, list) and body:
        return _message(body[0])
    return ""


def _until(text: str, now: float) -> float | None:
    moment = _moment(text)
    return None if moment is None else max(0.0, moment - now)


def _moment(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date or an ISO date; a date without a zone is UTC."""
    text = text.strip()
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
    except ValueError:
        try:
            found = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError):
            return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
