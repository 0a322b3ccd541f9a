"""Which span of a trace is its request, and what the others add to it.

The root is the row of the trace itself, else the span without a parent, else one whose parent was not
exported. A retriever may be the root (an application that only searches, or that records its search alone): what it
searched for is then the user's question. Below a span of the application it is somebody's rewriting, and never is.
The root's question, answer, session and duration are the request's; passages come from the retriever spans
in the order of time, or from the last reranker where there is one. How spans are read belongs to `langfuse`
and `openinference`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ragbench_dagster.traffic.requests import LogRequest, Node, RowError, Span

TRACE = "TRACE"  # the kind of a row that stands for a whole trace
UNKNOWN = "UNKNOWN"  # of a span that is none of the application's: a web framework's, a database driver's
# How well a span's question is the user's: of two possible roots the one with more is taken.
NOT_ASKED, RERANKED, SEARCHED, ASKED = 0, 1, 2, 3


def rank_of(span: Span) -> int:
    """How well the question of a span is the user's, as a root."""
    if not span.question or not span.question.strip():
        return NOT_ASKED
    return {"RERANKER": RERANKED, "RETRIEVER": SEARCHED}.get(span.kind, ASKED)


def is_foreign(span: Span) -> bool:
    """Whether a span says nothing of the application: what is below it may be the root."""
    return span.kind == UNKNOWN and rank_of(span) == NOT_ASKED


def candidates(is_trace: Sequence[bool], own: Sequence[Any], parents: Sequence[Any]) -> list[int]:
    """Positions of the spans that may be the root, the most likely kind first.

    Args:
        is_trace: whether a span is the row of the trace itself.
        own: id of each span.
        parents: id of each span's parent; None or 0 for none.
    """
    traces = [at for at, whole in enumerate(is_trace) if whole]
    tops = [at for at, parent in enumerate(parents) if not parent and not is_trace[at]]
    known = set(own)
    orphans = [at for at, parent in enumerate(parents) if parent and parent not in known]
    return traces + tops + ([] if tops else orphans)


def root_of(
    is_trace: Sequence[bool],
    own: Sequence[Any],
    parents: Sequence[Any],
    asked: Sequence[int],
    foreign: Sequence[bool],
) -> int:
    """Position of the root: the first of the candidates that are asked best.

    Args:
        is_trace, own, parents: as for `candidates`.
        asked: `rank_of` each span.
        foreign: `is_foreign` of each span. Where no candidate is asked, the spans below those take their place.
    """
    found = candidates(is_trace, own, parents) or list(range(len(own)))
    level, seen = found, set[int]()
    while level and not any(asked[at] for at in level):
        through = {own[at] for at in level if foreign[at]}
        seen.update(level)
        level = [at for at, parent in enumerate(parents) if parent in through and at not in seen]
    return max(level, key=lambda at: asked[at]) if level else found[0]


def join(spans: list[Span]) -> LogRequest:
    """The request of one trace.

    Args:
        spans: all spans of the trace, each once, in the order of files and lines.

    Raises:
        RowError: no root has a question.
    """
    root = spans[
        root_of(
            [s.kind == TRACE for s in spans],
            [s.span_id for s in spans],
            [s.parent_id for s in spans],
            [rank_of(s) for s in spans],
            [is_foreign(s) for s in spans],
        )
    ]
    if not root.question:
        raise RowError("query: the root of the trace holds no question")
    top = next((s for s in spans if not s.parent_id and s.kind != TRACE), root)
    steps = sorted(spans, key=lambda s: s.start_us)
    extra = root.extra
    return LogRequest(
        line=root.line,
        part=root.part,
        digest=root.digest,
        time_us=root.start_us,
        naive=root.naive,
        request_id=extra.get("request_id") or root.trace_id,
        query=root.question,
        response=extra.get("response") or root.answer or top.answer,
        nodes=extra["source_nodes"] if "source_nodes" in extra else _passages(steps),
        latency_ms=extra["latency_ms"] if "latency_ms" in extra else _latency(root, top, steps),
        category=extra.get("category"),
        user_id=extra.get("user_id") or _first(s.user for s in (root, *steps)),
        model=extra.get("model") or _first(s.model for s in reversed(steps)),
        conversation_id=_first(s.session for s in (root, *steps)),
        history=root.history,
        repaired=any(s.repaired for s in spans),
    )


def _latency(root: Span, top: Span, steps: list[Span]) -> float | None:
    for span in (root, top):
        if span.end_us is not None:
            return (span.end_us - span.start_us) / 1000
        if span.latency_ms is not None:
            return span.latency_ms
    ends = [s.end_us for s in steps if s.end_us is not None]
    # A trace of which only inner spans were exported lasts from the first start to the last end.
    return (max(ends) - min(s.start_us for s in steps)) / 1000 if ends and root.kind == TRACE else None


def _passages(steps: list[Span]) -> tuple[Node, ...] | None:
    reranked = [s.documents for s in steps if s.kind == "RERANKER" and s.documents is not None]
    if reranked:
        return reranked[-1]
    found = [s.documents for s in steps if s.kind == "RETRIEVER" and s.documents is not None]
    return tuple(node for documents in found for node in documents) if found else None


def _first(values: Iterable[str | None]) -> str | None:
    return next((v for v in values if v), None)
