"""What is measured: one `Metric` each, and the registry, the only place that knows the names of metrics.

A new metric is one entry of `METRICS`: of retrieved ids with its formula, of answers with the evaluators that grade
it. Every other name is that of an evaluator which the user names in `judge.evaluators`. How a figure is estimated,
tested or shown belongs to `stats` and `reporting`. The reference for users is `docs/metrics.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Family = Literal["judged", "comparison", "retrieval", "availability", "latency", "cost"]

ANSWERED = "answered"  # share of questions that a system answers at all; measured every night, by no judge
COST = "cost_per_question_usd"
PAIRWISE = "pairwise"
DEFAULT = ("faithfulness", "relevancy", "correctness", "hit_rate@5", "mrr@10")  # of a file without `metrics`
_K = re.compile(r"[1-9][0-9]{0,3}")  # no 0, no sign, no leading zero: hit_rate@5 has one spelling
_EVALUATION = "ragbench_dagster.evaluation"


@dataclass(frozen=True, slots=True)
class Hits:
    """One question's relevant ids among the first k that were retrieved.

    Args:
        ranks: of the relevant ids, from 1, ascending.
        relevant: how many ids are relevant, retrieved or not.
        gains: the grade at each rank, 0 where the id is not expected.
        ideal: the grades of the expected ids, the highest first, at most k.
        k: ranks looked at.
    """

    ranks: Sequence[int]
    relevant: int
    gains: Sequence[float]
    ideal: Sequence[float]
    k: int


@dataclass(frozen=True, slots=True)
class Grading:
    """How answers are graded on a metric.

    Args:
        llm: `module:class` of the evaluator that asks an LLM, or needs none.
        embedded: `module:class` of the embedded judge's; "" where comparing words cannot judge it.
        probe: which injection probes fail it for certain: "wrong" answers, "off_topic" ones, or "" for none.
        stand_in: order in which its scores stand in for a judge that compares two answers; 0: never.
        reply_tokens: tokens of a usual reply, until the ledger knows better.
        calls: of the LLM for one item.
    """

    llm: str
    embedded: str = ""
    probe: Literal["", "wrong", "off_topic"] = ""
    stand_in: int = 0
    reply_tokens: int = 100
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured of a system.

    Args:
        base: the name without its k.
        family: who measures it, and how it is tested.
        documentation: one sentence on what a value means.
        hint: where to look first when it is low (or, of times and costs, high).
        version: raised when the same answer would get another value.
        k: ranks looked at, of a retrieval metric with its k.
        unit: of the figure: "share" of 0 to 1, "ms" or "USD".
        scale: lowest and highest score of its evaluator or formula.
        higher_is_better: which way is good.
        binary: each value is 0 or 1 by its meaning (passing, or a hit); a mean of graded scores is no share.
        low: a figure below it is worth a look, on common benchmarks.
        share_words: the share of requests in words, after "requests"; `{k}` is filled in.
        reason: what one low value means; `{base}`, `{k}`, `{value}` and `{rank}` (1 / value) are filled in.
        nothing: the same of a value of 0.
        found_by: the metric of the same ids that says what was found at all: half of it or less means a low rank.
        formula: the value of one question, of a retrieval metric.
        percentile: of answer times, of a latency metric.
        grading: the evaluators, of a judged metric of ours.
    """

    base: str
    family: Family
    documentation: str
    hint: str
    version: str = "1"
    k: int | None = None
    unit: Literal["share", "ms", "USD"] = "share"
    scale: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    binary: bool = False
    low: float = 0.0
    share_words: str = ""
    reason: str = "{base} of the first {k} is {value:.2f}"
    nothing: str = "no expected document among the first {k}"
    found_by: str = ""
    formula: Callable[[Hits], float] | None = None
    percentile: int | None = None
    grading: Grading | None = None

    @property
    def name(self) -> str:
        """As in settings and stored files: `hit_rate@5`, `faithfulness`."""
        return self.base if self.k is None else f"{self.base}@{self.k}"

    @property
    def judged(self) -> bool:
        """True where figures are verdicts of a judge or evaluator."""
        return self.family in ("judged", "comparison")

    @property
    def limited(self) -> bool:
        """True for times and costs, which have an upper limit in `thresholds` and are not listed under `metrics`."""
        return self.family in ("latency", "cost")

    def at(self, k: int) -> Metric:
        """The same retrieval metric over the first `k` ranks."""
        return replace(self, k=k)

    def why(self, value: float) -> str | None:
        """What a low value of one question means; None for judged metrics, which bring their own feedback."""
        if self.k is None:
            return None
        rank = round(1 / value) if value else 0
        return (self.reason if value else self.nothing).format(base=self.base, k=self.k, value=value, rank=rank)

    def of_requests(self) -> str:
        """What the requests did whose share is the figure: `answered right`."""
        return self.share_words.format(k=self.k) or f"that pass {self.name}"


