"""gate[D]: pass, fail or inconclusive, by the definitions of design 11.

fail: some test shows a loss (Holm-adjusted one-sided p <= .05 over the tests run tonight) and its estimate is
at or beyond the limit. pass: no fail, no guard closed, and every primary test's own 95 % bound clears its
limit (intersection-union, Berger 1982: no adjustment is needed, and the false pass rate stays at 2.5 %).
inconclusive: the rest, with what would resolve it.
"""

from __future__ import annotations

import numpy as np

from ragbench_dagster.calibration.labelled_answers import read_calibration
from ragbench_dagster.metrics import metric_of
from ragbench_dagster.reporting.baselines import accept_first, accepted_name, gate_systems
from ragbench_dagster.reporting.gate.guards import NEVER_PASS, as_rows, examples_of, guards, lines
from ragbench_dagster.reporting.gate.production import is_production
from ragbench_dagster.reporting.gate.tests import Closed, GateResult, GateTest
from ragbench_dagster.reporting.gate.thresholds import Builder
from ragbench_dagster.reporting.gate.wording import (
    broken_line,
    broken_questions,
    not_clear,
    plain,
    shown,
    widened,
)
from ragbench_dagster.reporting.judge_correction import correctors
from ragbench_dagster.reporting.latency import provable_excess
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.results import BrokenHead, Decision, GateDecision
from ragbench_dagster.settings import Threshold
from ragbench_dagster.stats.power import (
    LEVEL,
    detectable_below,
    detectable_loss,
    fail_level,
    holm,
    pairs_to_pass,
    rows_to_clear,
)
from ragbench_dagster.store import Workspace
from ragbench_dagster.text.format import percent

OWN_SHARE = 0.2  # `answered` is tested at its own .01, outside Holm's family


def decide(ws: Workspace, day: str) -> GateResult:
    """Decide the night `day` from what is in the store; writes gate.json, and accepts the first night that passes.

    Raises:
        UserError: no such night.
    """
    night = Night.open(ws, day)
    closed = guards(night)
    systems = [name for name in gate_systems(night) if name in night.systems]
    tests: list[GateTest] = []
    broken: list[BrokenHead] = []
    if not any(c.blocks_tests and c.system is None and c.metric is None for c in closed):
        builder = Builder(night, correctors(night, read_calibration(ws)))
        for metric, threshold in ws.settings.gate_thresholds.items():
            own = [test for system in systems for test in builder.tests(system, metric, threshold)]
            if not own and metric in ws.settings.thresholds:
                closed.append(Closed("no system has an answer that it applies to", "missing", metric=metric))
            tests += own
        asked = [name for name in systems if not is_production(night, name)]
        broken = broken_questions(builder.baselines, asked, ws.settings.gate_thresholds)
    closed += head_guards(broken, ws.settings.gate_thresholds)
    level = fail_level(ws.settings.gate.false_fails)
    result = judge_tests(
        tests, closed, ws.settings.judged_metrics, examples_of(night), level, [broken_line(b) for b in broken]
    )
    decision = GateDecision(
        day=day,
        release=night.manifest.release,
        sample=night.manifest.sample,
        verdict=result.verdict,
        exit_code=result.exit_code,
        reasons=result.reasons,
        notes=result.notes,
        closed=result.closed,
        tests=result.tests,
        rows=result.rows,
        level=level,
        broken=broken,
        accepted=accepted_name(ws, day),
    )
    ws.write_result(day, decision)
    accept_first(night, result.verdict)
    return result


def head_guards(broken: list[BrokenHead], thresholds: dict[str, Threshold]) -> list[Closed]:
    """A margin per question does not see that the questions everybody asks broke: then nothing passes."""
    closed = []
    for found in broken:
        threshold = thresholds[found.metric]
        margin = threshold.margin
        if margin is not None and threshold.per == "question" and found.net > margin and threshold.severity == "fail":
            reason = (
                f"the most asked questions that broke are {percent(found.net)} of requests, more than the margin of "
                f"{percent(margin)}: a margin per question cannot decide on that; set per: both"
            )
            closed.append(Closed(reason, "head", found.system, found.metric, blocks_tests=False))
    return closed


def judge_tests(
    tests: list[GateTest],
    closed: list[Closed],
    judged: list[str],
    examples: int = 0,
    level: float = LEVEL,
    first: list[str] | None = None,
    advise: bool = True,
) -> GateResult:
    """The verdict of tests and guards: pure, so that simulations can ask it.

    Args:
        tests: as built; their `p_adjusted`, `verdict`, `detectable` and `needed` are filled in here.
        closed: closed guards.
        judged: judge metrics of the settings; some closed guards bar them even without a threshold.
        examples: examples of the night, for the wording.
        level: chance that an unchanged system fails by chance, over all tests of the night.
        first: facts that stand before all reasons.
        advise: say what would resolve an undecided test; False where thousands of nights are simulated.
    """
    for test in tests:
        shut = next((c for c in closed if c.blocks_tests and c.covers(test)), None)
        if shut is not None:
            test.p = test.clears = None
            test.reason = shut.line
    families: dict[tuple[str, bool], list[GateTest]] = {}
    for test in tests:
        if test.run:
            families.setdefault((test.severity, test.own_level), []).append(test)
    for own in families.values():
        _adjust(own)
    for test in tests:
        own_level = level * OWN_SHARE if test.own_level else level
        test.verdict = _verdict(test, own_level)
        _power(test, len(families.get((test.severity, test.own_level), ())), own_level)
    failed = [t for t in tests if t.verdict == "fail" and t.severity == "fail"]
    primary = [t for t in tests if t.primary]
    asked = [t for t in primary if not t.optional]  # a default alone is nothing to decide on
    barring = _barring(closed, tests, judged)
    verdict: Decision = "inconclusive"
    if failed:
        verdict = "fail"
    elif asked and not barring and all(t.verdict == "pass" for t in primary):
        verdict = "pass"
    reasons = [*(first or []), *_reasons(verdict, tests, failed, primary, barring, advise)]
    notes = [f"warning: {shown(t)}" for t in tests if t.verdict == "fail" and t.severity == "warn"]
    notes += [f"{t.name()}: {t.reason}" for t in tests if t.reason and not t.primary and _worth_a_note(t)]
    notes += [f"{t.name()}: {t.since_accepted}" for t in tests if t.since_accepted]
    notes += [line for t in tests if t.primary and (line := widened(t))]
    notes += lines([c for c in closed if c not in barring])
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    rows = [
        t.as_row()
        for t in sorted(
            tests, key=lambda t: (order[t.verdict], not t.primary, t.p is None, t.p, t.system, t.metric, t.part, t.per)
        )
    ]
    said, told = [plain(r) for r in reasons], [plain(n) for n in notes]
    run = sum(len(own) for (severity, _), own in families.items() if severity == "fail")
    return GateResult(verdict, said, rows, as_rows(closed), run, list(dict.fromkeys(told)))


