"""Floors and ceilings of the gate: is the share or mean of tonight's answers where it has to be?

Per question by clusters (several questions about one thing count like fewer), per request on the sampled
requests. Where a judge stands between, its errors are corrected for, or the test is not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ragbench_dagster.metrics import is_judged
from ragbench_dagster.reporting.baselines import Baselines, Pairs
from ragbench_dagster.reporting.comparability import Linked, change_in, follow, levels, needs_links
from ragbench_dagster.reporting.gate.tests import GateTest
from ragbench_dagster.reporting.judge_correction import Corrector
from ragbench_dagster.reporting.night_results import Floats, Mask, Scores
from ragbench_dagster.settings import Threshold
from ragbench_dagster.stats.change import Chain
from ragbench_dagster.stats.clustering import ClusteredChange, clustered_estimate, floor_p
from ragbench_dagster.stats.judged_change import PairsChange, people_change
from ragbench_dagster.stats.request_share import request_change, request_floor_p, request_share
from ragbench_dagster.text.format import points

LEAST_PART = 20  # scored rows of a category below which no test on it could ever fail


def floor_test(test: GateTest, scores: Scores, where: Mask, corrector: Corrector | None) -> GateTest:
    """Fill in the test of a floor or ceiling over the rows in `where`."""
    at = where & scores.counted
    test.n = int(scores.count[at].sum() if test.per == "request" else at.sum())
    if not at.any():
        test.reason = "no scored answer"
        return test
    if test.part != "overall" and int(at.sum()) < LEAST_PART:
        test.reason = f"only {int(at.sum())} scored answers, {LEAST_PART} are needed"
    if corrector is not None:
        _corrected(test, corrector, scores, at)
    elif test.per == "request":
        _requests(test, scores, at)
    else:
        _questions(test, scores, at)
    if test.reason is not None:
        test.p = test.clears = None
    return test


def _sign(test: GateTest) -> float:
    return -1.0 if test.kind == "ceiling" else 1.0


def _questions(test: GateTest, scores: Scores, at: Mask) -> None:
    values, clusters = scores.value[at], scores.cluster[at]
    found = clustered_estimate(values, clusters, None, scores.share)
    test.value, test.low, test.high = found.value, found.low, found.high
    test.clusters, test.independent = found.clusters, found.n_effective
    test.p = floor_p(values, test.limit, clusters, scores.share, ceiling=test.kind == "ceiling")
    if not scores.share:
        test.spread = float(values.std(ddof=1)) if len(values) > 1 else None
    clear(test, _sign(test))


def _requests(test: GateTest, scores: Scores, at: Mask) -> None:
    found = request_share(scores.per_request[at], scores.weight[at], scores.count[at])
    if found is None:
        test.reason = "no request has a weight"
        return
    test.value, (test.low, test.high), test.independent = found.value, found.interval, found.n
    test.p = request_floor_p(found.value, found.n, test.limit, ceiling=test.kind == "ceiling")
    clear(test, _sign(test))


def _corrected(test: GateTest, fix: Corrector, scores: Scores, at: Mask) -> None:
    found = fix.correct(scores, at, per_request=test.per == "request")
    test.basis = found.method
    if found.interval is None or found.draws is None:
        test.basis = "raw"
        test.value = float(scores.value[at].mean())
        test.reason = f"judge not usable: {found.reason}"
        return
    test.value, (test.low, test.high), test.judge = found.value, found.interval, fix.strength
    if test.per == "question":
        counted = clustered_estimate(scores.value[at], scores.cluster[at], None, scores.share)
        test.clusters, test.independent = counted.clusters, counted.n_effective
    sign = _sign(test)
    test.p = tail_p(found.draws, test.limit, sign)
    test.spread = float(found.draws.std()) * float(np.sqrt(test.n))
    clear(test, sign)


def tail_p(draws: Floats, limit: float, sign: float) -> float:
    """One-sided p of "the share is at the limit or better" from its draws.

    Where no draw lies there the normal tail stands for it: the least that 20,000 draws can say is 5e-5, too much for
    .05 / 30 among more than 33 tests.
    """
    beyond = int((sign * draws >= sign * limit).sum())
    counted = (1 + beyond) / (1 + len(draws))
    spread = float(draws.std())
    if beyond or spread <= 0:
        return counted
    return min(counted, float(special.ndtr(sign * (float(draws.mean()) - limit) / spread)))


def clear(test: GateTest, sign: float) -> None:
    """Compare the estimate and its interval with the limit; `sign` is -1 where high is bad."""
    assert test.value is not None
    test.at_limit = sign * test.value < sign * test.limit
    end = test.low if sign > 0 else test.high
    test.clears = end is not None and sign * end >= sign * test.limit


# Margins of the gate: is tonight not worse than its baseline by more than what is allowed?
#
# Per question: paired, by clusters; over later releases linked to the accepted night. Per request: on the sampled
# requests of the shared questions. A judge sees only a part of a change (Youden's J of it), so a margin on its
# verdicts is tested in people's (../docs/statistics.md).

ACCEPT = "accept one: ragbench accept NIGHT --by NAME --why REASON"


def margin_tests(
    overall: GateTest, scores: Scores, threshold: Threshold, baselines: Baselines, corrector: Corrector | None
) -> Iterator[GateTest]:
    """The tests of one margin: over all, per question and per request as asked for, and each category.

    Args:
        overall: the empty test of the whole, per question.
    """
    wanted = threshold.baseline
    baseline, why = baselines.find(scores.system, wanted)
    pairs = baselines.pairs(baseline, scores) if baseline else None
    if baseline is None or pairs is None:
        overall.reason = why or f"{baseline.name if baseline else 'the baseline'} has no {scores.metric}"
        if why in ("no night is accepted yet", "no night before this one has passed"):
            # else no night could ever be the first
            overall.primary = False
            overall.reason += f": the floors decide until one is; {ACCEPT}" if wanted == "accepted" else (
                ": the other thresholds decide until one has"
            )  # fmt: skip
        yield overall
        return
    overall.baseline = baseline.name
    differs = baselines.differs(baseline, scores.metric)
    if differs and wanted == "last_passed" and judge_accepted(baselines, scores.metric):
        overall.primary = False
        differs += "; the accepted judge starts anew, the other thresholds decide until a night has passed"
    elif differs and wanted == "accepted":
        differs += f": if that is meant, {ACCEPT}"
    elif differs:
        differs += ": if that is meant, accept the judge with ragbench calibrate --accept"
    linked = follow(baselines, baseline, scores) if differs is None and needs_links(baselines, baseline) else None
    if isinstance(linked, str):
        overall.reason = linked
        yield overall
        return
    requests = overall.copy(per="request")
    overall.since_accepted = cumulated(scores, wanted, baselines)
    if threshold.per in ("question", "both"):
        yield from _per_question(overall, scores, pairs, linked, corrector, differs)
    if threshold.per in ("request", "both"):
        yield _per_request(requests, pairs, corrector, differs)


def cumulated(scores: Scores, wanted: str, baselines: Baselines) -> str | None:
    """What was lost since the accepted night, where another night is the measure: its small losses can add up."""
    if wanted == "accepted" or wanted in baselines.night.systems:
        return None
    baseline, _ = baselines.accepted(scores.system)
    if baseline is None or baselines.differs(baseline, scores.metric):
        return None
    found: ClusteredChange | Chain | str | None
    if needs_links(baselines, baseline):
        linked = follow(baselines, baseline, scores)
        found = linked if isinstance(linked, str) else linked.change()
    else:
        pairs = baselines.pairs(baseline, scores)
        found = change_in(pairs) if pairs else None
    if found is None or isinstance(found, str) or found.interval is None:
        return None
    low, high = (points(end, signed=True) for end in found.interval)
    scale = " in the judge's verdicts" if is_judged(scores.metric) else ""
    return f"since {baseline.name}: {points(found.value, signed=True)} points [{low}, {high}]{scale}"


def judge_accepted(baselines: Baselines, metric: str) -> bool:
    """True where a person accepted this very judge (ragbench calibrate --accept)."""
    state = (baselines.night.judge_of(metric).get("drift") or {}).get("state")
    return state is not None and state != "not set up"


def _per_question(
    overall: GateTest, scores: Scores, pairs: Pairs, linked: Linked | None, fix: Corrector | None, differs: str | None
) -> Iterator[GateTest]:
    parts = sorted({c for c in scores.category.tolist() if c}) if differs is None else []
    blank = overall.copy(primary=False, since_accepted=None)
    yield _change(overall, pairs, linked, None, fix, differs)
    for part in parts:
        test = _change(blank.copy(part=part), pairs, linked, part, fix, None)
        if test.n >= LEAST_PART and test.reason is None:
            yield test


def _change(
    test: GateTest, pairs: Pairs, linked: Linked | None, part: str | None, fix: Corrector | None, differs: str | None
) -> GateTest:
    if linked is not None:
        chain = linked.change(part)
        if isinstance(chain, str):
            test.reason = chain
            return test
        fill_chain(test, chain)
        judged = linked.failed_part(part)
        failed = Failed(judged, judged)
    else:
        where = None if part is None else pairs.after.category == part
        change = change_in(pairs, where)
        if change is None:
            test.reason = f"no example is shared with {test.baseline}"
            return test
        fill_change(test, change)
        test.before, test.after = levels(pairs, where)
        failed = failed_part(pairs, fix, where)
    labelled = _labelled(pairs, fix) if linked is None and part is None else None
    if labelled is not None:
        by_people(test, labelled, fix)
    else:
        in_peoples_verdicts(test, fix, failed)
    return _close(test, differs)


def _labelled(pairs: Pairs, fix: Corrector | None) -> PairsChange | None:
    """What people said of the answers that changed since the baseline, where enough of them are labelled."""
    found = fix.changes.get(pairs.day_before) if fix is not None and pairs.day_before else None
    return found if isinstance(found, PairsChange) else None


def by_people(test: GateTest, change: PairsChange, fix: Corrector | None) -> None:
    """Put the change that people saw in the place of the judge's."""
    test.raw, test.seen = test.value, fix.judge.youden_point if fix and fix.judge else 1.0
    test.basis = "pairs"
    test.value, (test.low, test.high), test.p = change.value, change.interval, change.p_loss
    test.spread = None
    against(test)


