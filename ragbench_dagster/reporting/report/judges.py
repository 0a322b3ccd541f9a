"""The judge's own table, latency and cost: what the figures of the night rest on."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.reporting.report.charts import histogram_svg
from ragbench_dagster.reporting.report.page_data import Chart, Figure, JudgeRow, Latency
from ragbench_dagster.reporting.report.sanitise import flat, milliseconds, number, percent

FIGURES = ("accuracy", "balanced_accuracy", "sensitivity", "specificity", "kappa")


def judge_rows(calibration: dict[str, Any], embedded: dict[str, bool]) -> list[JudgeRow]:
    """One row for each judged metric.

    Args:
        embedded: metric -> True where the embedded judge grades it.
    """
    found = []
    for metric, facts in sorted((calibration.get("metrics") or {}).items()):
        identity, drift = facts.get("identity") or {}, facts.get("drift") or {}
        ends = facts.get("ci") or {}
        figures = []
        for name in FIGURES:
            low, high = ends.get(name) or (None, None)
            figures.append((name.replace("_", " "), Figure(facts.get(name), low, high)))
        found.append(
            JudgeRow(
                metric=metric,
                judge=flat(identity.get("judge") or "unknown", 120),
                weak=embedded.get(metric, False),
                template=flat(identity.get("template_hash") or "", 16),
                n=facts.get("n") or 0,
                table={k: int(v) for k, v in (facts.get("table") or {}).items()},
                figures=figures,
                reason=flat(facts.get("reason") or "", 200),
                drift=drift.get("state") or "unknown",
                drift_text=_drift_text(drift),
                probes=_probes(facts.get("probes")),
                closed=[flat(c.get("reason") if isinstance(c, dict) else c, 240) for c in facts.get("closed") or []],
                usable=facts.get("usable"),
            )
        )
    return found


def _drift_text(drift: dict[str, Any]) -> str:
    causes = "; ".join(map(str, drift.get("causes") or []))
    notes = "; ".join(map(str, drift.get("notes") or []))
    if drift.get("rows"):
        at = drift.get("alarm_at")
        count = f"{drift.get('line') or ''}, alarm " + ("never" if at is None else f"from {at}")
        return flat("; ".join(x for x in (causes or count, notes) if x), 300)
    return flat(drift.get("message") or causes or notes, 300)


def _probes(probes: dict[str, Any] | None) -> str:
    if not probes or not probes.get("n"):
        return "not probed"
    blocked = f", {probes['blocked']} blocked by the provider" if probes.get("blocked") else ""
    return f"{probes.get('fooled', 0)} of {probes['n']} fooled it ({percent(probes.get('share'))}){blocked}"


def latencies(summary: dict[str, Any]) -> list[Latency]:
    """Each system's own time, without queueing and back-off."""
    found = []
    for place, (name, system) in enumerate(summary.get("systems", {}).items()):
        times, cost = system.get("latency") or {}, system.get("cost") or {}
        found.append(
            Latency(
                system=name,
                n=times.get("n") or 0,
                p50=Figure.of(times.get("p50_ms")),
                p95=Figure.of(times.get("p95_ms")),
                p99=Figure.of(times.get("p99_ms")),
                mean=times.get("mean_ms"),
                first_token_p50=(times.get("first_token") or {}).get("p50_ms"),
                answers=sorted((times.get("answers") or {}).items()),
                judge_usd=cost.get("judge_usd"),
                per_question_usd=cost.get("per_question_usd"),
                chart=_histogram(name, place, times),
            )
        )
    return found


def _histogram(name: str, place: int, times: dict[str, Any]) -> Chart | None:
    bins = times.get("histogram")
    if not bins or not bins.get("counts"):
        return None
    edges, counts = bins["edges_ms"], bins["counts"]
    lines = [(q, times[f"{q}_ms"]["value"]) for q in ("p50", "p95") if (times.get(f"{q}_ms") or {}).get("value")]
    says = f"{times['n']:,} answers between {milliseconds(edges[0])} and {milliseconds(edges[-1])}"
    says += "".join(f"; {q} {milliseconds(v)}" for q, v in lines)
    rows = [[number(a, 1), number(b, 1), n] for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]
    svg = histogram_svg(edges, counts, lines, f"var(--s{place % 6 + 1})")
    return Chart(f"latency-{place}", f"Latency of {flat(name, 60)}", svg, says, ["from ms", "to ms", "answers"], rows)
