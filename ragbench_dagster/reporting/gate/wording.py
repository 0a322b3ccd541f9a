"""The gate's reasons in words, one line each. Names come from settings and scrubbed data, never questions.

A margin reads "mine: relevancy fell by 12 points (0.59 to 0.47, 95 % -16 to -9); 3 were allowed since ...", a
floor "mine: relevancy is 0.470 [0.431, 0.510] on 640 questions; at least 0.600 is asked".
"""

from __future__ import annotations

import numpy as np

from ragbench_dagster.reporting.baselines import Baselines, Pairs
from ragbench_dagster.reporting.gate.outlook import floor_advice, margin_advice
from ragbench_dagster.reporting.gate.tests import GateTest
from ragbench_dagster.results import BrokenHead
from ragbench_dagster.settings import Threshold
from ragbench_dagster.stats.power import promised_power
from ragbench_dagster.stats.request_share import broken_head
from ragbench_dagster.text.format import decimal, p_value, percent, points, safe_terminal

BASIS = {
    "calibration": "corrected for the judge's errors with calibration rows; nobody has checked that the judge errs "
    "alike on these answers (ragbench label audit would)",
    "audit": "corrected with labels of the last 28 days' answers",
    "labels": "from people's labels on tonight's answers",
    "humans_only": "people's labels alone",
    "pairs": "people's verdicts on changed pairs",
}


def plain(line: str) -> str:
    """One harmless line."""
    return " ".join(safe_terminal(line).split())


def number(value: float | None, kind: str, over_ms: float | None = None) -> str:
    """A figure with its unit; a time that is infinite is known to be more than `over_ms`."""
    if value is None:
        return "unknown"
    if kind == "latency":
        if value == float("inf"):
            return "over the time limit" if over_ms is None else f"over {over_ms:,.0f} ms"
        return f"{value:,.0f} ms"
    if kind == "cost":
        return f"{decimal(value, 4)} USD"
    return decimal(value)


def shown(test: GateTest) -> str:
    """A test with its figures and its limit: the reason of a failed one."""
    p = "" if test.p_adjusted is None or test.kind == "cost" else f" (adjusted p {p_value(test.p_adjusted)})"
    return f"{figure(test)}; {limit(test)}{p}"


def figure(test: GateTest) -> str:
    return _change(test) if test.kind == "margin" else _level(test)


def limit(test: GateTest) -> str:
    bound = number(abs(test.limit), test.kind)
    if test.kind == "margin":
        since = f" since {test.baseline}" if test.baseline and "night" in test.baseline else ""
        against = "" if since or not test.baseline else f" against {test.baseline}"
        linked = f", {test.releases} release{'s' if test.releases > 1 else ''} linked" if test.releases else ""
        allowed = points(-test.limit)
        return f"{allowed} {'was' if allowed == '1' else 'were'} allowed{since}{against}{linked}"
    return {"floor": f"at least {bound} is asked"}.get(test.kind, f"at most {bound} is allowed")


def _change(test: GateTest) -> str:
    """`mine: relevancy fell by 12 points (0.590 to 0.470, 95 % -16 to -9) on 640 questions`."""
    if test.value is None:
        return f"{test.name()} is unknown"
    fell = "fell by" if test.value < 0 else "rose by"
    moved = f"{fell} {points(abs(test.value))} points" if test.value else "did not change"
    if test.seen is not None:
        moved += " in people's verdicts"
    scale = "as judged " if test.seen is not None else ""
    known = test.before is not None and test.after is not None
    levels = f"{scale}{decimal(test.before or 0.0)} to {decimal(test.after or 0.0)}, " if known else ""
    band = f"95 % {points(test.low or 0.0)} to {points(test.high or 0.0)}" if test.low is not None else "no interval"
    judge = ""
    if test.seen is not None and test.raw is not None and test.basis != "pairs":
        seen = f"sees {test.seen * 100:.0f} % of a change"
        judge = f"; the judge showed {points(test.raw, signed=True)} and {seen}, alike on both nights' answers"
        judge += " is assumed: ragbench label changes checks it"
    return f"{test.name()} {moved} ({levels}{band}){_on(test)}{judge}"


def _level(test: GateTest) -> str:
    band = ""
    if test.kind != "cost" and test.low is not None:
        band = f" [{number(test.low, test.kind, test.over_ms)}, {number(test.high, test.kind, test.over_ms)}]"
    basis = f", {BASIS[test.basis]}" if test.basis in BASIS else ""
    return f"{test.name()} is {number(test.value, test.kind, test.over_ms)}{band}{_on(test)}{basis}"


