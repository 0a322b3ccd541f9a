"""The workspace's Dagster instance: people's dagster.yaml stays and holds, and damage is one line."""

import os
import sqlite3

import dagster as dg
import pytest
import yaml

from ragbench_dagster.errors import UserError
from ragbench_dagster.orchestration.instance import CONFIG, damaged_databases, disk_faults, open_instance, prepare_home
from ragbench_dagster.store import Workspace


@pytest.fixture
def ws(tmp_path, monkeypatch):
    for name in ("DAGSTER_HOME", "RAGBENCH_WORKSPACE", "DAGSTER_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "")
    mask = os.umask(0o022)
    yield Workspace.open(tmp_path)
    os.umask(mask)


def written(ws, text):
    ws.dagster_home.mkdir(exist_ok=True)
    (ws.dagster_home / "dagster.yaml").write_text(text)


def test_a_new_workspace_gets_ours_and_an_old_one_the_newest(ws):
    assert prepare_home(ws).read_text() == CONFIG
    written(ws, CONFIG.replace("max_concurrent_runs: 1", "max_concurrent_runs: 9"))
    assert prepare_home(ws).read_text() == CONFIG


def test_what_people_wrote_stays_byte_for_byte_and_holds(ws, tmp_path):
    """It was overwritten at every start, so a storage set there was silently not used."""
    base = tmp_path / "elsewhere"
    base.mkdir()
    text = f"# ours since 2024\nstorage:\n  sqlite: {{base_dir: '{base}'}}\n"
    written(ws, text)
    with open_instance(ws) as instance:
        assert not instance.telemetry_enabled  # the keys that they left open are ours
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 1
        assert type(instance.compute_log_manager).__name__ == "NoOpComputeLogManager"
        instance.get_runs()
    assert (base / "history" / "runs.db").exists()
    assert not (ws.dagster_home / "history").exists()
    assert (ws.dagster_home / "dagster.yaml").read_text() == text


def test_a_key_of_theirs_is_theirs_alone(ws):
    written(ws, "run_queue: {max_concurrent_runs: 4}\ntelemetry: {enabled: true}\n")
    merged = yaml.safe_load(prepare_home(ws).read_text())
    assert merged["telemetry"] == {"enabled": True}
    assert "concurrency" not in merged
    with open_instance(ws) as instance:
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 4


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, "a: [", "- a", "telemetry: 5", "storage: {nonsense: {}}", "unknown_key: 1",
     "run_launcher: {module: nobody.has.this, class: A}"],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_one_line(ws, text):
    written(ws, text)
    with pytest.raises(UserError, match=r"^\.dagster/dagster\.yaml: ") as fault:
        open_instance(ws)
    assert "\n" not in str(fault.value)
    assert (ws.dagster_home / "dagster.yaml").read_text() == text


DATABASES = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("damage", ["garbage", "cut", "another database"])
def test_a_damaged_database_is_one_line_that_names_it(ws, name, damage):
    with open_instance(ws) as instance:
        instance.get_runs()
    path = ws.dagster_home / name
    for log in path.parent.glob(f"{path.name}-*"):
        log.unlink()
    data = path.read_bytes()
    if damage == "another database":
        path.unlink()
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
            other.execute("INSERT INTO alembic_version VALUES ('ffffffffffff')")
    else:
        path.write_bytes(b"x" * 8192 if damage == "garbage" else data[: len(data) // 3])
    said = []
    try:
        with disk_faults(ws), open_instance(ws) as instance:
            instance.get_runs()
            instance.all_instigator_state()
            instance.get_event_records(dg.EventRecordsFilter(dg.DagsterEventType.ASSET_MATERIALIZATION), limit=1)
    except UserError as fault:
        said.append(str(fault))
    assert said or damage == "cut"  # what is read may lie in the part that is left
    for line in said:
        assert "damaged; move it away" in line
        assert "\n" not in line
        assert str(path if damage == "garbage" else ws.dagster_home) in line
    for path in damaged_databases(ws) if damage == "garbage" else []:
        path.unlink()  # what the line says
        with open_instance(ws) as instance:
            assert instance.get_runs() == []


def test_a_postgresql_that_is_not_there_is_one_line_without_its_password(ws):
    written(
        ws,
        "storage:\n  postgres:\n    postgres_url: postgresql://ragbench:geheim@127.0.0.1:1/x\n",
    )
    with pytest.raises(UserError, match=r"^\.dagster/dagster\.yaml: Dagster cannot be opened") as fault:
        open_instance(ws)
    assert "geheim" not in str(fault.value)
