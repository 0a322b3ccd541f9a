"""A night in MLflow: one run, updated and never doubled, nothing refused and nothing cut in silence."""

import dataclasses
import os
import shutil

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.tracking import track
from ragbench_dagster.reporting.tracking.record import joined
from ragbench_dagster.settings import Tracking
from ragbench_dagster.store import Workspace
from tests.support.tracked_nights import ODD, tracked_night, write_night

DAY = "2026-11-20"


@pytest.fixture(scope="session")
def mlflow():
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    return pytest.importorskip("mlflow", reason="no MLflow: pip install 'ragbench-dagster[mlflow]'")


@pytest.fixture(scope="session")
def empty_database(mlflow, tmp_path_factory):
    """MLflow takes seconds to make the tables of a new database: they are made once and copied."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def made(maker, empty_database):
    """The maker of a tracked night, so that the test can write it again."""
    found = []

    def make(*args, **more):
        found.append(maker(*args, **more))
        return found[-1]

    ws = tracked_night(make, "mlflow_uri: sqlite")
    shutil.copy(empty_database, ws.store / "mlflow.db")
    return found[0]


def runs_of(mlflow, ws):
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{ws.store / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("ragbench")
    return client, client.search_runs([experiment.experiment_id])


def test_without_settings_nothing_is_tracked(maker):
    ws = tracked_night(maker, "")
    assert track(ws, DAY) == {"tracker": "none configured"}


def test_the_night_is_one_run_with_conditions_figures_and_files(mlflow, made):
    told = track(made.ws, DAY)
    client, runs = runs_of(mlflow, made.ws)
    assert [r.info.run_id for r in runs] == [told["mlflow_run"]]
    run = runs[0]
    assert told["mlflow_change"] == "created"
    assert run.info.run_name == DAY
    assert run.info.status == "FINISHED"
    assert run.data.params == {"night": DAY}
    tags = run.data.tags
    assert tags["ragbench.release"] == made.release
    assert tags["ragbench.template.faithfulness"] == "hash-one"
    assert tags["ragbench.code_version"] == "0.1.0"
    assert tags["ragbench.system.logged"] == "v1"
    assert tags["ragbench.gate"] == "inconclusive"
    metrics = run.data.metrics
    assert metrics["logged/faithfulness"] == pytest.approx(0.8)
    # Wilson 1927 for 80 of 100, as statsmodels' proportion_confint(80, 100, method="wilson") gives it
    assert metrics["logged/faithfulness/low"] == pytest.approx(0.7111708, abs=1e-6)
    assert metrics["logged/faithfulness/high"] == pytest.approx(0.8666331, abs=1e-6)
    assert metrics["logged/hit_rate_at_5"] == pytest.approx(0.8)
    assert metrics[joined("logged", ODD)] == pytest.approx(0.8)
    assert metrics["logged/latency_p95_ms"] == 100
    names = {a.path for a in client.list_artifacts(run.info.run_id)}
    assert {"report.html", "summary.json", "gate.json", "conditions.json"} <= names


def test_a_metric_without_a_value_is_left_out_not_nan(mlflow, made):
    track(made.ws, DAY)
    _, (run,) = runs_of(mlflow, made.ws)
    assert "logged/ndcg_at_10" not in run.data.metrics
    assert "logged/ndcg_at_10/n" in run.data.metrics
    assert all(value == value for value in run.data.metrics.values())


def test_the_same_night_again_changes_nothing(mlflow, made):
    first = track(made.ws, DAY)
    again = track(made.ws, DAY)
    assert again == {**first, "mlflow_change": "unchanged"}
    client, (run,) = runs_of(mlflow, made.ws)
    assert len(client.get_metric_history(run.info.run_id, "logged/faithfulness")) == 1


def test_a_changed_template_and_code_version_update_the_run(mlflow, made):
    """mlflow#7152: 'Changing param values is not allowed' failed the night that was materialised again."""
    first = track(made.ws, DAY)
    # the value falls: by value alone MLflow would go on showing the higher one
    write_night(made, DAY, 0.6, templates={"faithfulness": "hash-two"}, settings_hash="other")
    told = track(made.ws, DAY)
    assert told["mlflow_change"] == "updated"
    assert told["mlflow_run"] == first["mlflow_run"]
    _, (run,) = runs_of(mlflow, made.ws)
    assert run.data.tags["ragbench.template.faithfulness"] == "hash-two"
    assert run.data.metrics["logged/faithfulness"] == pytest.approx(0.6)