def _worth_a_note(test: GateTest) -> bool:
    """Margins that could not be tested, and floors of a category that nobody asks in: a misspelled one never fails."""
    return (test.kind == "margin" and not test.optional) or "no example is in this category" in (test.reason or "")


def _adjust(tests: list[GateTest]) -> None:
    for test, p in zip(tests, holm([t.p for t in tests if t.p is not None]), strict=True):
        test.p_adjusted = p


def _verdict(test: GateTest, level: float) -> Decision:
    if not test.run:
        return "inconclusive"
    if test.p_adjusted is not None and test.p_adjusted <= level and test.at_limit:
        return "fail"
    return "pass" if test.clears else "inconclusive"


def _power(test: GateTest, tests: int, level: float) -> None:
    """The smallest shortfall or loss that would have failed, and the rows that would clear the limit."""
    if not test.run or test.n < 2 or test.value is None:
        return
    k = max(1, round(tests * LEVEL / level))  # a stricter level is like more tests
    n = int(test.independent) if test.independent is not None else test.n
    if n < 2:
        return
    if test.kind == "margin":
        _margin_power(test, n, k)
    elif test.kind in ("floor", "ceiling"):
        floor, value = (test.limit, test.value) if test.kind == "floor" else (1 - test.limit, 1 - test.value)
        test.detectable = detectable_below(n, k, floor, test.spread)
        if test.verdict == "inconclusive" and test.basis == "raw":
            test.needed = _grown(test, n, rows_to_clear(floor, value, test.spread))
    elif test.kind == "latency" and test.times is not None:
        percentile = metric_of(test.metric).percentile
        assert percentile is not None
        test.detectable = provable_excess(test.times, percentile, LEVEL / k)
    elif test.kind == "cost":
        test.detectable = 0.0  # counted in full, not estimated


def _margin_power(test: GateTest, n: int, tests: int) -> None:
    """A judge sees `seen` of a change: what it must show, and what that is in people's verdicts."""
    seen, margin = test.seen or 1.0, -test.limit
    found = detectable_loss(n, tests, margin * seen, test.discordance, test.spread)
    test.detectable = None if found is None else min(1.0, found / seen)
    assert test.value is not None
    if test.verdict == "inconclusive" and test.value > test.limit:
        psi = test.discordance if test.discordance is not None else (test.spread or 0.0) ** 2
        test.needed = _grown(test, n, pairs_to_pass((margin + min(test.value, 0.0)) * seen, psi))


def _grown(test: GateTest, independent: int, needed: int | None) -> int | None:
    """Questions that count like `needed` independent ones, at tonight's clusters."""
    return None if needed is None else int(np.ceil(needed * test.n / max(independent, 1)))


def _barring(closed: list[Closed], tests: list[GateTest], judged: list[str]) -> list[Closed]:
    """Guards that keep this gate from passing: those over a primary test, and a judge that went wrong."""
    primary = [t for t in tests if t.primary]

    def bars(guard: Closed) -> bool:
        if guard.metric is None or guard.kind == "missing" or any(guard.covers(t) for t in primary):
            return True
        return guard.kind in NEVER_PASS and guard.metric in judged

    return [guard for guard in closed if bars(guard)]


def _reasons(
    verdict: Decision,
    tests: list[GateTest],
    failed: list[GateTest],
    primary: list[GateTest],
    barring: list[Closed],
    advise: bool,
) -> list[str]:
    if verdict == "fail":
        worst = sorted(failed, key=lambda t: (t.p_adjusted or 0.0, t.p or 0.0))
        return [shown(t) for t in worst] + lines(barring)
    if verdict == "pass":
        return [f"all {len(primary)} primary tests clear their limits"]
    reasons = lines(barring)
    if all(t.optional for t in primary) and not any(c.blocks_tests and c.metric is None for c in barring):
        reasons.append("no primary test: set thresholds in ragbench.yaml, for example {faithfulness: {min: 0.9}}")
        reasons += [f"{t.name()}: {t.reason}" for t in tests if t.kind == "margin" and t.reason and not t.optional]
    covered = {c.line for c in barring}
    margins = sum(1 for t in primary if t.kind == "margin" and t.run)
    return reasons + [not_clear(t, margins, advise) for t in primary if t.verdict != "pass" and t.reason not in covered]
