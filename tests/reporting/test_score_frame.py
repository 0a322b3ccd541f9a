"""The frame of scores and the tables made from it, beside the same rules written out row by row."""

import datetime as dt
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.errors import UserError
from ragbench_dagster.metrics import metric_of
from ragbench_dagster.records import ASK_TABLE, COUNTED, SCORE_TABLE
from ragbench_dagster.reporting import night_tables
from ragbench_dagster.reporting.estimates import make_row
from ragbench_dagster.reporting.night_results import score_frame, scores_of
from ragbench_dagster.reporting.summary import summary_tables
from ragbench_dagster.store import rows_table

KEYS = ("system", "metric", "example_id")
SHARE = st.none() | st.sampled_from([0.0, 0.1, 0.2, 0.7, 1.0])
ROW = st.fixed_dictionaries(
    {
        "system": st.sampled_from(["b", "a"]),
        "metric": st.sampled_from(["mrr@10", "faithfulness", "hit_rate@5"]),
        "example_id": st.sampled_from(["e1", "e10", "e2", "é", "Z"]),
        "status": st.sampled_from(["scored", "failed", "unparsable", "not_applicable"]),
        "score": SHARE,
        "value": SHARE,
        "weight": st.none() | st.sampled_from([0.5, 2.0]),
        "category": st.none() | st.sampled_from(["x", "y"]),
        "in_gate": st.none() | st.booleans(),
        "feedback": st.none() | st.just("because"),
        "key": st.none() | st.just("k"),
        "count": st.none() | st.integers(1, 9),
        "cluster": st.none() | st.integers(0, 3),
    }
)
ROWS = st.lists(ROW, max_size=25, unique_by=lambda row: tuple(row[k] for k in KEYS)).map(
    lambda rows: sorted(rows, key=lambda row: tuple(row[k] for k in KEYS))
)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        for kind in (FutureWarning, DeprecationWarning, RuntimeWarning):  # what pandas and numpy would say
            warnings.simplefilter("error", kind)
        yield


def value_of(row: dict[str, Any]) -> float | None:
    return row["value"] if row["status"] in COUNTED else None


@given(ROWS, st.data())
def test_the_arrays_of_a_metric_are_its_rows(rows, data):
    asked = [
        {**{k: row[k] for k in KEYS}, "ask": ask, "status": "scored", "value": data.draw(SHARE)}
        for row in rows
        for ask in range(data.draw(st.sampled_from([0, 0, 3])))
    ]
    asks = rows_table(asked, ASK_TABLE) if asked or data.draw(st.booleans()) else None
    frame = score_frame(rows_table(rows, SCORE_TABLE), asks)
    for (system, metric), part in frame.groupby(["system", "metric"], observed=True):
        scores = scores_of(system, metric, part, False)
        mine = [row for row in rows if (row["system"], row["metric"]) == (system, metric)]
        assert scores.ids.tolist() == [row["example_id"] for row in mine]
        assert scores.status.tolist() == [row["status"] for row in mine]
        assert scores.category.tolist() == [row["category"] for row in mine]
        assert scores.keys.tolist() == [row["key"] for row in mine]
        assert scores.in_gate.tolist() == [row["in_gate"] is not False for row in mine]
        assert scores.weight.tolist() == [1.0 if row["weight"] is None else row["weight"] for row in mine]
        assert scores.count.tolist() == [row["count"] or 1.0 for row in mine]
        assert [None if np.isnan(v) else v for v in scores.value] == [value_of(row) for row in mine]
        together = [row["cluster"] for row in mine]
        for i, one in enumerate(together):
            for k, other in enumerate(together):
                assert (scores.cluster[i] == scores.cluster[k]) == (i == k or (one is not None and one == other))
        for row, n, mean in zip(mine, scores.asks.tolist(), scores.per_request.tolist(), strict=True):
            values = [
                a["value"] for a in asked if a["value"] is not None and all(a[k] == row[k] for k in KEYS)
            ]  # fmt: skip
            if value_of(row) is None:
                assert (n, np.isnan(mean)) == (1, True)
            else:
                assert (n, mean) == (len(values) or 1, np.mean(values) if values else value_of(row))


def test_tables_of_before_count_and_cluster_existed_can_be_read():
    table = rows_table([{**dict.fromkeys(SCORE_TABLE.names), "system": "s", "metric": "m", "example_id": i,
                         "status": "scored", "value": 1.0} for i in ("a", "b")], SCORE_TABLE)  # fmt: skip
    scores = scores_of("s", "m", score_frame(table.drop_columns(["count", "cluster"])), False)
    assert scores.count.tolist() == [1.0, 1.0]
    assert len(set(scores.cluster.tolist())) == 2


@settings(deadline=None)
@given(ROWS, st.integers(0, 6), st.none() | st.just("a"), st.none() | st.just("mrr@10"), st.none() | st.just("x"))
def test_the_worst_cases_stand_in_order(rows, limit, system, metric, category):
    night: Any = SimpleNamespace(frame=score_frame(rows_table(rows, SCORE_TABLE)))
    wanted = {"system": system, "metric": metric, "category": category}
    failing = [
        row for row in rows
        if value_of(row) is not None and row["value"] < 1
        and all(value is None or row[name] == value for name, value in wanted.items())
    ]  # fmt: skip
    failing.sort(
        key=lambda r: (r["value"], -(r["weight"] or 0), r["score"] or 0, r["metric"], r["example_id"], r["system"])
    )
    chosen = night_tables.select(night, limit, **wanted)
    for case, row in zip(chosen, failing[:limit], strict=True):
        feedback = row["feedback"] or metric_of(row["metric"]).why(row["value"])
        assert case == {**{name: row[name] for name in ("system", *night_tables.CASE)}, "feedback": feedback}