def _judged(base: str, documentation: str, hint: str, grading: Grading, **more: object) -> Metric:
    """A metric of answers: its figure is the share that passes; 80 % is where a look begins to pay."""
    return Metric(base, "judged", documentation, hint, binary=True, low=0.8, grading=grading, **more)  # type: ignore[arg-type]


def _latency(percentile: int) -> Metric:
    return Metric(
        f"latency_p{percentile}_ms", "latency", f"{percentile} % of the answers came within this time.",
        "look at the slowest answers of responses.parquet, and at what the system waits for",
        unit="ms", scale=(0.0, math.inf), higher_is_better=False, percentile=percentile,
    )  # fmt: skip


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


# Retrieval formulas are trec_eval's: precision divides by k, not by the number returned; ap by all relevant ids
# (map_cut); ndcg's gain is linear, its discount log2(rank + 1).
METRICS: dict[str, Metric] = {
    metric.base: metric
    for metric in (
        _judged(
            "faithfulness", "The retrieved passages support what the answer says.",
            "look for truncated contexts and a prompt that does not tie the answer to them",
            Grading(
                f"{_EVALUATION}.judge.evaluators:Faithfulness", f"{_EVALUATION}.embedded.scoring:EmbeddedFaithfulness",
                probe="wrong", stand_in=2, reply_tokens=8,
            ),
        ),
        _judged(
            "relevancy", "Question, answer and passages are in line.",
            "look at what was retrieved: the answer or its contexts miss the question",
            Grading(
                f"{_EVALUATION}.judge.evaluators:Relevancy", f"{_EVALUATION}.embedded.scoring:EmbeddedRelevancy",
                probe="off_topic", stand_in=3, reply_tokens=8,
            ),
        ),
        _judged(
            "correctness", "The answer says what the expected answer says; 4 of 5 points pass.",
            "compare failing answers with the labels: wrong passage retrieved, or outdated expected answers",
            Grading(
                f"{_EVALUATION}.judge.evaluators:Correctness", f"{_EVALUATION}.embedded.scoring:EmbeddedCorrectness",
                probe="wrong", stand_in=1,
            ),
            scale=(1.0, 5.0), share_words="answered right",
        ),
        _judged(
            "answer_relevancy", "The answer is about the question; both points must be given.",
            "look at the prompt: answers that ramble or refuse score low",
            Grading(f"{_EVALUATION}.judge.evaluators:AnswerRelevancy", probe="off_topic", stand_in=4),
        ),
        _judged(
            "context_relevancy", "The passages suffice for the question; 3 of 4 points pass.",
            "look at top-k and chunk size: contexts bring more than the question needs",
            Grading(f"{_EVALUATION}.judge.evaluators:ContextRelevancy"),
        ),
        _judged(
            "guideline", "The answer keeps all rules of `judge.guidelines`.",
            "read the failing answers beside the rules: one unclear rule often explains most of them",
            Grading(f"{_EVALUATION}.judge.evaluators:Guideline"),
        ),
        _judged(
            "semantic_similarity", "Cosine of answer and expected answer, by a small model on this machine; 0.8 passes.",
            "compare wording with the expected answers: other length or language scores low",
            Grading(
                f"{_EVALUATION}.judge.imported:SemanticSimilarity", f"{_EVALUATION}.judge.imported:SemanticSimilarity"
            ),
            scale=(-1.0, 1.0),
        ),
        Metric(
            PAIRWISE, "comparison", "Which of two systems' answers is better, asked in both orders.",
            "read the pairs of systems in the report, under Leaderboard",
            grading=Grading(f"{_EVALUATION}.judge.preference_judge:Pairwise", reply_tokens=200, calls=2),
        ),
        Metric(
            "hit_rate", "retrieval", "1 where any of the first k is relevant, else 0.",
            "look at the embedding model, chunk size and top-k: the right passage is not found",
            binary=True, low=0.7, share_words="with an expected passage among the first {k}",
            formula=lambda hits: 1.0 if hits.ranks else 0.0,
        ),
        Metric(
            "mrr", "retrieval", "1 / rank of the first relevant id among the first k, else 0.",
            "add or tune a re-ranker: the right passage is found, but far down",
            low=0.5, found_by="hit_rate", reason="the first expected document stands at rank {rank}",
            formula=lambda hits: 1.0 / hits.ranks[0] if hits.ranks else 0.0,
        ),
        Metric(
            "precision", "retrieval", "Relevant ids among the first k, divided by k.",
            "lower top-k or re-rank: most retrieved passages are not expected ones",
            reason="{value:.0%} of the first {k} are expected", nothing="0% of the first {k} are expected",
            formula=lambda hits: len(hits.ranks) / hits.k,
        ),
        Metric(
            "recall", "retrieval", "Relevant ids among the first k, divided by all relevant ids.",
            "raise top-k or make chunks larger: some of the expected passages are missing",
            low=0.7, formula=lambda hits: len(hits.ranks) / hits.relevant,
        ),
        Metric(
            "ap", "retrieval", "Sum of precision@i over the ranks i <= k of relevant ids, divided by all relevant ids.",
            "add or tune a re-ranker: expected passages stand far down",
            formula=lambda hits: sum(count / rank for count, rank in enumerate(hits.ranks, 1)) / hits.relevant,
        ),
        Metric(
            "ndcg", "retrieval", "Discounted gain of the first k, divided by that of the best possible order; knows grades.",
            "add or tune a re-ranker: the best passages do not stand first",
            formula=lambda hits: _dcg(hits.gains) / _dcg(hits.ideal),
        ),
        Metric(
            ANSWERED, "availability", "The system answered at all, whatever it said.",
            "look at what the system raised (ragbench failures --metric answered) and at its time-outs",
            binary=True,
        ),
        *(_latency(percentile) for percentile in (50, 95, 99)),
        Metric(
            COST, "cost", "What judging one question of a system cost.",
            "look at the judge's model and prompts: ragbench estimate tells what a night will cost",
            unit="USD", scale=(0.0, math.inf), higher_is_better=False,
        ),
    )
}  # fmt: skip


