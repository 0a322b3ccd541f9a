"""The worst questions: answers with a failing verdict, with all a reader needs to see why. Bounded in size.

A page holds a limited number of them, whatever the night's size: the worst of every system, metric and status in
turn, so that each filter finds something, until the count or the bytes are used up. What is left out is counted,
and `ragbench failures` prints it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.night_results import Night
from ragbench_dagster.reporting.report.page_data import Case, Cases, Mark, Passage
from ragbench_dagster.reporting.report.sanitise import flat, shown
from ragbench_dagster.store import digest

MOST_CASES = 300
MOST_BYTES = 1_200_000  # of the cases, markup included
MOST_PASSAGES = 6
QUERY, ANSWER, REFERENCE, PASSAGE, FEEDBACK, TURN = 1_200, 2_400, 900, 700, 600, 400  # characters

Key = tuple[str, str]  # system, example_id


class Lost(NamedTuple):
    """A failing verdict."""

    metric: str
    status: str
    share: float  # of the mark; 0 where there is no score: nothing is known to be lost
    weight: float


def worst_cases(night: Night) -> Cases:
    """The cases of the page, worst first."""
    marks = failing_rows(night.table)
    order = _chosen(marks)
    reader = _Reader(night, marks, order)
    rows, size = [], 0
    for key in order:
        case = reader.case(key)
        size += _bytes(case)
        if size > MOST_BYTES:
            break
        rows.append(case)
    rows.sort(key=lambda c: (-c.harm, c.system, c.example_id))
    return Cases(
        rows=rows,
        failing=len(marks),
        verdicts=sum(len(found) for found in marks.values()),
        systems=sorted({c.system for c in rows}),
        metrics=sorted({m.metric for c in rows for m in c.marks if m.failing}),
        categories=sorted({c.category for c in rows}),
        statuses=sorted({m.status for c in rows for m in c.marks if m.failing}),
    )


def failing_counts(table: pa.Table) -> dict[Key, int]:
    """(system, metric) -> answers below full marks, or without a score that they could have had."""
    failing = table.filter(_failing(table))
    counted = failing.group_by(["system", "metric"]).aggregate([("example_id", "count")])
    return {(r["system"], r["metric"]): r["example_id_count"] for r in counted.to_pylist()}


def failing_rows(table: pa.Table) -> dict[Key, list[Lost]]:
    """(system, example) -> every failing verdict on that answer."""
    found: dict[Key, list[Lost]] = defaultdict(list)
    failing = table.filter(_failing(table)).select(["system", "example_id", "metric", "status", "value", "weight"])
    for row in failing.to_pylist():
        share = 0.0 if row["value"] is None else 1 - row["value"]
        found[row["system"], row["example_id"]].append(Lost(row["metric"], row["status"], share, row["weight"] or 0.0))
    return found


def _failing(table: pa.Table) -> Any:
    scored = pc.and_(pc.equal(table["status"], "scored"), pc.fill_null(pc.less(table["value"], 1.0), False))
    lost = pc.invert(pc.is_in(table["status"], pa.array(["scored", "not_applicable"])))
    return pc.or_(scored, lost)


def _chosen(marks: dict[Key, list[Lost]]) -> list[Key]:
    """Keys in the order in which they are taken: the worst of each (system, metric, status) in turn."""
    harm = {key: _harm(found) for key, found in marks.items()}
    queues: dict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for key in sorted(marks, key=lambda k: (-harm[k], k)):
        for lost in marks[key]:
            queues[key[0], lost.metric, lost.status].append(key)
    taken: dict[Key, None] = {}
    longest = max((len(q) for q in queues.values()), default=0)
    for place in range(longest):
        for name in sorted(queues):
            if place < len(queues[name]):
                taken.setdefault(queues[name][place])
        if len(taken) >= MOST_CASES:
            break
    return list(taken)[:MOST_CASES]


def _harm(found: list[Lost]) -> float:
    """Marks lost over all metrics, times the requests that the question stands for."""
    return sum(lost.share for lost in found) * _weight(found)


def _weight(found: list[Lost]) -> float:
    return max((lost.weight for lost in found), default=0.0)


def _bytes(case: Case) -> int:
    texts = [case.query, case.response, case.expected_answer, *case.history, *(p.text for p in case.passages)]
    texts += [m.feedback for m in case.marks]
    # The question stands twice; the rest is the markup around a case, a verdict and a passage.
    markup = len(case.query) + 1_500 + 160 * len(case.marks) + 90 * len(case.passages)
    return sum(len(t.encode("utf-8", "replace")) for t in texts) + markup


class _Reader:
    """Texts of the chosen cases; each table is read once and only for them."""

    def __init__(self, night: Night, marks: dict[Key, list[Lost]], order: list[Key]) -> None:
        wanted = pa.array(sorted({example for _, example in order}), pa.string())
        self.marks = marks
        self.examples = {r["example_id"]: r for r in _only(_examples(night), wanted)}
        self.responses: dict[Key, dict[str, Any]] = {}
        for system in sorted({system for system, _ in order}):
            for row in _only(night.responses(system), wanted):
                self.responses[system, row["example_id"]] = row
        self.scores: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        for row in _only(night.table, wanted):
            self.scores[row["system"], row["example_id"]].append(row)

    def case(self, key: Key) -> Case:
        system, name = key
        example = self.examples.get(name, {})
        answer = self.responses.get(key, {})
        failing = {lost.metric for lost in self.marks[key]}
        expected = [flat(i, 200) for i in example.get("expected_doc_ids") or []]
        passages, more = _passages(answer, set(expected))
        scores = self.scores[key]
        return Case(
            anchor=f"q-{digest(system, name, size=6)}",
            example_id=flat(name, 80),
            system=system,
            category=flat(scores[0]["category"] or "(none)", 80),
            query=shown(example.get("query"), QUERY),
            history=[shown(turn, TURN) for turn in (example.get("history") or [])[-4:]],
            response=shown(answer.get("response"), ANSWER),
            status=answer.get("status") or "missing",
            error=flat(answer.get("error") or "", 200),
            expected_answer=shown(example.get("expected_answer"), REFERENCE),
            expected_ids=expected[:20],
            passages=passages,
            more_passages=more,
            marks=[_mark(row, row["metric"] in failing) for row in scores],
            weight=_weight(self.marks[key]),
            requests=example.get("count") or 0,
            harm=_harm(self.marks[key]),
            in_gate=all(row["in_gate"] is not False for row in scores),
        )


def _examples(night: Night) -> pa.Table:
    try:
        return night.examples
    except UserError:  # the gate says what is wrong with the release; the page shows what is left
        return pa.table({"example_id": pa.array([], pa.string())})


def _only(table: pa.Table, wanted: pa.Array) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.filter(pc.is_in(table["example_id"], wanted)).to_pylist()
    return rows


def _mark(row: dict[str, Any], failing: bool) -> Mark:
    return Mark(row["metric"], row["status"], row["score"], row["value"], failing, shown(row["feedback"], FEEDBACK))


def _passages(answer: dict[str, Any], expected: set[str]) -> tuple[list[Passage], int]:
    """Retrieved ids with their texts, in rank order; ids may be missing, and so may texts."""
    ids, texts = answer.get("retrieved_ids") or [], answer.get("contexts") or []
    count = max(len(ids), len(texts))
    found = []
    for place in range(min(count, MOST_PASSAGES)):
        name = flat(ids[place], 200) if place < len(ids) and ids[place] is not None else ""
        text = shown(texts[place], PASSAGE) if place < len(texts) else ""
        found.append(Passage(name, text, bool(name) and name in expected))
    return found, count - len(found)