@given(ROWS)
def test_the_statuses_of_a_part_are_counted(rows):
    frame = score_frame(rows_table(rows, SCORE_TABLE))
    for (system, metric), part in frame.groupby(["system", "metric"], observed=True):
        scores = scores_of(system, metric, part, False)
        row = make_row(scores, scores.category == "x", "category", "x", None)
        mine = [
            r for r in rows
            if (r["system"], r["metric"], r["category"]) == (system, metric, "x") and r["in_gate"] is not False
        ]  # fmt: skip
        assert list(row["statuses"].items()) == sorted(Counter(r["status"] for r in mine).items())
        assert row["n"] == sum(value_of(r) is not None for r in mine)


def night_of(columns: dict[str, Any], slices: list[str]) -> Any:
    n = len(next(iter(columns.values())))
    day = pa.array([None] * n, pa.date32())
    examples = pa.table({"example_id": [f"e{i}" for i in range(n)], "first_day": day, "last_day": day, **columns})
    return SimpleNamespace(examples=examples, ws=SimpleNamespace(settings=SimpleNamespace(slices=slices)))


VALUES = [
    (["a", None, "", "a"], ["a", "(none)", "(none)", "a"]),
    ([1, None, 2, 10**17 + 1], ["1", "(none)", "2", "100000000000000001"]),
    ([True, False, None, True], ["True", "False", "(none)", "True"]),
    ([0.5, 1.0, None, 1e300], ["0.5", "1.0", "(none)", "1e+300"]),
    ([["d"], [], None, ["d", "e"]], ["['d']", "[]", "(none)", "['d', 'e']"]),
    ([dt.date(2026, 1, 2), None, None, None], ["2026-01-02", "(none)", "(none)", "(none)"]),
    ([None, None, None, None], ["(none)"] * 4),
]


@pytest.mark.parametrize(("values", "parts"), VALUES)
def test_a_slice_may_be_a_column_of_any_type(values, parts):
    dims = night_tables.dimensions(night_of({"column": values}, ["column"]))
    assert dims["column"].tolist() == parts
    ids = np.array(["e3", "gone", "e0"], dtype=object)
    masks = {part: where.tolist() for _, part, where in night_tables.parts(SimpleNamespace(ids=ids), dims)}  # type: ignore[arg-type]
    assert masks.pop("overall") == [True] * 3
    assert list(masks) == sorted({parts[3], "(none)", parts[0]})
    for part, where in masks.items():
        assert where == [parts[3] == part, part == "(none)", parts[0] == part]


@pytest.mark.parametrize("n", [0, 3])
def test_without_slices_or_examples_there_is_the_whole(n):
    dims = night_tables.dimensions(night_of({"column": pa.array(["x"] * n, pa.string())}, []))
    scores: Any = SimpleNamespace(ids=np.array(["e0"], dtype=object))
    assert [part for _, part, _ in night_tables.parts(scores, dims)] == ["overall"]
    assert list(night_tables.dimensions(night_of({"c": pa.array(["x"] * n, pa.string())}, ["c"]))["c"]) == ["x"] * n


def test_the_smallest_of_many_parts_are_shown_together_and_ties_go_by_name():
    names = [f"p{i:02d}" for i in range(60)]
    dims = night_tables.dimensions(night_of({"c": [*reversed(names), "p59", "p58"]}, ["c"]))
    assert sorted(set(dims["c"])) == ["(all others)", *names[:48], "p58", "p59"]


def test_new_questions_are_those_of_the_last_seven_days():
    days = [dt.date(2026, 11, 15), dt.date(2026, 11, 9), dt.date(2026, 11, 8), None]
    night = night_of({"c": ["x"] * 4}, [])
    night.examples = night.examples.set_column(1, "first_day", pa.array(days, pa.date32()))
    night.examples = night.examples.set_column(2, "last_day", pa.array(days, pa.date32()))
    assert night_tables.dimensions(night)["age"].tolist() == ["new", "new", "known", "new"]


def test_a_slice_that_is_no_column_is_one_line():
    with pytest.raises(UserError, match="'nothing'"):
        night_tables.dimensions(night_of({"c": ["x"]}, ["nothing"]))


def test_a_night_without_a_summary_has_no_tables(maker):
    assert summary_tables(maker().ws, "2026-01-01") == []


def test_the_first_of_every_system_is_shown_before_the_second_of_any():
    rows = pd.DataFrame({"system": ["a", "a", "a", "b"], "x": [1, 2, 3, 4]})
    assert night_tables._in_turn(rows)["x"].tolist() == [1, 4, 2, 3]


def test_help_imports_neither_pandas_nor_llama_index():
    code = (
        "import sys\nfrom ragbench_dagster.cli import main\nsys.argv = ['ragbench', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('pandas', 'llama_index', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout[-300:] + done.stderr
