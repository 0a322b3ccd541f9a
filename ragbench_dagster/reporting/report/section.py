"""The sections of a night's page, in its order. What stands in them belongs to `compose`, their HTML to `templates/`.

A new section is a file with a function from the night to a table, and one line here; it is drawn by the macro `plain`.
One that is drawn otherwise names a macro of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.report.page_data import Table


@dataclass(frozen=True, slots=True)
class Section:
    """One section.

    Args:
        title: in the page's navigation, and as the heading of a plain section.
        note: one sentence on what it shows; a plain section begins with it.
        macro: draws the section: `(night, section id)` of a plain one, else `(night)`.
        template: where the macro stands, in `templates/`.
        table: a plain section's content.
    """

    title: str
    note: str
    macro: str = "plain"
    template: str = "sections.html.j2"
    table: Callable[[Night], Table] | None = None


SECTIONS: dict[str, Section] = {
    "metrics": Section("Metrics", "Every metric of every system, with intervals and limits.", "metrics"),
    "trend": Section("Trend", "Figures of the last nights, and what changed between them.", "trend"),
    "slices": Section("Slices", "Parts of the questions by the questions lost there.", "slices"),
    "cases": Section("Worst questions", "Answers that fail, with every verdict on them.", "section", "cases.html.j2"),
    "judge": Section("Judge", "How well the judge agrees with people.", "judge"),
    "latency": Section("Latency and cost", "The systems' own times, and what judging cost.", "latency"),
    "change": Section("Change", "Where a change since the baseline comes from.", "change"),
    "leaderboard": Section("Leaderboard", "Systems in their order on each metric, and pairs of them.", "leaderboard"),
    "gate": Section("Gate", "Every test of the gate.", "gate"),
    "conditions": Section(
        "Conditions", "What the night was made under, and the command that repeats it.", "conditions"
    ),
}
