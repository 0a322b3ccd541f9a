"""The gate as JUnit XML: one test case a row; inconclusive rows are skipped with their reason."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ragbench_dagster.reporting.gate.tests import GateResult
from ragbench_dagster.results import GateRow

# XML 1.0 forbids these even as references; \ufffe, \uffff and lone surrogates too.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INVISIBLE = re.compile("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2028\u2029\x7f-\x9f]")


def xml_text(text: str) -> str:
    """`text` without characters that XML forbids or that change how a line reads."""
    return _INVISIBLE.sub(" ", _FORBIDDEN.sub("\ufffd", text))


def junit(day: str, result: GateResult) -> str:
    """The document as text, with an XML declaration."""
    rows = [row for row in result.rows if row.severity == "fail"]
    failed = [row for row in rows if row.verdict == "fail"]
    skipped = [row for row in rows if row.verdict == "inconclusive" and not row.primary]
    undecided = [row for row in rows if row.verdict == "inconclusive" and row.primary]
    gate_error = result.verdict == "inconclusive"
    suite = ElementTree.Element(
        "testsuite",
        name=f"ragbench gate {day}",
        tests=str(len(rows) + 1),
        failures=str(len(failed) + (result.verdict == "fail")),
        errors=str(len(undecided) + gate_error),
        skipped=str(len(skipped)),
    )
    gate = ElementTree.SubElement(suite, "testcase", classname="ragbench", name="gate")
    message = xml_text("; ".join(result.reasons))[:4000]
    if result.verdict == "fail":
        ElementTree.SubElement(gate, "failure", message=message)
    elif gate_error:
        ElementTree.SubElement(gate, "error", message="inconclusive: " + message)
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=xml_text(f"ragbench.{row.system}"), name=_name(row))
        said = xml_text(_said(row))
        if row.verdict == "fail":
            ElementTree.SubElement(case, "failure", message=said)
        elif row.verdict == "inconclusive":
            ElementTree.SubElement(case, "error" if row.primary else "skipped", message=said)
    ElementTree.indent(suite)
    body = ElementTree.tostring(suite, encoding="unicode")
    body = body.replace("##[", "##&#91;")  # a runner obeys `##[` anywhere in a line
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'


def _name(row: GateRow) -> str:
    part = "" if row.part == "overall" else f" [{row.part}]"
    return xml_text(f"{row.metric}{part} {row.kind}")


def _said(row: GateRow) -> str:
    if row.reason:
        return f"not tested: {row.reason}"
    figures = ", ".join(
        f"{k} {v:.4g}"
        for k in ("value", "low", "high", "limit", "p_adjusted", "detectable")
        if (v := getattr(row, k)) is not None
    )
    return f"{figures}, n {row.n}"
