"""Margins of the gate: is tonight not worse than its baseline by more than what is allowed?

Per question: paired, by clusters; over later releases linked to the accepted night. Per request: on the sampled
requests of the shared questions. A judge sees only a part of a change (Youden's J of it), so a margin on its
verdicts is tested in people's (../docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ragbench_dagster.calibration.stats.chain import Chain
from ragbench_dagster.calibration.stats.clustering import ClusteredChange
from ragbench_dagster.calibration.stats.judged_change import PairsChange, people_change
from ragbench_dagster.calibration.stats.request_share import request_change
from ragbench_dagster.number_words import points
from ragbench_dagster.reporting.baseline import Baselines, Pairs
from ragbench_dagster.reporting.compare import change_in, levels
from ragbench_dagster.reporting.correct import Corrector
from ragbench_dagster.reporting.gate_floors import LEAST_PART
from ragbench_dagster.reporting.gate_rows import Test
from ragbench_dagster.reporting.linked import Linked, follow, needs_links
from ragbench_dagster.reporting.night import Floats, Mask, Scores
from ragbench_dagster.settings import Threshold, is_judged

ACCEPT = "accept one: ragbench accept NIGHT --by NAME --why REASON"


def margin_tests(
    overall: Test, scores: Scores, threshold: Threshold, baselines: Baselines, corrector: Corrector | None
) -> Iterator[Test]:
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
    overall: Test, scores: Scores, pairs: Pairs, linked: Linked | None, fix: Corrector | None, differs: str | None
) -> Iterator[Test]:
    parts = sorted({c for c in scores.category.tolist() if c}) if differs is None else []
    blank = overall.copy(primary=False, since_accepted=None)
    yield _change(overall, pairs, linked, None, fix, differs)
    for part in parts:
        test = _change(blank.copy(part=part), pairs, linked, part, fix, None)
        if test.n >= LEAST_PART and test.reason is None:
            yield test


def _change(
    test: Test, pairs: Pairs, linked: Linked | None, part: str | None, fix: Corrector | None, differs: str | None
) -> Test:
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


def by_people(test: Test, change: PairsChange, fix: Corrector | None) -> None:
    """Put the change that people saw in the place of the judge's."""
    test.raw, test.seen = test.value, fix.judge.youden_point if fix and fix.judge else 1.0
    test.basis = "pairs"
    test.value, (test.low, test.high), test.p = change.value, change.interval, change.p_loss
    test.spread = None
    against(test)


def _close(test: Test, differs: str | None) -> Test:
    test.reason = differs or test.reason
    if test.reason:
        test.p = test.clears = None
    return test


def fill_change(test: Test, change: ClusteredChange) -> None:
    """The figures of a paired change against a margin."""
    test.n, test.value = change.n, change.value
    test.low, test.high = change.interval or (None, None)
    test.p = change.p_loss
    test.clusters, test.independent = change.clusters, change.n_effective
    test.discordance = change.discordance if change.binary else None
    test.spread = None if change.binary else change.spread
    against(test)


def fill_chain(test: Test, chain: Chain) -> None:
    """The figures of a change that is linked over releases against a margin."""
    test.n, test.value, (test.low, test.high), test.p = chain.questions, chain.value, chain.guarded, chain.guarded_p
    test.releases = chain.releases
    test.spread = float(np.sqrt(chain.variance * chain.questions))
    against(test)


def against(test: Test) -> None:
    """Compare the change and its interval with the margin."""
    assert test.value is not None
    test.at_limit = test.value <= test.limit
    test.clears = test.low is not None and test.low > test.limit


def _per_request(test: Test, pairs: Pairs, fix: Corrector | None, differs: str | None) -> Test:
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


def in_peoples_verdicts(test: Test, fix: Corrector | None, failed: Failed | None = None) -> None:
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
