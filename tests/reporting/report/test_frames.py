"""`ragbench_dagster.load(night)` for notebooks, and the store read by DuckDB and polars alone."""

import subprocess
import sys
from datetime import date

import pytest

import ragbench_dagster
from ragbench_dagster.errors import UserError
from tests.support.pages import finish

LOGGED = "systems: {logged: {kind: logged}}\nmetrics: [faithfulness]\n"
DAY = "2026-11-20"


@pytest.fixture
def made(maker):
    made = maker(LOGGED, n=40)
    made.night({"logged": {"faithfulness": [1.0] * 30 + ["error"] * 10}, "two": {"faithfulness": [0.0] * 40}})
    made.calibrated(["faithfulness"])
    finish(made.ws, DAY)
    (made.ws.root / "ragbench.yaml").write_text(LOGGED, "utf-8")
    return made


def test_a_night_as_pandas_frames(made):
    night = ragbench_dagster.load(DAY, workspace=made.ws.root)
    assert night.scores.query("metric == 'faithfulness'").groupby("system")["value"].mean().to_dict() == {
        "logged": 1.0,
        "two": 0.0,
    }
    assert night.scores["value"].isna().sum() == 10
    assert list(night.examples["example_id"]) == made.ids
    assert len(night.responses) == len(night.timings) == 80
    assert set(night.responses["system"]) == {"logged", "two"}
    assert night.gate.verdict == "inconclusive"
    assert night.manifest.release == made.release
    row = night.summary.query("system == 'two' and metric == 'faithfulness' and dimension == 'overall'").iloc[0]
    assert row["value"] == 0.0
    assert set(night.leaderboard["system"]) == {"logged", "two"}


def test_the_last_night_is_the_default_and_dates_are_taken(made, monkeypatch):
    monkeypatch.setenv("RAGBENCH_WORKSPACE", str(made.ws.root))
    assert ragbench_dagster.load().day == DAY
    assert ragbench_dagster.load(date(2026, 11, 20)).day == DAY


def test_a_night_that_never_ran_is_one_line(made):
    with pytest.raises(UserError, match=r"no night 2026-01-01 .*the last night is 2026-11-20"):
        ragbench_dagster.load("2026-01-01", workspace=made.ws.root)


def test_duckdb_reads_the_store_directly(made):
    duckdb = pytest.importorskip("duckdb", reason="no duckdb")
    path = made.ws.store / "nights" / "*" / "scores.parquet"
    sql = f"select system, avg(value) from '{path}' where metric = 'faithfulness' group by system order by system"
    assert duckdb.sql(sql).fetchall() == [("logged", 1.0), ("two", 0.0)]


def test_polars_reads_the_store_directly(made):
    polars = pytest.importorskip("polars", reason="no polars")
    table = polars.scan_parquet(made.ws.night(DAY) / "scores.parquet").filter(polars.col("metric") == "faithfulness")
    means = table.group_by("system").agg(polars.col("value").mean()).sort("system").collect()
    assert means.rows() == [("logged", 1.0), ("two", 0.0)]


def test_importing_the_package_alone_stays_cheap():
    code = "import sys, ragbench_dagster; print([m for m in ('pandas', 'pyarrow', 'pydantic', 'dagster') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_the_package_lacks_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        ragbench_dagster.lode  # noqa: B018
