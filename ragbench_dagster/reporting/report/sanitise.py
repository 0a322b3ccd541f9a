"""Untrusted text made fit to be read on a page, and numbers made fit to be compared.

Escaping is the templates' work (autoescape); this module only takes out what HTML cannot show or what would show
something else than is there.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

from ragbench_dagster.text.format import decimal

# Overrides and isolates reorder what follows them, on our page too: they are shown instead of obeyed.
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
DASH = "–"


def shown(value: Any, limit: int = 300) -> str:
    """Text of at most `limit` characters, without control and bidirectional characters (each is named instead).

    Line breaks stay. What was cut is counted.
    """
    if value is None:
        return ""
    text = str(value)
    cut = len(text) - limit
    # A cut that saves less than its own note is not worth a reader's doubt.
    if cut > 40:
        text = text[:limit]
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    text = _BIDI.sub(_named, text)
    text = _CONTROL.sub(_named, text)
    return f"{text} … [{cut:,} more characters]" if cut > 40 else text


def flat(value: Any, limit: int = 120) -> str:
    """The same on one line."""
    return " ".join(shown(value, limit).split())


def _named(match: re.Match[str]) -> str:
    return f"[U+{ord(match[0]):04X}]"


def letters(text: str) -> str:
    """Lower case without accents, for searching."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in plain if not unicodedata.combining(c))


def number(value: Any, digits: int = 3) -> str:
    """A number for a table; unknown is a dash, never 0."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if abs(value) >= 1000:
            return f"{value:,.0f}"
        return decimal(value, digits) if digits else f"{value:.0f}"
    return flat(value)


def signed(value: float | None, digits: int = 3) -> str:
    """A difference, with its sign (a real minus) even where it is small."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{0:.{digits}f}" if value == 0 else decimal(value, digits, signed=True).replace("-", "−")


def p_value(value: float | None) -> str:
    """A p-value; a tiny one is not 0."""
    if value is None or not math.isfinite(value):
        return DASH
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def percent(value: float | None) -> str:
    """A share; never rounded up to 100 % or down to 0 %."""
    if value is None or not math.isfinite(value):
        return DASH
    if 0 < value < 0.001 or 0.999 < value < 1:
        return "< 0.1 %" if value < 0.5 else "> 99.9 %"
    return f"{100 * value:.0f} %" if abs(100 * value - round(100 * value)) < 0.05 else f"{100 * value:.1f} %"


def milliseconds(value: float | None, limit: float | None = None) -> str:
    """A time with the unit that reads best; one beyond `limit` is infinite."""
    if value == math.inf and limit is not None:
        return f"over {milliseconds(limit)}"
    if value is None or not math.isfinite(value):
        return DASH
    if value >= 10_000:
        return f"{value / 1000:,.1f} s"
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.2f} ms"


def money(value: float | None) -> str:
    """US dollars; small sums keep their digits."""
    if value is None:
        return DASH
    return f"$ {value:,.2f}" if value >= 1 or value == 0 else f"$ {value:.5f}"
