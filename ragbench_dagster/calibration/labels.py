"""How a human label or a judge's verdict is written: true, 1 and 1.0 are one value, false and 0 the other.

Null and missing are left out and counted. Any other text is an error that names the row: a label such as
"unsure" is never read as true.
"""

from __future__ import annotations

from typing import Any

from ragbench_dagster.errors import UserError

MISSING = object()
_LARGEST = 1e300


def lookup(row: Any, path: str) -> Any:
    """The value at a dotted path; in a path the longest existing key wins (`judge.gpt-4.1`).

    Returns:
        `MISSING` where the path leads nowhere.
    """
    if not isinstance(row, dict):
        return MISSING
    if path in row:
        return row[path]
    cut = len(path)
    while (cut := path.rfind(".", 0, cut)) > 0:
        if path[:cut] in row:
            found = lookup(row[path[:cut]], path[cut + 1 :])
            if found is not MISSING:
                return found
    return MISSING


def number(value: Any, where: str) -> float | None:
    """A label, verdict or score as a finite number; None where it is null or missing.

    Raises:
        UserError: text, a list, NaN or infinity; the line names `where` and never echoes the value.
    """
    if value is None or value is MISSING:
        return None
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        if abs(value) <= _LARGEST:  # neither NaN, nor infinite, nor an integer beyond every float
            return float(value)
        raise UserError(f"{where} is not a finite number; write 0, 1 or null")
    kind = "text" if isinstance(value, str) else f"a {type(value).__name__}"
    raise UserError(f"{where} is {kind}; write 0 or 1 (true and false are understood), null for unsure")


def binary(value: Any, where: str) -> int | None:
    """A human label as 0 or 1; None where it is null or missing.

    Raises:
        UserError: anything but 0, 1, true, false, null.
    """
    found = number(value, where)
    if found is None:
        return None
    if found not in (0.0, 1.0):
        raise UserError(f"{where} is {found:g}; a human label is 0 or 1, null for unsure")
    return int(found)
