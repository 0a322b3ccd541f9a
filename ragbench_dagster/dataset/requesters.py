"""Who asked what, as the store knows it: finding a person's stored requests, and taking them out of their days.

A day whose text retention removed keeps `asked.parquet`: keyed hashes of who asked and of the form of what was asked,
so that a person's requests can be found in the releases for as long as these stay.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragbench_dagster.dataset.canonical import form_of, normalise
from ragbench_dagster.store import Workspace, read_json, read_table, write_json, write_table
from ragbench_dagster.traffic.suppression import Mark, Suppression, text_mark

ASKED = pa.schema(
    [
        ("request_key", pa.string()),
        ("user_key", pa.string()),
        ("conversation_key", pa.string()),
        ("form_key", pa.string()),  # keyed hash of the normalised form; null where the request is no example
        ("weight", pa.float64()),
    ]
)
_COLUMNS = [
    "request_key", "user_key", "conversation_key", "query", "history", "response", "latency_ms", "weight", "follow_up",
    "question", "category",
]  # fmt: skip
LONG = 12  # characters from which on a text inside another's history is no coincidence


@dataclass
class Theirs:
    """A person's stored requests."""

    days: dict[str, list[str]] = field(default_factory=dict)  # day: request keys
    marks: set[Mark] = field(default_factory=set)  # that keep them, and what they said, out of the logs
    forms: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # day: form key: weights
    texts: set[str] = field(default_factory=set)  # marks of their questions' spellings
    answers: set[str] = field(default_factory=set)  # marks of the answers they were given, with the latency

    @property
    def requests(self) -> int:
        return sum(map(len, self.days.values()))


def form_key(ws: Workspace, form: str) -> str:
    return ws.keyed("form\0" + form)


def answer_mark(ws: Workspace, response: str | None, latency_ms: float | None) -> str:
    return ws.keyed(f"answer\0{response}\0{latency_ms!r}")


def form_of_row(row: dict[str, Any]) -> str | None:
    """The form by which a stored request is an example's; None where it is none."""
    turns = row["history"] or []
    if (row["follow_up"] and not turns) or not row["question"]:
        return None
    return form_of(row["query"], turns) if turns else normalise(row["query"])


def stored_days(ws: Workspace) -> list[str]:
    """The days of which requests, or who asked them, are in the store."""
    return sorted({p.parent.name for n in ("scrubbed", "asked") for p in (ws.store / "traffic").glob(f"*/{n}.parquet")})


def rows_of(ws: Workspace, day: str) -> Iterator[dict[str, Any]]:
    """The scrubbed requests of a day; none where retention took them."""
    path = ws.traffic(day) / "scrubbed.parquet"
    if path.exists():
        for batch in read_table(path, _COLUMNS).to_batches(max_chunksize=4096):
            yield from batch.to_pylist()


def find_requests(ws: Workspace, marks: Collection[Mark]) -> Theirs:
    """Everything in the store that the persons, requests and texts of `marks` asked."""
    found, said = Theirs(marks=set(marks)), set[str]()
    listed = Suppression(ws, frozenset(marks))
    days = stored_days(ws)
    for first in (True, False):  # the second time with their conversations and what they said
        listed = listed if first else Suppression(ws, frozenset(found.marks))
        for day in days:
            for row in rows_of(ws, day):
                if row["request_key"] in found.days.get(day, ()):
                    continue
                if _is_theirs(row, listed) or (not first and _quotes(row, said)):
                    _note(ws, found, said, day, row)
            if not (ws.traffic(day) / "scrubbed.parquet").exists():
                _find_asked(ws, found, day)
    return found


def _is_theirs(row: dict[str, Any], listed: Suppression) -> bool:
    marks = listed.marks
    if ("user", row["user_key"]) in marks or ("request", row["request_key"]) in marks:
        return True
    talk, turns = row["conversation_key"], row["history"] or []
    if (turns and ("talk", talk) in marks) or (row["user_key"] is None and ("conversation", talk) in marks):
        return True
    return listed.covers_text((row["query"], row["response"], *turns))


def _quotes(row: dict[str, Any], said: set[str]) -> bool:
    return any(text in turn for turn in row["history"] or () for text in said)


