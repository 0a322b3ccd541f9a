"""leaderboard[D]: systems ranked per metric. Those that cannot be told apart share a rank.

A system's rank is one more than the number of systems that are better than it beyond doubt: paired on the
shared examples, Holm-adjusted over all pairs of the metric, two-sided .05. Rows made under other conditions
(release, sample, judge, template) are never ranked together; the table says so.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from ragbench_dagster.metrics import is_judged
from ragbench_dagster.reporting.baselines import Baseline, Baselines, Pairs
from ragbench_dagster.reporting.comparability import change_in, other_conditions
from ragbench_dagster.reporting.gate.production import asked, headline
from ragbench_dagster.reporting.night_results import Night, Scores
from ragbench_dagster.reporting.summary import read_summary
from ragbench_dagster.stats.power import holm
from ragbench_dagster.store import Workspace, finite, write_json

PRODUCTION = "it is measured on the requests of seven days, the others on the release's questions"


def rank(ws: Workspace, day: str) -> dict[str, Any]:
    """Rank the night's systems; writes and returns leaderboard.json.

    Returns:
        `{day, rows: [{metric, rank, system, value, low, high, n, coverage, corrected, version, release, judge,
        template, cost_usd, day, note}], pairs: [{metric, better, worse, difference, p}]}`, sorted by metric,
        rank, system; rank is null without a scored answer.
    """
    night = Night.open(ws, day)
    summary = read_summary(ws, day)
    baselines, unlike = Baselines(night), other_conditions(night)
    rows: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    others = summary.get("systems", {})
    produced = {name: PRODUCTION for name in others if name not in asked(others)}
    for metric in sorted({metric for _, metric in night.scores}):
        every = [scores for (_, m), scores in night.scores.items() if m == metric]
        stale = {system: why for (system, m), why in unlike.items() if m == metric} | produced
        own = [scores for scores in every if scores.system not in stale]
        better, found = _pairs(night, baselines, metric, own)
        pairs += found
        rows += [_row(night, summary, scores, better, own, stale.get(scores.system)) for scores in every]
    rows.sort(key=lambda r: (r["metric"], r["rank"] is None, r["rank"], -(r["value"] or 0.0), r["system"]))
    result: dict[str, Any] = finite({"day": day, "rows": rows, "pairs": pairs})
    write_json(night.folder / "leaderboard.json", result)
    return result


def _pairs(
    night: Night, baselines: Baselines, metric: str, own: list[Scores]
) -> tuple[dict[str, set[str]], list[dict[str, Any]]]:
    """System -> systems that are better beyond doubt; and those pairs."""
    tests = []
    for one, other in combinations(own, 2):
        shared = baselines.pairs(Baseline("", night, other.system), one)
        if shared is None or shared.n == 0:
            continue
        gain = change_in(shared)
        loss = change_in(Pairs(shared.before, shared.after, shared.old, shared.new))
        if gain and loss:
            better, worse, change = (one, other, gain) if gain.value > 0 else (other, one, loss)
            p = min(1.0, 2 * min(gain.p_loss, loss.p_loss))
            tests.append((better.system, worse.system, abs(change.value), p))
    adjusted = holm([p for *_, p in tests]) if tests else []
    above: dict[str, set[str]] = {scores.system: set() for scores in own}
    found = []
    for (upper, lower, difference, _), p in zip(tests, adjusted, strict=True):
        if p <= 0.05:
            above[lower].add(upper)
            found.append({"metric": metric, "better": upper, "worse": lower, "difference": difference, "p": p})
    return above, found


def _row(
    night: Night,
    summary: dict[str, Any],
    scores: Scores,
    above: dict[str, set[str]],
    own: list[Scores],
    stale: str | None,
) -> dict[str, Any]:
    system, metric = scores.system, scores.metric
    figures = summary.get("systems", {}).get(system, {})
    overall = figures.get("metrics", {}).get(metric, {}).get("overall", {})
    if figures.get("requests") and overall:
        overall = headline(figures, metric)
    identity = night.judge_of(metric).get("identity", {}) if is_judged(metric) else {}
    ranked = bool(scores.counted.any()) and stale is None
    better = above.get(system, set())
    tied = [o.system for o in own if o is not scores and o.counted.any() and above[o.system] == better]
    note = f"not ranked with the others: {stale}" if stale else None if ranked else "no scored answer"
    if ranked and tied:
        note = "cannot be told apart from " + ", ".join(sorted(tied))
    return {
        "metric": metric,
        "rank": len(better) + 1 if ranked else None,
        "system": system,
        **{k: overall.get(k) for k in ("value", "low", "high", "n", "coverage", "corrected")},
        "version": night.manifest.systems[system],
        "release": night.manifest.release,
        "sample": night.manifest.sample,
        "judge": identity.get("judge"),
        "template": identity.get("template_hash"),
        "cost_usd": (figures.get("cost") or {}).get("judge_usd"),
        "latency_p50_ms": figures.get("latency", {}).get("p50_ms", {}).get("value"),
        "day": night.day,
        "note": note,
    }


def leaderboard_table(found: dict[str, Any]) -> dict[str, Any]:
    """The leaderboard as `{title, columns, rows}` for a terminal."""
    columns = ["metric", "rank", "system", "value", "low", "high", "n", "coverage", "judge", "note"]
    rows = [[r[c] for c in columns] for r in found["rows"]]
    release = found["rows"][0]["release"] if found["rows"] else "none"
    return {"title": f"Leaderboard of {found['day']} · release {release}", "columns": columns, "rows": rows}
