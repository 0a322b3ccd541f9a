"""Metric cards, slices by harm, change split: the summary's figures as the page shows them."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.metrics import is_judged
from ragbench_dagster.reporting.report.page_data import Card, Figure, Slice, Split, Standing
from ragbench_dagster.reporting.report.sanitise import flat, percent
from ragbench_dagster.results import GateDecision

MOST_SLICES = 60
ORDER = {"fail": 0, "inconclusive": 1, "pass": 2, "": 3}
METHODS = {
    "labels": "from people's labels on tonight's answers",
    "calibration": "by the judge's errors on the calibration set",
    "audit": "by people's labels on the last 28 days' answers",
    "humans_only": "people's labels alone",
}
STATUS_WORDS = {
    "not_applicable": "not applicable", "over_budget": "over budget", "error": "errors", "unparsable": "unparsable",
    "refused": "refused", "truncated": "truncated", "failed": "failures of the system, each counted as 0",
}  # fmt: skip


def cards(
    summary: dict[str, Any],
    gate: GateDecision | None,
    order: list[str],
    failing: dict[tuple[str, str], int],
    embedded: dict[str, bool],
) -> list[Card]:
    """A card for each metric, in the settings' order.

    Args:
        failing: (system, metric) -> answers below full marks.
        embedded: metric -> graded by the embedded judge.
    """
    systems = summary.get("systems", {})
    known = {metric for system in systems.values() for metric in system["metrics"]}
    wanted = [m for m in order if m in known] + sorted(known - set(order))
    found = []
    for metric in wanted:
        standings = [
            standing(name, metric, system["metrics"][metric], gate, failing.get((name, metric), 0))
            for name, system in systems.items()
            if metric in system["metrics"]
        ]
        # What the gate decides on comes first.
        standings.sort(key=lambda s: (s.verdict == "", s.system))
        verdict = min((s.verdict for s in standings), key=ORDER.__getitem__, default="")
        found.append(Card(metric, flat(metric), embedded.get(metric, False), standings, verdict))
    return found


def standing(name: str, metric: str, figures: dict[str, Any], gate: GateDecision | None, failing: int) -> Standing:
    row = figures["overall"]
    corrected, correction = corrected_figure(row)
    delta, delta_text = _delta(row)
    floor, ceiling, verdict = _limits(gate, name, metric)
    raw = Figure.of(row)
    spread = row.get("mean_score") is not None and row.get("p50") is not None
    return Standing(
        system=name,
        metric=metric,
        raw=raw,
        n=row["n"],
        coverage=row["coverage"],
        nothing="" if raw.value is not None else _nothing(row),
        statuses=[(STATUS_WORDS.get(s, s), n) for s, n in row["statuses"].items() if s != "scored"],
        judged=is_judged(metric),
        corrected=corrected,
        correction=correction,
        per_request=Figure.of(row.get("per_request")),
        per_request_corrected=_known((row.get("per_request") or {}).get("corrected")),
        ppi=_known(figures.get("ppi")),
        mean_score=Figure(row["p50"], row["p10"], row["p90"]) if spread else None,
        mean=row.get("mean_score"),
        delta=delta,
        delta_text=delta_text,
        note=flat(row.get("note") or "", 200),
        floor=floor,
        ceiling=ceiling,
        verdict=verdict,
        failing=failing,
        hint=flat(figures.get("hint") or "", 300),
        clusters=row.get("clusters"),
        independent=row.get("independent"),
        unit_range=all(v is None or 0 <= v <= 1 for v in (raw.value, raw.low, raw.high)),
    )


def corrected_figure(row: dict[str, Any]) -> tuple[Figure | None, str]:
    """The value corrected for the judge's errors with the way it was done, or None with the reason why not."""
    found = row.get("corrected")
    if not found:
        return None, ""
    reason = flat(found.get("reason") or "", 200)
    if found.get("value") is None:
        return None, reason or "no correction was possible"
    way = METHODS.get(found.get("method"), found.get("method") or "")
    note = flat(found.get("note") or "", 200)
    return Figure.of(found), "; ".join(x for x in (way, reason, note) if x)