def _close(test: GateTest, differs: str | None) -> GateTest:
    test.reason = differs or test.reason
    if test.reason:
        test.p = test.clears = None
    return test


def fill_change(test: GateTest, change: ClusteredChange) -> None:
    """The figures of a paired change against a margin."""
    test.n, test.value = change.n, change.value
    test.low, test.high = change.interval or (None, None)
    test.p = change.p_loss
    test.clusters, test.independent = change.clusters, change.n_effective
    test.discordance = change.discordance if change.binary else None
    test.spread = None if change.binary else change.spread
    against(test)


def fill_chain(test: GateTest, chain: Chain) -> None:
    """The figures of a change that is linked over releases against a margin."""
    test.n, test.value, (test.low, test.high), test.p = chain.questions, chain.value, chain.guarded, chain.guarded_p
    test.releases = chain.releases
    test.spread = float(np.sqrt(chain.variance * chain.questions))
    against(test)


def against(test: GateTest) -> None:
    """Compare the change and its interval with the margin."""
    assert test.value is not None
    test.at_limit = test.value <= test.limit
    test.clears = test.low is not None and test.low > test.limit


def _per_request(test: GateTest, pairs: Pairs, fix: Corrector | None, differs: str | None) -> GateTest:
    after, before = pairs.after, pairs.before
    a, b = before.per_request[pairs.old], after.per_request[pairs.new]
    heavy = (before.asks[pairs.old] > 1) & (after.asks[pairs.new] > 1)
    asks = int(min(before.asks[pairs.old][heavy].min(), after.asks[pairs.new][heavy].min())) if heavy.any() else 1
    weight, count = after.weight[pairs.new], after.count[pairs.new]
    found = request_change(a, b, weight, count, heavy, asks, noise=not after.fixed)
    if found is None:
        test.reason = f"no example is shared with {test.baseline}"
        return test
    share = weight / weight.sum()
    test.n, test.value, (test.low, test.high) = int(count.sum()), found.value, found.interval
    test.before, test.after, test.independent = float(share @ a), float(share @ b), found.n
    test.p, test.discordance = found.p_joint, found.gains + found.losses
    same = np.asarray(after.keys[pairs.new] == before.keys[pairs.old], dtype=bool)
    wider = judge_noise(pairs, weight, fix, same)
    if wider > 0:
        z = float(special.ndtri(0.975))
        half = [float(np.hypot(end - found.value, z * np.sqrt(wider))) for end in found.interval]
        test.low, test.high = max(-1.0, found.value - half[0]), min(1.0, found.value + half[1])
        test.p = max(test.p, float(special.ndtr(found.value / np.sqrt(found.variance + wider))))
    against(test)
    in_peoples_verdicts(test, fix, failed_part(pairs, fix, weight=weight))
    return _close(test, differs)


