"""The gate's word for people and for CI: `ragbench gate --format text|json|junit|github`.

Everything under judgement is untrusted: a question must not be able to act as a workflow command, break the
XML, or push the report out of the size limit.
"""

from __future__ import annotations

from ragbench_dagster.reporting.ci_github import github
from ragbench_dagster.reporting.ci_junit import junit
from ragbench_dagster.reporting.gate_rows import GateResult
from ragbench_dagster.reporting.gate_words import plain
from ragbench_dagster.store import Workspace, dumps
from ragbench_dagster.text import safe_terminal

__all__ = ["FORMATS", "render_gate", "safe_terminal"]

FORMATS = ("text", "json", "junit", "github")


def render_gate(ws: Workspace, day: str, result: GateResult, form: str) -> str:
    """The gate in one of `FORMATS`, without a final line break.

    `github` also appends the step summary to the file that GITHUB_STEP_SUMMARY names.
    """
    if form == "json":
        # a runner obeys `##[` anywhere in a line; the escape is the same JSON
        return dumps(as_json(day, result)).replace("##[", "#\\u0023[")
    if form == "junit":
        return junit(day, result)
    if form == "github":
        return github(ws, day, result)
    return text(day, result)


def as_json(day: str, result: GateResult) -> dict[str, object]:
    return {
        "date": day,
        "verdict": result.verdict,
        "exit_code": result.exit_code,
        "reasons": result.reasons,
        "notes": result.notes,
        "closed": result.closed,
        "tests": result.tests,
        "rows": result.rows,
    }


def text(day: str, result: GateResult) -> str:
    lines = [f"Gate {day}: {result.verdict.upper()}"]
    lines += [f"  - {plain(reason)}" for reason in result.reasons]
    lines += [f"  ({plain(note)})" for note in result.notes]
    return "\n".join(lines)