def test_a_tag_that_is_gone_goes_from_the_run(mlflow, made):
    track(made.ws, DAY)
    write_night(made, DAY, 0.8, templates={"relevancy": "hash-three"})
    track(made.ws, DAY)
    _, (run,) = runs_of(mlflow, made.ws)
    assert "ragbench.template.faithfulness" not in run.data.tags
    assert run.data.tags["ragbench.template.relevancy"] == "hash-three"


def test_a_metric_that_lost_its_value_replaces_the_run(mlflow, made):
    write_night(made, DAY, 0.8, ndcg=0.5)
    first = track(made.ws, DAY)
    write_night(made, DAY, 0.8, ndcg=None)
    told = track(made.ws, DAY)
    assert told["mlflow_change"] == "replaced"
    _, (run,) = runs_of(mlflow, made.ws)
    assert run.info.run_id == told["mlflow_run"] != first["mlflow_run"]
    assert "logged/ndcg_at_10" not in run.data.metrics


def test_a_killed_update_is_made_again(mlflow, made):
    track(made.ws, DAY)
    client, (run,) = runs_of(mlflow, made.ws)
    client.delete_tag(run.info.run_id, "ragbench.content")
    identity = {f"ragbench.{k}": run.data.tags[f"ragbench.{k}"] for k in ("night", "workspace", "sample")}
    client.create_run(run.info.experiment_id, tags=identity)
    assert track(made.ws, DAY)["mlflow_change"] == "updated"
    _, runs = runs_of(mlflow, made.ws)
    assert len(runs) == 1


def test_older_nights_join_after_newer_ones(mlflow, made):
    track(made.ws, DAY)
    write_night(made, "2026-11-12", 0.5)
    track(made.ws, "2026-11-12")
    _, runs = runs_of(mlflow, made.ws)
    assert [r.info.run_name for r in sorted(runs, key=lambda r: r.info.start_time)] == ["2026-11-12", DAY]


def test_a_long_tag_says_that_it_was_cut_and_the_artefact_holds_it_all(mlflow, made, tmp_path):
    write_night(made, DAY, 0.8, judge={"provider": "embedded", "guidelines": ["rule " * 2_000]})
    told = track(made.ws, DAY)
    client, (run,) = runs_of(mlflow, made.ws)
    tag = run.data.tags["ragbench.judge_settings"]
    assert len(tag) <= 5_000
    assert tag.endswith("conditions.json)")
    path = client.download_artifacts(told["mlflow_run"], "conditions.json", str(tmp_path))
    with open(path, encoding="utf-8") as file:
        assert "rule " * 2_000 in file.read()


@pytest.mark.parametrize("uri", ["./mlruns", "file:///tmp/mlruns", "mlruns"])
def test_a_plain_folder_is_refused_with_the_way_out(maker, uri):
    """MLflow 3.7 and later raise for it: 'maintenance mode'."""
    with pytest.raises(UserError, match=r"^tracking\.mlflow_uri: .*sqlite"):
        track(tracked_night(maker, f"mlflow_uri: '{uri}'"), DAY)


def test_a_server_that_is_down_is_one_line_without_its_address(mlflow, maker, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("RAGBENCH_TEST_PASSWORD", "secret-of-the-test")
    ws = tracked_night(maker, "mlflow_uri: 'http://name:${RAGBENCH_TEST_PASSWORD}@127.0.0.1:9'")
    with pytest.raises(UserError, match=r"^tracking\.mlflow_uri: MLflow cannot be used") as fault:
        track(ws, DAY)
    assert "secret-of" not in str(fault.value)
    assert "\n" not in str(fault.value)


def test_tables_alone_leave_the_questions_here(mlflow, made):
    settings = made.ws.settings.model_copy(update={"tracking": Tracking(mlflow_uri="sqlite", artifacts="tables")})
    ws = dataclasses.replace(made.ws, settings=settings)
    assert isinstance(ws, Workspace)
    told = track(ws, DAY)
    client, _ = runs_of(mlflow, ws)
    names = {a.path for a in client.list_artifacts(told["mlflow_run"])}
    assert "report.html" not in names
    assert "summary.json" in names