def in_peoples_verdicts(test: GateTest, fix: Corrector | None, failed: Failed | None = None) -> None:
    """Turn a change of a judge's verdicts into one of people's; the test of "no loss" needs no turning.

    Args:
        failed: the part of the change at which the system failed on a night. Only the rest is what the judge sees a
            share of.
    """
    if fix is None or test.value is None or test.low is None or test.high is None:
        return
    judge = fix.judge
    if judge is None or fix.refusal:
        test.reason = f"judge not usable: {fix.refusal}"
        return
    judged, known = (failed.judged, failed.known) if failed else (0.0, 0.0)
    margin = -test.limit + known
    raw, low, high = test.value - judged, test.low - judged, test.high - judged
    seen = people_change(raw, low, high, judge.youden_point, *judge.youden, margin)
    if seen.value is None or seen.interval is None or not seen.usable:
        test.reason = "judge not usable: it tells good from bad too weakly to show a change"
        return
    test.raw, test.seen, test.judge = test.value, judge.youden_point, fix.strength
    test.value = max(-1.0, min(1.0, seen.value + known))
    test.low, test.high = (max(-1.0, min(1.0, end + known)) for end in seen.interval)
    test.at_limit = test.value <= test.limit
    # a loss by failures alone that is beyond the margin is beyond it whatever the judge saw of the rest
    test.clears = seen.passes if margin > 0 else test.low > test.limit


