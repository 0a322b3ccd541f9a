"""The gate's reasons in words, one line each. Names come from settings and scrubbed data, never questions."""

from __future__ import annotations

from ragbench_dagster.calibration.stats.power import promised_power
from ragbench_dagster.reporting.gate_rows import Test
from ragbench_dagster.text import safe_terminal


def plain(line: str) -> str:
    """One harmless line."""
    return " ".join(safe_terminal(line).split())


def number(value: float | None, kind: str) -> str:
    if value is None:
        return "unknown"
    if kind == "latency":
        return f"{value:,.0f} ms"
    if kind == "cost":
        return f"{value:.4f} USD"
    return f"{value:.3f}"


def interval(test: Test) -> str:
    if test.kind == "cost":
        return ""
    low, high = (number(v, test.kind) for v in (test.low, test.high))
    return f" [{low}, {high}]"


def limit(test: Test) -> str:
    shown_limit = number(abs(test.limit), test.kind)
    return {
        "floor": f"the floor is {shown_limit}",
        "margin": f"a loss of {shown_limit} against {test.baseline or 'the baseline'} is acceptable",
    }.get(test.kind, f"the limit is {shown_limit}")


def figure(test: Test) -> str:
    """`logged faithfulness 0.913 [0.880, 0.938] on 412`."""
    what = "changed by " if test.kind == "margin" else ""
    value = f"{test.value:+.3f}" if test.kind == "margin" and test.value is not None else number(test.value, test.kind)
    basis = {
        "calibration": ", corrected for the judge's errors",
        "labels": ", from people's labels on tonight's answers",
        "humans_only": ", people's labels alone",
    }.get(test.basis, "")
    return f"{test.name()} {what}{value}{interval(test)} on {test.n:,}{basis}"


def shown(test: Test) -> str:
    """A failed test."""
    p = "" if test.p_adjusted is None or test.kind == "cost" else f" (adjusted p {test.p_adjusted:.2g})"
    return f"{figure(test)}: {limit(test)}{p}"


def not_clear(test: Test) -> str:
    """A primary test that did not clear its limit, with what would resolve it."""
    if not test.run:
        return f"{test.name()}: {test.reason}"
    line = f"{figure(test)} does not clear it: {limit(test)}"
    if test.needed and test.needed > test.n:
        line += f"; about {test.needed:,} examples would show it"
    elif test.needed is None and test.basis in ("calibration", "labels"):
        line += "; more human labels would narrow it"
    if test.detectable is not None and test.kind == "latency":
        line += f"; an excess of {number(test.detectable, test.kind)} would have been proven"
    elif test.detectable is not None:
        what = {"margin": "loss", "floor": "shortfall"}.get(test.kind, "excess")
        often = "3 of 4 nights" if promised_power(test.n) >= 0.75 else "7 of 10 nights"
        line += f"; the smallest {what} this many would have shown in {often} is {number(test.detectable, test.kind)}"
    return line