def _note(ws: Workspace, found: Theirs, said: set[str], day: str, row: dict[str, Any]) -> None:
    found.days.setdefault(day, []).append(row["request_key"])
    if row["conversation_key"] is not None:
        found.marks.add(("talk", row["conversation_key"]))
        if ("user", row["user_key"]) in found.marks:
            found.marks.add(("conversation", row["conversation_key"]))
    elif ("user", row["user_key"]) not in found.marks:
        found.marks.add(("request", row["request_key"]))  # it quotes them: nothing else would keep it out
    said.update(t for t in (row["query"], row["response"]) if t and len(t) >= LONG)
    form = form_of_row(row)
    if form is not None:
        found.forms.setdefault(day, {}).setdefault(form_key(ws, form), []).append(row["weight"])
        found.texts.add(text_mark(ws, row["query"])[1])
    if row["response"] is not None:
        found.answers.add(answer_mark(ws, row["response"], row["latency_ms"]))


def _find_asked(ws: Workspace, found: Theirs, day: str) -> None:
    for row in read_table(ws.traffic(day) / "asked.parquet").to_pylist():
        theirs = ("user", row["user_key"]) in found.marks or ("request", row["request_key"]) in found.marks
        alone = row["user_key"] is None and ("conversation", row["conversation_key"]) in found.marks
        if (theirs or alone) and row["request_key"] not in found.days.get(day, ()):
            found.days.setdefault(day, []).append(row["request_key"])
            if row["form_key"] is not None:
                found.forms.setdefault(day, {}).setdefault(row["form_key"], []).append(row["weight"])


def remove_requests(ws: Workspace, day: str, keys: Collection[str]) -> int:
    """Take the requests out of the day's files; returns how many rows of text went. Done twice, it changes nothing."""
    gone = pa.array(sorted(keys), pa.string())
    folder, removed = ws.traffic(day), 0
    for name in ("asked", "sampled", "scrubbed"):
        path = folder / f"{name}.parquet"
        if not path.exists():
            continue
        table = read_table(path)
        kept = table.filter(pc.invert(pc.is_in(table["request_key"], value_set=gone)))
        if kept.num_rows == table.num_rows:
            continue
        metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
        if name == "scrubbed":
            (folder / "replaced.json").unlink(missing_ok=True)  # its counts hold what the person's texts said
            removed = table.num_rows - kept.num_rows
            facts = json.loads(metadata["facts"])
            facts |= {"rows": kept.num_rows, "questions": sum(kept["question"].to_pylist())}
            metadata["facts"] = json.dumps(facts, sort_keys=True)
        if name == "sampled":
            facts = read_json(folder / "facts.json") or {}
            lost = table.num_rows - kept.num_rows
            less = {n: max(0, facts[n] - lost) for n in ("sampled", "read") if n in facts}
            write_json(folder / "facts.json", {**facts, **less})
        write_table(path, kept, metadata)
    return removed


def keep_who_asked(ws: Workspace, day: str) -> None:
    """Write `asked.parquet` for a day whose text is to go."""
    rows = []
    for row in rows_of(ws, day):
        form = form_of_row(row)
        rows.append({**{n: row[n] for n in ("request_key", "user_key", "conversation_key", "weight")},
                     "form_key": None if form is None else form_key(ws, form)})  # fmt: skip
    write_table(ws.traffic(day) / "asked.parquet", pa.Table.from_pylist(rows, schema=ASKED))


def window_rows(ws: Workspace, day: str) -> Iterator[tuple[str, float, dict[str, Any] | None]]:
    """(form key, weight, row or None where only who asked is known) of a day's requests that are an example's."""
    path = ws.traffic(day) / "asked.parquet"
    if (ws.traffic(day) / "scrubbed.parquet").exists():
        for row in rows_of(ws, day):
            form = form_of_row(row)
            if form is not None:
                yield form_key(ws, form), row["weight"], {**row, "form": form}
    elif path.exists():
        for row in pq.read_table(path).to_pylist():
            if row["form_key"] is not None:
                yield row["form_key"], row["weight"], None