def _on(test: GateTest) -> str:
    """` on 695 questions about 212 things, which count like 424 independent ones`."""
    if test.kind in ("latency", "cost"):
        return f" on {test.n:,} answers"
    what = "requests" if test.per == "request" else "questions"
    line = f" on {test.n:,} {what}"
    if test.clusters is not None and test.independent is not None and test.clusters < test.n > round(test.independent):
        about = f"by {test.clusters:,} people" if test.per == "request" else f"about {test.clusters:,} things"
        line += f" {about}, which count like {test.independent:,.0f} independent ones"
        if test.independent < 30:
            line += " (too few)"
    return line


def not_clear(test: GateTest, primaries: int = 1, advise: bool = True) -> str:
    """A primary test that did not clear its limit, with what would resolve it.

    Args:
        primaries: primary margins of the night, which an unchanged system has to pass together.
    """
    if not test.run:
        return f"{test.name()}: {test.reason}"
    line = f"{figure(test)}; {limit(test)}: not shown"
    if advise and (hint := resolves(test, primaries)):
        line += f"; {hint}"
    if test.detectable is not None and test.kind == "latency":
        line += f"; an excess of {number(test.detectable, test.kind)} would have been proven"
    elif test.detectable is not None and test.kind in ("margin", "floor", "ceiling"):
        what = {"margin": "loss", "floor": "shortfall"}.get(test.kind, "excess")
        often = "3 of 4 nights" if promised_power(test.n) >= 0.75 else "7 of 10 nights"
        line += f"; the smallest {what} this many would have shown in {often} is {decimal(test.detectable)}"
    return line


def widened(test: GateTest) -> str | None:
    """A comparison over many releases that no unchanged system would pass any more asks for a new acceptance."""
    if test.kind != "margin" or not test.releases or test.low is None or test.high is None:
        return None
    half = (test.high - test.low) / 2
    if half < -test.limit:
        return None
    return (
        f"{test.name()}: {test.releases} releases after {test.baseline} the comparison is known to "
        f"{points(half)} points only, the margin is {points(-test.limit)}: accept a newer night "
        "(ragbench accept NIGHT --by NAME --why REASON)"
    )


def resolves(test: GateTest, primaries: int = 1) -> str:
    """With what an inconclusive test would have been decided: examples, labels or another margin."""
    advice = None
    if test.kind == "margin":
        advice = margin_advice(test, primaries)
    elif (test.kind == "floor" and test.per == "question" and test.spread is None) or test.judge is not None:
        advice = floor_advice(test)
    if advice:
        return advice
    if test.needed and test.needed > test.n:
        return f"about {test.needed:,} examples would show it"
    if test.needed is None and test.basis in ("calibration", "audit", "labels"):
        return "more human labels would narrow it"
    return ""


# The most asked questions that broke: facts, no test, said first on every night.
#
# A release can keep its share per question and lose the few questions that a third of all requests ask.

MOST_NAMED = 8


def broken_line(broken: BrokenHead) -> str:
    """The facts in one line."""
    named = ", ".join(broken.examples[:MOST_NAMED])
    more = len(broken.examples) - MOST_NAMED
    named += f" and {more} more" if more > 0 else ""
    was, count = ("was", "question") if len(broken.examples) == 1 else ("were", "questions")
    return (
        f"{broken.system}: {broken.metric}: {len(broken.examples)} of the {broken.looked_at} most asked {count} {was} right "
        f"on {broken.baseline} and {'is' if was == 'was' else 'are'} wrong tonight: together {percent(broken.share)} of "
        f"requests: {named}"
    )


def broken_questions(baselines: Baselines, systems: list[str], thresholds: dict[str, Threshold]) -> list[BrokenHead]:
    """What broke among the most asked, for each system and metric with a threshold; the gravest first."""
    found = []
    for (system, metric), scores in baselines.night.scores.items():
        threshold = thresholds.get(metric)
        if system not in systems or threshold is None:
            continue
        baseline, _ = baselines.find(system, threshold.baseline)
        if baseline is None or baselines.differs(baseline, metric):
            continue
        pairs = baselines.pairs(baseline, scores)
        if pairs is not None and pairs.n:
            broken = _broken(pairs, system, metric, baseline.name)
            if broken.examples:
                found.append(broken)
    return sorted(found, key=lambda b: (-b.share, b.system, b.metric))


def _broken(pairs: Pairs, system: str, metric: str, baseline: str) -> BrokenHead:
    before, after = pairs.before.per_request[pairs.old], pairs.after.per_request[pairs.new]
    weight = pairs.after.weight[pairs.new]
    lost, won = broken_head(before, after, weight), broken_head(after, before, weight)
    # where every question is asked alike there are no most asked ones
    heavy = weight > weight.mean()
    rows, back = lost.rows[heavy[lost.rows]], won.rows[heavy[won.rows]]
    shares = weight / weight.sum()
    ids = pairs.after.ids[pairs.new]
    return BrokenHead(
        system, metric, baseline, lost.head, [str(i) for i in ids[rows]], np.round(shares[rows], 9).tolist(),
        float(shares[rows].sum() - shares[back].sum()),
    )  # fmt: skip
