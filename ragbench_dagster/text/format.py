"""Untrusted text made harmless for a terminal and a CI log."""

from __future__ import annotations

import math
import re
import sys
import unicodedata

# Runners obey lines that begin with `::` and any `##[`; both are broken with a zero-cost, visible mark.
_COMMAND = re.compile(r"(?m)^(\s*)::")
_GROUP = re.compile(r"##\[")
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def safe_terminal(text: str) -> str:
    """`text` without control, format and bidirectional characters, and without workflow commands.

    Every such character (line breaks included) becomes a space, so one value stays one line.
    """
    if text.isascii() and text.isprintable() and "::" not in text and "##[" not in text:
        return text
    flat = "".join(" " if unicodedata.category(c) in _UNSAFE else c for c in text)
    return _GROUP.sub("## [", _COMMAND.sub(r"\1: :", flat))


def notice(line: str) -> None:
    """One line for a person, on stderr, at once: also where that is no terminal."""
    print(safe_terminal(line), file=sys.stderr, flush=True)


# Numbers for people: decimals, percent, points and p-values that never round into another statement.
#
# 0 stands for zero alone and 1 for one: a share of .9996 is not "1.000", and a p of 1e-9 is not "0".

_SAME = 1e-12  # nearer than this two numbers are one: what is left is the rounding of floats


def decimal(value: float, places: int = 3, signed: bool = False) -> str:
    """`value` to `places`; with more digits where rounding would make a 0 or a 1 of what is neither.

    >>> decimal(0.84), decimal(0.00042), decimal(0.99996), decimal(0.0)
    ('0.840', '0.0004', '0.99996', '0.000')
    """
    sign = "+" if signed else ""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "minus infinite" if value < 0 else "unknown"
    for whole in (0.0, 1.0, -1.0):
        if math.isclose(value, whole, rel_tol=0, abs_tol=_SAME):
            return f"{abs(whole) if whole == 0 else whole:{sign if whole else ''}.{places}f}"
    for digits in range(places, 13):
        text = f"{value:{sign}.{digits}f}"
        if float(text) not in (0.0, 1.0, -1.0):
            return text
    return text


def percent(share: float) -> str:
    """A share in percent, one decimal at most: `84 %`, `20.3 %`; never 0 or 100 where it is neither."""
    return _trimmed(share * 100, (0.0, 100.0)) + " %"


def percent_below(share: float, limit: float) -> str:
    """A share that lies below `limit`, in percent, written so that it does not read as `limit`."""
    for digits in range(1, 10):
        cut = math.floor(share * 100 * 10**digits) / 10**digits
        if cut < limit * 100 and share >= cut / 100:
            return f"{cut:.{digits}f}".rstrip("0").rstrip(".") + " %"
    return percent(share)


def points(change: float, signed: bool = False) -> str:
    """A change of a share in percentage points: `12`, `1.4`, `-0.02`; 0 where nothing changed, only there."""
    text = _trimmed(change * 100, (0.0,))
    return f"+{text}" if signed and change > 0 else text


def p_value(p: float) -> str:
    """A p-value: two significant digits, `<0.0001` below that."""
    return "<0.0001" if p < 1e-4 else f"{p:.2g}" if p < 0.995 or p == 1 else ">0.99"


def _trimmed(value: float, exact: tuple[float, ...]) -> str:
    """One decimal, without a trailing zero; more where rounding would hit one of `exact`."""
    if not math.isfinite(value):
        return "unknown"
    for digits in range(1, 12):
        rounded = round(value, digits)
        if rounded not in exact or math.isclose(value, rounded, rel_tol=0, abs_tol=_SAME):
            text = f"{rounded:.{digits}f}".rstrip("0").rstrip(".")
            return "0" if text in ("-0", "") else text
    return f"{value:.1e}"
