"""Was it the system's version or the night's hours? How its calls went, and whether its errors stand together in time.

A version that fails at some questions fails at them whenever they are asked, in an order (by hash) that is chance:
its errors are scattered, and asking again mends nothing. An outage fails calls in a row. It is a failure for users,
but says nothing about the version: the night is to be run again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ragbench_dagster.calibration.stats.bunching import BUNCHED, errors_bunched
from ragbench_dagster.number_words import percent
from ragbench_dagster.reporting.night import Night
from ragbench_dagster.store import read_json

MISSING = 0.02  # share of questions still without an answer up to which an outage decides nothing


@dataclass(frozen=True)
class Outage:
    """How the calls of a system went.

    Attributes:
        asked: questions.
        first_pass: share of them answered in the first pass.
        mended: questions that failed in it and were answered when asked again.
        missing: questions without an answer at the end.
        bunched_p: chance that as many errors of the first pass stand together as closely, were they scattered.
        outage: more than 2 % are missing, and the errors are bunched (p <= .001).
    """

    asked: int
    first_pass: float | None
    mended: int
    missing: int
    bunched_p: float
    outage: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def line(self) -> str:
        """In words; "" where every question was answered at once."""
        failed = self.mended + self.missing
        if not failed:
            return ""
        said = f"{failed:,} of {self.asked:,} questions failed when first asked"
        said += f"; {self.mended:,} were answered when asked again, {self.missing:,} were not"
        if self.outage:
            said += (
                ". The errors stand together in time, which looks like an outage of the system or of the network: "
                "run the night again"
            )
        return said


def outage_of(night: Night, system: str) -> Outage | None:
    """How the calls of `system` went that night; None for looked-up answers and nights of before it was noted."""
    found = read_json(night.ws.night(night.day, system) / "attempts.json")
    if found is None:
        return None
    errors = [bool(place % 2) for place, length in enumerate(found["order"]) for _ in range(length)]
    p = errors_bunched(errors).p
    missing = found["missing"] / found["asked"] if found["asked"] else 0.0
    return Outage(
        found["asked"], found["answered_first"], found["mended"], found["missing"], p,
        missing > MISSING and p <= BUNCHED,
    )  # fmt: skip


def answer_rows(systems: dict[str, Any]) -> list[list[Any]]:
    """Rows of a table: system, answered at first, mended, missing, bunched; of systems at which a question failed."""
    rows = []
    for name, system in systems.items():
        found = system.get("attempts")
        if found and found["mended"] + found["missing"]:
            bunched = (
                "an outage, as it looks" if found["outage"] else "together" if found["bunched_p"] <= BUNCHED else ""
            )
            rows.append([name, percent(found["first_pass"]), found["mended"], found["missing"], bunched or "scattered"])
    return rows