@dataclass(frozen=True, slots=True)
class Failed:
    """The part of a mean change that questions make at which the system failed on one of the nights."""

    judged: float  # with the other night's verdicts as they are
    known: float  # with what people would have called those answers


def failed_part(pairs: Pairs, fix: Corrector | None, where: Mask | None = None, weight: Floats | None = None) -> Failed:
    """What failures changed. Their 0 is known; what the other night's answers were worth is a judge's word, and is
    corrected as a share.

    Args:
        weight: of each pair, per request; equal ones per question.
    """
    at = np.arange(pairs.n) if where is None else np.flatnonzero(where[pairs.new])
    new, old = pairs.new[at], pairs.old[at]
    share = np.full(len(at), 1 / max(len(at), 1)) if weight is None else weight / weight.sum()
    lost, won = pairs.after.failed[new], pairs.before.failed[old]
    before = pairs.before.per_request[old] if weight is not None else pairs.before.value[old]
    after = pairs.after.per_request[new] if weight is not None else pairs.after.value[new]
    sides = (after, won & ~lost), (before, lost & ~won)
    judged = [float(share[rows] @ values[rows]) for values, rows in sides]
    known = [_worth(verdict, float(share[rows].sum()), fix) for verdict, (_, rows) in zip(judged, sides, strict=True)]
    return Failed(judged[0] - judged[1], known[0] - known[1])


def _worth(judged: float, share: float, fix: Corrector | None) -> float:
    """What people would have called good of answers of which a judge passed `judged`; both as shares of all."""
    if share == 0 or fix is None or fix.judge is None or fix.judge.point is None or fix.refusal:
        return judged
    se, sp = fix.judge.point
    return min(share, max(0.0, (judged - (1 - sp) * share) / (se + sp - 1)))


def judge_noise(pairs: Pairs, weight: Floats, fix: Corrector | None, identical: Any) -> float:
    """Variance that a judge's errors add to a change per request: it errs on a question once, for all its requests.

    Only questions whose answer changed carry it; the verdict on an answer that stayed is one verdict.
    """
    if fix is None or fix.judge is None or fix.judge.point is None:
        return 0.0
    se, sp = fix.judge.point
    each = max(se * (1 - se), sp * (1 - sp))
    share = weight / weight.sum()
    return float((share[~identical] ** 2).sum() * 2 * each)
