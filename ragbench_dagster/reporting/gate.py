"""gate[D]: pass, fail or inconclusive, by the definitions of design 11.

fail: some test shows a loss (Holm-adjusted one-sided p <= .05 over the tests run tonight) and its estimate is
at or beyond the limit. pass: no fail, no guard closed, and every primary test's own 95 % bound clears its
limit (intersection-union, Berger 1982: no adjustment is needed, and the false pass rate stays at 2.5 %).
inconclusive: the rest, with what would resolve it.
"""

from __future__ import annotations

from typing import Any

from ragbench_dagster.calibration.rows import read_calibration
from ragbench_dagster.calibration.stats.multiple import holm
from ragbench_dagster.calibration.stats.power import (
    detectable_below,
    detectable_loss,
    pairs_to_pass,
    rows_to_clear,
)
from ragbench_dagster.reporting.baseline import gate_systems
from ragbench_dagster.reporting.correct import correctors
from ragbench_dagster.reporting.gate_guards import NEVER_PASS, as_rows, examples_of, guards, lines
from ragbench_dagster.reporting.gate_rows import Closed, GateResult, Test, Verdict
from ragbench_dagster.reporting.gate_tests import LATENCY, Builder
from ragbench_dagster.reporting.gate_words import not_clear, plain, shown
from ragbench_dagster.reporting.latency import provable_excess
from ragbench_dagster.reporting.night import Night
from ragbench_dagster.store import Workspace, finite, write_json

LEVEL = 0.05


def decide(ws: Workspace, day: str) -> GateResult:
    """Decide the night `day` from what is in the store; writes gate.json.

    Raises:
        UserError: no such night.
    """
    night = Night.open(ws, day)
    closed = guards(night)
    systems = [name for name in gate_systems(night) if name in night.systems]
    tests: list[Test] = []
    if not any(c.blocks_tests and c.system is None and c.metric is None for c in closed):
        builder = Builder(night, correctors(night, read_calibration(ws)))
        for metric, threshold in ws.settings.thresholds.items():
            own = [test for system in systems for test in builder.tests(system, metric, threshold)]
            if not own:
                closed.append(Closed("no system has an answer that it applies to", "missing", metric=metric))
            tests += own
    result = judge_tests(tests, closed, ws.settings.judged_metrics, examples_of(night))
    facts = {
        "day": day,
        "release": night.manifest["release"],
        "sample": night.manifest.get("sample"),
        "verdict": result.verdict,
        "exit_code": result.exit_code,
        "reasons": result.reasons,
        "notes": result.notes,
        "closed": result.closed,
        "tests": result.tests,
        "rows": result.rows,
    }
    write_json(night.folder / "gate.json", finite(facts))
    return result


def judge_tests(tests: list[Test], closed: list[Closed], judged: list[str], examples: int = 0) -> GateResult:
    """The verdict of tests and guards: pure, so that simulations can ask it.

    Args:
        tests: as built; their `p_adjusted`, `verdict`, `detectable` and `needed` are filled in here.
        closed: closed guards.
        judged: judge metrics of the settings; some closed guards bar them even without a threshold.
        examples: examples of the night, for the wording.
    """
    for test in tests:
        shut = next((c for c in closed if c.blocks_tests and c.covers(test)), None)
        if shut is not None:
            test.p = test.clears = None
            test.reason = shut.line
    _adjust([t for t in tests if t.run and t.severity == "fail"])
    _adjust([t for t in tests if t.run and t.severity == "warn"])
    run = {severity: sum(1 for t in tests if t.run and t.severity == severity) for severity in ("fail", "warn")}
    for test in tests:
        test.verdict = _verdict(test)
        _power(test, run[test.severity])
    failed = [t for t in tests if t.verdict == "fail" and t.severity == "fail"]
    primary = [t for t in tests if t.primary]
    barring = _barring(closed, tests, judged)
    verdict: Verdict = "inconclusive"
    if failed:
        verdict = "fail"
    elif primary and not barring and all(t.verdict == "pass" for t in primary):
        verdict = "pass"
    reasons = _reasons(verdict, tests, failed, primary, barring)
    notes = [f"warning: {shown(t)}" for t in tests if t.verdict == "fail" and t.severity == "warn"]
    notes += [f"{t.name()}: {t.reason}" for t in tests if t.kind == "margin" and t.reason and not t.primary]
    notes += lines([c for c in closed if c not in barring])
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    rows: list[dict[str, Any]] = [
        t.as_dict()
        for t in sorted(
            tests, key=lambda t: (order[t.verdict], not t.primary, t.p is None, t.p, t.system, t.metric, t.part)
        )
    ]
    said, told = [plain(r) for r in reasons], [plain(n) for n in notes]
    return GateResult(verdict, said, rows, as_rows(closed), run["fail"], told)


