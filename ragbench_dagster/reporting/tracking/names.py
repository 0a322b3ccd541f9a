"""Names that every tracker takes, and no two of ours alike.

MLflow refuses `@` and `&` in the name of a metric, cuts at 250 characters, and W&B documents letters, digits and
underscores only. So the parts of a name are spelled with `[A-Za-z0-9_]` and joined by `/`, which both show as
sections. The spelling depends on the name alone, never on which other names a night has: a chart over nights must
not break because a category appeared.

    faithfulness -> faithfulness      hit_rate@5 -> hit_rate_at_5      R&D -> R_D_<hash of "R&D">

A name that is plain already stays as it is, unless it could be mistaken for a spelled one; every other name ends in
a hash of itself. So two different names never meet (but for a collision of 8 hex digits).
"""

from __future__ import annotations

import re

from ragbench_dagster.store import digest

MAX_PART = 80  # characters; three parts stay far below MLflow's 250
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_AT_K = re.compile(r"([A-Za-z][A-Za-z0-9_]*)@([1-9][0-9]*)")
_SPELLED = re.compile(r".*_at_[0-9]+|.*_[0-9a-f]{8}")


def part(name: str) -> str:
    """One part of a tracker's name for a system, metric, category or parameter of ours."""
    if len(name) <= MAX_PART:
        if _PLAIN.fullmatch(name) and not _SPELLED.fullmatch(name):
            return name
        at_k = _AT_K.fullmatch(name)
        if at_k and not _SPELLED.fullmatch(at_k[1]):
            return f"{at_k[1]}_at_{at_k[2]}"
    readable = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[: MAX_PART - 10]
    if not readable or not readable[0].isalpha():
        readable = f"x_{readable}".rstrip("_")
    return f"{readable}_{digest(name, size=4)}"


def joined(*names: str) -> str:
    """The parts of a name, each spelled and joined by `/`."""
    return "/".join(part(name) for name in names)
