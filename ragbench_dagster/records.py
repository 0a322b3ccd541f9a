"""The rows that pass between stages, and their Arrow schemas. No logic of any stage belongs here.

Tables are sorted by their first column(s) and hold only what is a pure function of the inputs; times,
latencies and attempts live in tables of their own (design rule 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

# Of a verdict. `failed`: the system failed its user, which counts as 0; all others but `scored` are unknown.
Status = Literal["scored", "failed", "unparsable", "refused", "truncated", "error", "not_applicable", "over_budget"]
STATUSES: tuple[Status, ...] = (
    "scored", "failed", "unparsable", "refused", "truncated", "error", "not_applicable", "over_budget",
)  # fmt: skip
COUNTED: tuple[Status, ...] = ("scored", "failed")  # rows that figures are made of
# Of an answer.
AnswerStatus = Literal["scored", "error", "timed_out", "not_applicable", "refused"]
FAILED: tuple[AnswerStatus, ...] = ("error", "timed_out")  # the system failed; asked again

_text = pa.string()
_texts = pa.list_(pa.string())
SOURCE_NODES = pa.list_(pa.struct([("node_id", _text), ("score", pa.float64()), ("text", _text)]))

# sampled_requests[D]: which lines were chosen, never what they say.
SAMPLED = pa.schema(
    [
        ("request_key", _text),  # keyed hash of request_id
        ("file", _text),  # scrubbed path below traffic.source
        ("line", pa.int64()),  # 1-based, LF only
        ("weight", pa.float64()),  # n / kept of its category and day
        ("follow_up", pa.bool_()),  # not the first turn of its conversation
    ]
)

# quarantine of a day
QUARANTINE = pa.schema([("file", _text), ("line", pa.int64()), ("reason", _text)])

# scrubbed_requests[D]: sorted by request_key
SCRUBBED = pa.schema(
    [
        ("request_key", _text),
        ("user_key", _text),  # keyed hash or null
        ("conversation_key", _text),  # keyed hash or null
        ("day", pa.date32()),  # UTC
        ("timestamp", pa.timestamp("us", "UTC")),
        ("query", _text),
        ("history", _texts),  # earlier turns, scrubbed; empty for a first turn
        ("response", _text),  # null: the log holds none
        ("source_nodes", SOURCE_NODES),  # null: the log holds none
        ("latency_ms", pa.float64()),
        ("category", _text),
        ("model", _text),
        ("weight", pa.float64()),
        ("follow_up", pa.bool_()),
        ("question", pa.bool_()),  # False: nothing but placeholders remained
    ]
)

# examples of a release: sorted by example_id
EXAMPLES = pa.schema(
    [
        ("example_id", _text),  # "e" + hash of the normalised form (with history)
        ("query", _text),  # canonical form
        ("history", _texts),
        ("category", _text),
        ("expected_doc_ids", _texts),  # null: unlabelled
        ("expected_grades", pa.list_(pa.float64())),  # beside expected_doc_ids; null: binary
        ("expected_answer", _text),
        ("label_level", _text),  # "document", "chunk" or null
        ("conflict", pa.bool_()),  # same form, different labels: listed, left out of the gate
        ("synthetic", pa.bool_()),  # a paraphrase: left out of the gate
        ("count", pa.int64()),  # requests in the cluster
        ("weight", pa.float64()),  # sum of the requests' weights
        ("first_day", pa.date32()),
        ("last_day", pa.date32()),
    ]
)

# every normalised form of a release's clusters: sorted by form; finds tonight's logged answers
FORMS = pa.schema([("form", _text), ("example_id", _text)])

# <S>/responses[D]: sorted by example_id
RESPONSES = pa.schema(
    [
        ("example_id", _text),
        ("status", _text),  # scored (= answered), error, timed_out, not_applicable, refused
        ("response", _text),
        ("contexts", _texts),
        ("retrieved_ids", pa.list_(pa.string())),  # null ids keep their rank
        ("retrieved_scores", pa.list_(pa.float64())),
        ("answer_hash", _text),  # of response, contexts and ids
        ("error", _text),  # class and short reason, never text under test
    ]
)

# <S>/timings[D]: the system's own time, outside the same-bytes rule
TIMINGS = pa.schema(
    [
        ("example_id", _text),
        ("latency_ms", pa.float64()),
        ("first_token_ms", pa.float64()),
        ("limit_ms", pa.float64()),  # of an answer that timed out: it took longer than this; else null
        ("started", pa.timestamp("us", "UTC")),  # when the call began that gave the answer; null: no call
    ]
)

# the scores of one stage of a system: one row per example and metric; sorted by metric, example_id
SCORES = pa.schema(
    [
        ("system", _text),
        ("metric", _text),  # hit_rate@5, faithfulness, ...
        ("example_id", _text),
        ("status", _text),
        ("score", pa.float64()),  # the evaluator's own scale; null unless scored
        ("passing", pa.bool_()),  # null for retrieval metrics
        ("value", pa.float64()),  # what tables average: passing share, or the retrieval score
        ("weight", pa.float64()),
        ("category", _text),
        ("in_gate", pa.bool_()),  # False: label conflict or synthetic
        ("feedback", _text),
        ("key", _text),  # ledger key, null for retrieval metrics
    ]
)

# score_table[D]: all of them; sorted by system, metric, example_id
SCORE_TABLE = pa.schema(
    [
        *SCORES,
        ("count", pa.int64()),  # sampled requests that the question stands for; their weights add up to `weight`
        ("cluster", pa.int64()),  # questions about one thing share a number (dataset.families)
    ]
)

# asks.parquet: every ask of the questions that a night asks several times; sorted by all but the last two
ASK_TABLE = pa.schema(
    [
        ("system", _text),
        ("metric", _text),
        ("example_id", _text),
        ("ask", pa.int64()),  # 0: the answer that stands in the score table
        ("status", _text),
        ("value", pa.float64()),
    ]
)

# <S>/requests[D] of logged answers: sampled requests of the last seven days; sorted by request_key
REQUESTS = pa.schema(
    [
        ("request_key", _text),
        ("day", pa.date32()),
        ("category", _text),
        ("weight", pa.float64()),  # requests that it stands for
        ("asker", _text),  # keyed hash of the user, else of the conversation, else the request's
    ]
)

# requests.parquet: production's scores; sorted by system, metric, request_key
REQUEST_TABLE = pa.schema(
    [
        ("system", _text),
        ("metric", _text),
        ("request_key", _text),
        ("status", _text),
        ("value", pa.float64()),
        *list(REQUESTS)[1:],
        ("key", _text),  # ledger key
    ]
)


@dataclass(frozen=True, slots=True)
class Item:
    """One answer to be graded."""

    example_id: str
    query: str
    response: str
    contexts: tuple[str, ...] = ()
    reference: str | None = None  # several accepted answers are separated by "/"
    history: tuple[str, ...] = ()
    second: str | None = None  # the other system's answer, pairwise only


@dataclass(frozen=True, slots=True)
class Verdict:
    """One evaluator's typed result. `score` and `passing` are None unless status is `scored`."""

    status: Status
    score: float | None = None
    passing: bool | None = None
    feedback: str = ""
    raw: str = ""  # the judge's reply, kept in the ledger only
    served_model: str | None = None
    fingerprint: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    attempts: int = 0  # HTTP requests made; 0 for the embedded judge
    latency_ms: float = 0.0  # the provider's own time
    wait_ms: float = 0.0  # queueing and back-off
    details: dict[str, Any] = field(default_factory=dict)  # re-asked, floating, self_judged, ...