def _adjust(tests: list[Test]) -> None:
    for test, p in zip(tests, holm([t.p for t in tests if t.p is not None]), strict=True):
        test.p_adjusted = p


def _verdict(test: Test) -> Verdict:
    if not test.run:
        return "inconclusive"
    if test.p_adjusted is not None and test.p_adjusted <= LEVEL and test.at_limit:
        return "fail"
    return "pass" if test.clears else "inconclusive"


def _power(test: Test, tests: int) -> None:
    """The smallest shortfall or loss that would have failed, and the rows that would clear the limit."""
    if not test.run or test.n < 2 or test.value is None:
        return
    if test.kind == "margin":
        margin = -test.limit
        test.detectable = detectable_loss(test.n, tests, margin, test.discordance, test.spread)
        if test.verdict == "inconclusive" and test.value > test.limit:
            psi = test.discordance if test.discordance is not None else (test.spread or 0.0) ** 2
            test.needed = pairs_to_pass(margin + min(test.value, 0.0), psi)
    elif test.kind in ("floor", "ceiling"):
        floor, value = (test.limit, test.value) if test.kind == "floor" else (1 - test.limit, 1 - test.value)
        test.detectable = detectable_below(test.n, tests, floor, test.spread)
        if test.verdict == "inconclusive" and test.basis == "raw":
            test.needed = rows_to_clear(floor, value, test.spread)
    elif test.kind == "latency" and test.times is not None:
        found = LATENCY.fullmatch(test.metric)
        assert found is not None
        test.detectable = provable_excess(test.times, float(found[1]), LEVEL / max(tests, 1))
    elif test.kind == "cost":
        test.detectable = 0.0  # counted in full, not estimated


def _barring(closed: list[Closed], tests: list[Test], judged: list[str]) -> list[Closed]:
    """Guards that keep this gate from passing: those over a primary test, and a judge that went wrong."""
    primary = [t for t in tests if t.primary]

    def bars(guard: Closed) -> bool:
        if guard.metric is None or guard.kind == "missing" or any(guard.covers(t) for t in primary):
            return True
        return guard.kind in NEVER_PASS and guard.metric in judged

    return [guard for guard in closed if bars(guard)]


def _reasons(
    verdict: Verdict, tests: list[Test], failed: list[Test], primary: list[Test], barring: list[Closed]
) -> list[str]:
    if verdict == "fail":
        worst = sorted(failed, key=lambda t: (t.p_adjusted or 0.0, t.p or 0.0))
        return [shown(t) for t in worst] + lines(barring)
    if verdict == "pass":
        return [f"all {len(primary)} primary tests clear their limits"]
    reasons = lines(barring)
    if not primary and not any(c.blocks_tests and c.metric is None for c in barring):
        reasons.append("no primary test: set thresholds in ragbench.yaml, for example {faithfulness: {min: 0.9}}")
        reasons += [f"{t.name()}: {t.reason}" for t in tests if t.kind == "margin" and t.reason]
    covered = {c.line for c in barring}
    return reasons + [not_clear(t) for t in primary if t.verdict != "pass" and t.reason not in covered]
