"""The most asked questions are asked several times a night, where a margin counts requests.

One question of 11 % of the traffic that is answered right 9 times in 10 would make any margin of 3 points a toss of
a coin. Ask 0 is a question's answer everywhere; the others only say how much its answers vary from ask to ask.

    store/nights/DAY/SYSTEM/extra_responses.parquet   answers of asks 1, 2, ... (records.RESPONSES with `ask`)
    store/nights/DAY/SYSTEM/extra_retrieval.parquet   their retrieval metrics (records.SCORES with `ask`)
    store/nights/DAY/SYSTEM/extra_verdicts.parquet    the judge's verdicts on them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.records import RESPONSES, SCORES
from ragbench_dagster.settings import Settings
from ragbench_dagster.store import read_table, write_table

ASKS = 5  # asks of a heavy question a night
HEAVY = 0.005  # share of the requests from which a question is heavy
EXTRA_RESPONSES = pa.schema([*RESPONSES, ("ask", pa.int64())])  # sorted by ask, example_id
EXTRA_SCORES = pa.schema([*SCORES, ("ask", pa.int64())])  # sorted by ask, metric, example_id
_PARTS = ("responses", "retrieval", "verdicts")


def heavy_examples(weights: Mapping[str, float]) -> list[str]:
    """The questions that at least .005 of the requests ask, sorted.

    Args:
        weights: example_id to the requests that it stands for, of all questions that count.
    """
    total = sum(weights.values())
    return sorted(name for name, weight in weights.items() if total > 0 and weight >= HEAVY * total)


def asks_for(settings: Settings, fixed: bool, sampled: bool = False) -> int:
    """How often a heavy question is asked a night.

    Args:
        settings: their thresholds say whether a margin counts requests.
        fixed: the system always gives a question the same answer.
        sampled: the night has a sample of the release's questions, which says nothing per request.
    """
    per_request = any(t.margin is not None and t.per != "question" for t in settings.thresholds.values())
    return ASKS if per_request and not (fixed or sampled) else 1


def heavy_of(examples: pa.Table) -> list[str]:
    """The heavy questions of a release (records.EXAMPLES); conflicts and paraphrases count for nothing."""
    rows = examples.select(["example_id", "weight", "conflict", "synthetic"]).to_pylist()
    return heavy_examples({r["example_id"]: r["weight"] for r in rows if not (r["conflict"] or r["synthetic"])})


def extra_file(folder: Path, part: str) -> Path:
    """Where the further asks of a system's night stand; part is responses, retrieval or verdicts."""
    return folder / f"extra_{part}.parquet"


def drop_extras(folder: Path) -> None:
    """Remove what a night with further asks left, where this one has none."""
    for part in _PARTS:
        extra_file(folder, part).unlink(missing_ok=True)


def by_ask(folder: Path, part: str = "responses") -> Iterator[tuple[int, pa.Table]]:
    """(ask, its rows) of the further asks of a night; nothing where there are none."""
    path = extra_file(folder, part)
    if not path.exists():
        return
    table = read_table(path)
    for number in sorted(set(table["ask"].to_pylist())):
        yield number, table.filter(pc.equal(table["ask"], number)).drop_columns(["ask"])


def with_ask(table: pa.Table, number: int) -> pa.Table:
    """The table with a column that says which ask its rows are of."""
    return table.append_column("ask", pa.array([number] * table.num_rows, pa.int64()))


def replaced(responses: pa.Table, own: pa.Table) -> pa.Table:
    """The night's answers with those of one ask in the place of ask 0: what a system is told by stays as it is."""
    kept = responses.filter(pc.invert(pc.is_in(responses["example_id"], own["example_id"].combine_chunks())))
    return pa.concat_tables([kept.select(RESPONSES.names), own.select(RESPONSES.names)])


def score_asks(folder: Path, responses: pa.Table, score: Callable[[pa.Table], pa.Table]) -> pa.Table | None:
    """Retrieval metrics of the further asks (EXTRA_SCORES); None where there are none.

    Args:
        folder: the system's night.
        responses: the night's answers, those of ask 0.
        score: scores a table of answers.
    """
    parts = []
    for number, own in by_ask(folder):
        table = score(replaced(responses, own))
        mine = pc.is_in(table["example_id"], own["example_id"].combine_chunks())
        parts.append(with_ask(table.filter(mine), number))
    return pa.concat_tables(parts).cast(EXTRA_SCORES) if parts else None


def write_extra(folder: Path, part: str, tables: list[tuple[int, pa.Table]], metadata: dict[str, str]) -> None:
    """Write the rows of the further asks; nothing where there are none."""
    if tables:
        table = pa.concat_tables([with_ask(table, number) for number, table in tables])
        write_table(extra_file(folder, part), table, metadata)


def jobs(examples: list[dict[str, Any]], heavy: list[str], asks: int) -> Iterator[tuple[dict[str, Any], int]]:
    """(example, ask) of a night."""
    wanted = set(heavy)
    for example in examples:
        for number in range(asks if example["example_id"] in wanted else 1):
            yield example, number