def _known(row: dict[str, Any] | float | None) -> Figure | None:
    figure = Figure.of(row)
    return figure if figure.value is not None else None


def _nothing(row: dict[str, Any]) -> str:
    """Why a metric has no value, from its statuses."""
    counts = {s: n for s, n in row["statuses"].items() if s != "scored" and n}
    if not counts:
        return "nothing to score"
    if set(counts) == {"not_applicable"}:
        return "not applicable to any question: are there labels, answers and contexts for it?"
    return "nothing scored: " + ", ".join(f"{n:,} {STATUS_WORDS.get(s, s)}" for s, n in counts.items())


def _delta(row: dict[str, Any]) -> tuple[Figure | None, str]:
    found = row.get("delta")
    if not found:
        return None, ""
    if found.get("not_comparable"):
        return None, f"not compared: {flat(found['not_comparable'], 160)}"
    if found.get("value") is None:
        return None, ""
    return Figure.of(found), f"against {flat(found.get('baseline'), 60)} on {found.get('n') or 0:,} shared questions"


def _limits(gate: GateDecision | None, system: str, metric: str) -> tuple[float | None, float | None, str]:
    """Floor and ceiling of the overall tests of a system's metric, and the worst of their verdicts."""
    own = [
        t for t in (gate.rows if gate else [])
        if t.system == system and t.metric == metric and t.part == "overall"
    ]  # fmt: skip
    limits = {t.kind: t.limit for t in own}
    verdict = min((t.verdict for t in own), key=ORDER.__getitem__, default="")
    return limits.get("floor"), limits.get("ceiling"), verdict


def worst_slices(summary: dict[str, Any], gate: GateDecision | None) -> tuple[list[Slice], int]:
    """Slices by harm, the worst first, and how many were left out.

    Harm is how many questions more would do well if the slice did as well as its system does overall:
    (overall - value) x n. It weighs how far a slice is below by how many questions it holds.
    """
    tests = {(t.system, t.metric, t.part): t.verdict for t in (gate.rows if gate else [])}
    found = []
    for name, system in summary.get("systems", {}).items():
        for metric, figures in system["metrics"].items():
            overall = figures["overall"]["value"]
            for row in figures["slices"]:
                if row["value"] is None or overall is None:
                    continue
                delta, _ = _delta(row)
                found.append(
                    Slice(
                        name, metric, row["dimension"], row["part"], Figure.of(row), overall, row["n"],
                        (overall - row["value"]) * row["n"], delta, tests.get((name, metric, row["part"]), ""),
                    )
                )  # fmt: skip
    found.sort(key=lambda s: (-(s.harm or 0), s.system, s.metric, s.dimension, s.part))
    return found[:MOST_SLICES], max(0, len(found) - MOST_SLICES)


def splits(summary: dict[str, Any]) -> list[Split]:
    """Changes since the baseline, split by cause; the largest first."""
    found = []
    for name, system in summary.get("systems", {}).items():
        for metric, figures in system["metrics"].items():
            change = figures.get("change")
            if not change:
                continue
            parts = [(key, Figure.of(change.get(key))) for key in ("total", "system", "judge", "dataset", "unscored")]
            found.append(Split(name, metric, flat(change.get("baseline"), 60), change.get("n_shared") or 0, parts))
    return sorted(found, key=lambda s: (-abs(s.parts[0][1].value or 0.0), s.system, s.metric))


def coverage_words(coverage: float | None, statuses: list[tuple[str, int]]) -> str:
    """`96 % scored (12 errors, 3 refused)`."""
    lost = ", ".join(f"{n:,} {word}" for word, n in statuses if n)
    return f"{percent(coverage)} scored" + (f" ({lost})" if lost else "")
