"""The gate in CI: no question acts as a command, no report is dropped for its size, no XML breaks."""

import json
import re
import unicodedata
from xml.etree import ElementTree

import numpy as np
import pytest

from ragbench_dagster.reporting.ci.github import FORMATS, cell, data, prop, render_gate, step_summary
from ragbench_dagster.reporting.failures import failing_cases
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.gate.tests import GateResult

HOSTILE = [
    "\n::add-mask::gate",
    "::error file=x,line=1::all is well%0Apass",
    "\r##[error]fake failure in step",
    "::stop-commands::zz9",
    "\u202e::warning::reversed\u2028::error::second line",
    "<script>alert(1)</script> | [link](https://example.com) `code` @team #1",
    "nul \x00 escape \x1b[31m bell \x07",
    "]]> &amp; \ufffe lone",
]


@pytest.fixture
def hostile(maker):
    """A failing night whose categories, feedback and questions are commands."""
    n = 240
    made = maker(
        "metrics: [faithfulness, 'hit_rate@5']\nthresholds: {'hit_rate@5': {min: 0.9, slices: {'::error::x': 0.9}}}\n",
        n=n,
        categories=["::error::x", "##[group]y", "plain"],
    )
    release = made.make_release("2026-11-17", query=[f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)])
    day = made.night({"s": {"hit_rate@5": np.zeros(n), "faithfulness": np.zeros(n)}}, release=release)
    made.calibrated(["faithfulness"])
    return made, day, decide(made.ws, day)


def commands(text):
    return [line for line in re.split(r"[\r\n\u2028\u2029\x0b\x0c\x85]", text) if line.lstrip().startswith("::")]


@pytest.mark.parametrize("form", FORMATS)
def test_no_output_line_is_a_command_but_our_own(hostile, form):
    made, day, result = hostile
    text = render_gate(made.ws, day, result, form)
    own = commands(text)
    assert "##[" not in text
    if form == "github":
        assert 1 <= len(own) <= 10
        assert all(re.fullmatch(r"::error title=[^:,\r\n]*::[^\r\n]*", line) for line in own)
    else:
        assert own == []


def test_failing_cases_are_one_harmless_line_each(hostile):
    made, day, _ = hostile
    for case in failing_cases(made.ws, day, limit=50):
        for value in case.values():
            if isinstance(value, str):
                assert commands(value) == []
                assert "##[" not in value
                assert not {unicodedata.category(c) for c in value} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_annotations_are_at_most_ten_and_say_how_many_more(maker):
    made = maker("metrics: ['hit_rate@5']\n", n=10)
    day = made.night({"s": {"hit_rate@5": [1.0] * 10}})
    result = GateResult("fail", [f"reason {i}" for i in range(40)], [])
    own = commands(render_gate(made.ws, day, result, "github"))
    assert len(own) == 10
    assert own[-1].endswith("31 more reasons: see the step summary")


def test_annotation_escapes():
    assert data("100%\r\nnext") == "100%25%0D%0Anext"
    assert prop("a:b,c%") == "a%3Ab%2Cc%25"


def test_three_thousand_failing_questions_stay_below_the_limit_in_bytes(maker, tmp_path, monkeypatch):
    """Field case ci-step-summary-limit: 2 kB each in a script of three bytes a character."""
    n = 3000
    made = maker("metrics: ['hit_rate@5']\nthresholds: {'hit_rate@5': {min: 0.5}}\n", n=n)
    release = made.make_release("2026-11-17", query=[f"第{i}問 " + "質" * 700 for i in range(n)])
    day = made.night({"s": {"hit_rate@5": np.zeros(n)}}, release=release)
    result = decide(made.ws, day)
    path = tmp_path / "summary.md"
    path.write_text("what an earlier command of the step wrote\n" * 1000, encoding="utf-8")
    there = path.stat().st_size
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    render_gate(made.ws, day, result, "github")
    written = path.read_bytes()
    assert there + 500_000 < len(written) < 900_000
    text = written.decode("utf-8")
    left = re.search(r"([\d,]+) more failing cases are left out here; all of them: `ragbench failures", text)
    shown = text.count("\n| s | hit")
    assert int(left[1].replace(",", "")) + shown == n
    assert text.index("FAIL") < text.index("### Tests") < text.index("### Failing cases")


@pytest.mark.parametrize("room", [0, 50, 300, 2_000, 10_000])
def test_however_little_room_there_is_it_is_never_overrun(hostile, room):
    made, day, result = hostile
    assert len(step_summary(made.ws, day, result, room).encode("utf-8")) <= room


def test_a_second_command_of_the_step_appends(hostile, tmp_path, monkeypatch):
    made, day, result = hostile
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    render_gate(made.ws, day, result, "github")
    once = path.stat().st_size
    render_gate(made.ws, day, result, "github")
    assert path.stat().st_size == 2 * once


def test_summary_cells_hold_no_markup(hostile):
    made, day, result = hostile
    text = step_summary(made.ws, day, result, 900_000)
    assert "<script" not in text
    for row in [line for line in text.split("\n") if line.startswith("| s |")]:
        assert len(re.findall(r"(?<!\\)\|", row)) == 8
    assert cell("[a](b) `c` <d> @e\n::error::") == r"\[a\]\(b\) \`c\` &lt;d&gt; \@e \:\:error\:\:"


def test_junit_is_xml_and_counts_what_it_holds(hostile):
    made, day, result = hostile
    suite = ElementTree.fromstring(render_gate(made.ws, day, result, "junit").encode("utf-8"))
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) >= 2
    assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))


def test_junit_survives_every_character():
    everything = "".join(map(chr, [*range(0x100), 0x2028, 0x202E, 0xD800, 0xFFFE, 0xFFFF, 0x1F600]))
    from ragbench_dagster.reporting.ci.junit import junit

    result = GateResult("fail", [everything], [])
    ElementTree.fromstring(junit("2026-11-20", result).encode("utf-8"))


def test_json_is_strict_and_keeps_the_names_as_they_are(hostile):
    made, day, result = hostile
    found = json.loads(render_gate(made.ws, day, result, "json"), parse_constant=pytest.fail)
    assert (found["verdict"], found["exit_code"]) == ("fail", 1)
    assert "::error::x" in {row["part"] for row in found["rows"]}


def test_text_is_the_verdict_and_its_reasons(hostile):
    made, day, result = hostile
    lines = render_gate(made.ws, day, result, "text").split("\n")
    assert lines[0] == "Gate 2026-11-20: FAIL"
    assert all(line.startswith(("  - ", "  (")) for line in lines[1:])
