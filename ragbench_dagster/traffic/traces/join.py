"""Which span of a trace is its request, and what the others add to it.

The root is the row of the trace itself, else the span without a parent, else one whose parent was not
exported. Its question, answer, session and duration are the request's; passages come from the retriever spans
in the order of time, or from the last reranker where there is one. How spans are read belongs to `langfuse`
and `openinference`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ragbench_dagster.traffic.model import LogRequest, Node, RowError, Span

TRACE = "TRACE"  # the kind of a row that stands for a whole trace


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


def root_of(is_trace: Sequence[bool], own: Sequence[Any], parents: Sequence[Any], asked: Sequence[bool]) -> int:
    """Position of the root: the first candidate with a question, else the first candidate.

    Args:
        is_trace, own, parents: as for `candidates`.
        asked: whether a span holds a question.
    """
    found = candidates(is_trace, own, parents) or list(range(len(own)))
    return next((at for at in found if asked[at]), found[0])


def join(spans: list[Span]) -> LogRequest:
    """The request of one trace.

    Args:
        spans: all spans of the trace, each once, in the order of files and lines.

    Raises:
        RowError: no root has a question.
    """
    parents = [s.parent_id for s in spans]
    at = root_of(
        [s.kind == TRACE for s in spans], [s.span_id for s in spans], parents, [bool(s.question) for s in spans]
    )
    root = spans[at]
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
