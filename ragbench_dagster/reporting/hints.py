"""One hint for each low or failed metric: where to look first."""

from __future__ import annotations

from typing import Any

from ragbench_dagster.settings import ANSWERED, is_judged

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
