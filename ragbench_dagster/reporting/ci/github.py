"""The gate in GitHub Actions: at most ten annotations, and a step summary below the size limit.

The runner obeys lines that begin with `::` in any output, drops a job summary over 1 MiB whole (close to it
even silently), and shows ten annotations of a kind. Untrusted text is therefore escaped twice over: it never
begins a line, and the annotation's data and properties are percent-encoded as the runner expects.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.ci.junit import junit
from ragbench_dagster.reporting.failures import failing_cases
from ragbench_dagster.reporting.gate.tests import GateResult
from ragbench_dagster.reporting.gate.wording import plain
from ragbench_dagster.results import GateRow
from ragbench_dagster.store import Workspace, dumps
from ragbench_dagster.text.format import decimal, safe_terminal

MOST_BYTES = 900_000  # of the summary file, what other commands of the step wrote included
MOST_ANNOTATIONS = 10
MOST_CASES = 5_000
SHARE_OF_LINE = 4_000  # bytes a table row may take


def data(text: str) -> str:
    """An annotation's message, escaped as the runner decodes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def prop(text: str) -> str:
    """An annotation's property, escaped as the runner decodes it."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def github(ws: Workspace, day: str, result: GateResult) -> str:
    """Annotations and the gate's lines for the log; the step summary goes to GITHUB_STEP_SUMMARY.

    Raises:
        UserError: the summary file cannot be written.
    """
    lines = [f"Gate {day}: {result.verdict.upper()}"]
    lines += [f"  - {plain(reason)}" for reason in result.reasons]
    if result.verdict != "pass":
        title = prop(f"Ragbench {day}: {result.verdict}")
        kind = "error" if result.verdict == "fail" else "warning"
        reasons = [plain(r) for r in result.reasons] or [result.verdict]
        if len(reasons) > MOST_ANNOTATIONS:
            rest = len(reasons) - MOST_ANNOTATIONS + 1
            reasons = [*reasons[: MOST_ANNOTATIONS - 1], f"{rest} more reasons: see the step summary"]
        lines += [f"::{kind} title={title}::{data(reason)}" for reason in reasons]
    if named := os.environ.get("GITHUB_STEP_SUMMARY"):
        write_summary(Path(named), ws, day, result)
    return "\n".join(lines)


def write_summary(path: Path, ws: Workspace, day: str, result: GateResult) -> None:
    """Append the summary to `path`, so that the whole file stays below 900,000 bytes."""
    try:
        there = path.stat().st_size if path.exists() else 0
        text = step_summary(ws, day, result, MOST_BYTES - there)
        if text:
            with path.open("a", encoding="utf-8", errors="replace", newline="\n") as file:
                file.write(text)
    except OSError as fault:
        raise UserError(f"GITHUB_STEP_SUMMARY {path}: cannot be written ({fault.strerror})") from fault


def step_summary(ws: Workspace, day: str, result: GateResult, room: int) -> str:
    """Markdown of at most `room` bytes (UTF-8): verdict, tests, failing cases, worst first.

    Says what was left out and where the rest is; empty where not even the verdict fits.
    """
    head = f"\n## Ragbench {day}: {result.verdict.upper()}\n\n"
    head += "".join(f"- {cell(reason)}\n" for reason in result.reasons[:50])
    head += "".join(f"- {cell(note)}\n" for note in result.notes[:20])
    tests = _tests(result.rows)
    cases = failing_cases(ws, day, limit=MOST_CASES)
    title = "\n### Failing cases, worst first\n\n| system | metric | category | score | question | why | example |\n"
    title += "|---|---|---|---|---|---|---|\n"
    rows = [
        "| "
        + " | ".join(
            cell(case[k]) for k in ("system", "metric", "category", "score", "query", "feedback", "example_id")
        )
        + " |\n"
        for case in cases
    ]
    end = "\n{left} more failing cases are left out here; all of them: `ragbench failures --date " + day + "`\n"
    return fit([head, *tests], title, rows, end, room)


def _tests(rows: list[GateRow]) -> list[str]:
    if not rows:
        return []
    lines = [
        "\n### Tests\n\n| verdict | system | metric | part | kind | value | 95 % | limit | n | smallest detectable |\n"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|\n")
    for row in rows[:200]:
        band = f"{cell(row.low)} to {cell(row.high)}"
        cells = [row.verdict, row.system, row.metric, row.part, row.kind, row.value]
        tail = [row.limit, row.n, row.detectable]
        lines.append("| " + " | ".join([*map(cell, cells), band, *map(cell, tail)]) + " |\n")
    if len(rows) > 200:
        lines.append(f"\n{len(rows) - 200} more tests are in gate.json.\n")
    return lines


def fit(head: list[str], title: str, rows: list[str], end: str, room: int) -> str:
    """Head lines, then as many rows as fit with the closing line that counts the rest."""
    kept, size = [], 0

    def add(text: str, reserve: int) -> bool:
        nonlocal size
        length = len(text.encode("utf-8", "replace"))
        if size + length + reserve > room:
            return False
        kept.append(text)
        size += length
        return True

    reserve = len(end.encode()) + 12
    if not all(add(text, reserve) for text in head):
        left = "\nThe rest does not fit here: `ragbench gate` prints it.\n"
        add(left, 0)
        return "".join(kept)
    if not rows:
        return "".join(kept)
    done = 0
    if add(title, reserve):
        for row in rows:
            if not add(row, reserve):
                break
            done += 1
    if done < len(rows):
        add(end.format(left=f"{len(rows) - done:,}"), 0)
    return "".join(kept)


_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~@:-])")


def cell(value: Any) -> str:
    """A value as one Markdown cell that cannot act: no markup, no link, no mention, no line break."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return decimal(value)
    if isinstance(value, int):
        return f"{value:,}"
    flat = " ".join(safe_terminal(str(value)).split())
    raw = flat.encode("utf-8", "replace")
    if len(raw) > SHARE_OF_LINE:
        flat = raw[:SHARE_OF_LINE].decode("utf-8", "ignore") + " [cut]"
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", flat)


# The gate's word for people and for CI: `ragbench gate --format text|json|junit|github`.
#
# Everything under judgement is untrusted: a question must not be able to act as a workflow command, break the
# XML, or push the report out of the size limit.

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
