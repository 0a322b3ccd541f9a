"""`ragbench failures`: failing cases with the judge's feedback, from the store alone."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.night_tables import select
from ragbench_dagster.settings import ANSWERED, is_judged
from ragbench_dagster.store import Workspace, finite
from ragbench_dagster.text.format import safe_terminal

MOST_TEXT = 2_000  # characters shown of a question, an answer or a feedback


def failing_cases(
    ws: Workspace,
    day: str,
    metric: str | None = None,
    category: str | None = None,
    system: str | None = None,
    limit: int = 20,
) -> list[dict[str, Any]]:
    """The failing cases of a night, worst first; nothing is run.

    Returns:
        `{example_id, system, metric, category, status, score, value, weight, query, response, feedback}` each;
        text is stripped of control characters and workflow commands, and cut at 2,000 characters.

    Raises:
        UserError: no such night, system or metric.
    """
    night = Night.open(ws, day)
    for name, wanted, known in (
        ("system", system, night.systems),
        ("metric", metric, sorted({m for _, m in night.scores})),
    ):
        if wanted is not None and wanted not in known:
            raise UserError(f"--{name} {safe_terminal(wanted)}: not in this night; it has {', '.join(known) or 'none'}")
    rows = select(night, limit, system=system, metric=metric, category=category)
    ids = {row["example_id"] for row in rows}
    queries = _column(night.examples, "query", ids)
    answers = {
        name: _column(night.responses(name, ["example_id", "response"]), "response", ids)
        for name in sorted({row["system"] for row in rows})
    }
    return [
        finite(
            {
                **{k: row[k] for k in ("example_id", "system", "metric", "status", "score", "value", "weight")},
                "category": safe(row["category"]),
                "query": safe(queries.get(row["example_id"])),
                "response": safe(answers[row["system"]].get(row["example_id"])),
                "feedback": safe(row["feedback"]),
            }
        )
        for row in rows
    ]


def safe(text: str | None) -> str | None:
    if text is None:
        return None
    cut = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + " [cut]"
    return safe_terminal(cut)


def _column(table: Any, name: str, ids: set[str]) -> dict[str, str]:
    pairs = zip(table["example_id"].to_pylist(), table[name].to_pylist(), strict=True)
    return {example: value for example, value in pairs if example in ids}


# One hint for each low or failed metric: where to look first.

LOW = {"hit_rate": 0.7, "mrr": 0.5, "recall": 0.7}  # where retrieval is worth a look, on common benchmarks
LOW_PASSING = 0.8  # passing share of a judge metric below which a hint is shown

HINTS = {
    ANSWERED: "look at what the system raised (ragbench failures --metric answered) and at its time-outs",
    "faithfulness": "look for truncated contexts and a prompt that does not tie the answer to them",
    "relevancy": "look at what was retrieved: the answer or its contexts miss the question",
    "correctness": "compare failing answers with the labels: wrong passage retrieved, or outdated expected answers",
    "answer_relevancy": "look at the prompt: answers that ramble or refuse score low",
    "context_relevancy": "look at top-k and chunk size: contexts bring more than the question needs",
    "semantic_similarity": "compare wording with the expected answers: other length or language scores low",
    "guideline": "read the failing answers beside the rules: one unclear rule often explains most of them",
    "hit_rate": "look at the embedding model, chunk size and top-k: the right passage is not found",
    "recall": "raise top-k or make chunks larger: some of the expected passages are missing",
    "precision": "lower top-k or re-rank: most retrieved passages are not expected ones",
    "mrr": "add or tune a re-ranker: the right passage is found, but far down",
    "ap": "add or tune a re-ranker: expected passages stand far down",
    "ndcg": "add or tune a re-ranker: the best passages do not stand first",
}


def hint(metric: str, metrics: dict[str, Any], failed: bool = False) -> str | None:
    """What to look at for `metric` of one system; None where it is neither low nor failed.

    Args:
        metrics: the system's `metrics` of the summary.
        failed: the gate failed this metric.
    """
    if metric == ANSWERED:
        return HINTS[ANSWERED] if failed else None
    base = metric.partition("@")[0]
    row = metrics[metric]["overall"]
    value = row["value"]
    if value is None:
        return None
    if base == "mrr" and (gap := _far_below_hits(metric, value, metrics)):
        return gap
    limit = LOW.get(base, LOW_PASSING if is_judged(metric) else 0.0)
    worst = worst_category(metrics[metric])
    if not failed and value >= limit:
        return None
    advice = HINTS.get(base, "read the failing cases: ragbench failures --metric " + metric)
    if worst is not None:
        return f"{advice}; {worst} stands out: are its documents stale or missing?"
    return advice


def _far_below_hits(metric: str, value: float, metrics: dict[str, Any]) -> str | None:
    """Found but ranked low: MRR at half the hit rate or less."""
    for name, other in metrics.items():
        if name.startswith("hit_rate@"):
            hits = other["overall"]["value"]
            if hits is not None and hits >= 0.3 and value <= hits / 2:
                return HINTS["mrr"]
    return None


def worst_category(found: dict[str, Any]) -> str | None:
    """The category whose whole interval lies below the overall one's, the lowest of them."""
    low = found["overall"]["low"]
    if low is None:
        return None
    below = [
        (row["value"], row["part"])
        for row in found["slices"]
        if row["dimension"] == "category" and row["high"] is not None and row["high"] < low
    ]
    return f"category {min(below)[1]}" if below else None