def metric_of(name: str) -> Metric:
    """The metric that `name` means: `hit_rate@5`, `faithfulness`, or the user's own evaluator where it is no other."""
    base, _, k = name.partition("@")
    known = METRICS.get(base)
    if known is not None and known.family == "retrieval":
        if _K.fullmatch(k):
            return known.at(int(k))
    elif known is not None and base == name:
        return known
    hint = f"read the failing cases: ragbench failures --metric {name}"
    return Metric(name, "judged", "An evaluator of `judge.evaluators`.", hint, binary=True, low=0.8)


def is_known(name: str) -> bool:
    """True where `name` can stand under `metrics` without an evaluator of the user's."""
    metric = metric_of(name)
    return metric.k is not None or (metric.family == "judged" and metric.grading is not None)


def is_retrieval(name: str) -> bool:
    """True for a metric of retrieved ids, which names its k: `hit_rate@5`."""
    return metric_of(name).family == "retrieval"


def is_judged(name: str) -> bool:
    """True for a metric whose figures are verdicts of a judge or evaluator."""
    return metric_of(name).judged


def bases(family: Family) -> tuple[str, ...]:
    """The names of a family's metrics, without k."""
    return tuple(metric.base for metric in METRICS.values() if metric.family == family)


def formulas() -> list[tuple[str, Callable[[Hits], float]]]:
    """Name without k and formula of every retrieval metric."""
    return [(metric.base, metric.formula) for metric in METRICS.values() if metric.formula is not None]


def stand_ins() -> list[str]:
    """Metrics whose scores stand in for a judge that compares two answers, the best first."""
    graded = [(m.grading.stand_in, m.base) for m in METRICS.values() if m.grading is not None and m.grading.stand_in]
    return [base for _, base in sorted(graded)]


def unknown(name: str) -> str:
    """What to write instead of a name that is no metric: `, k is explicit: hit_rate@5`; "" where nothing is near."""
    from difflib import get_close_matches

    base = name.partition("@")[0]
    if base in bases("retrieval"):
        return f", k is explicit: {base}@5"
    near = get_close_matches(base, sorted(bases("judged")), 1)
    return f", did you mean {near[0]!r}?" if near else ""
