"""Nights one after the other on one instance: figures as of single fresh runs, and a store that prune keeps bounded.

The long version, with memory, is `tests/bench/bench_nights.py`.
"""

import json
import shutil

import pytest
from dagster import DagsterInstance
from typer.testing import CliRunner

from ragbench_dagster.cli import app
from ragbench_dagster.dataset.release import list_releases, load_release
from ragbench_dagster.dataset.requesters import find_requests
from ragbench_dagster.errors import UserError
from ragbench_dagster.orchestration.instance import prepare_home
from ragbench_dagster.reporting import retention
from ragbench_dagster.reporting.retention import outdated
from ragbench_dagster.store import Workspace, read_json
from tests.support.sample_workspace import sample_days

MORE = "dataset: {window_days: 2, refresh: daily, min_examples: 10}"
NIGHTS = 3


def command(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code in (0, 1, 3), (done.output, done.exception)
    return done.stdout


def figures(said: str) -> dict:
    """What `run --json` says of the night, times and calls apart."""
    found = json.loads(said)
    systems = {s: {m: v for m, v in ms.items() if "latency" not in m} for s, ms in found["systems"].items()}
    return {"release": found["release"], "systems": systems, "gate": found["gate"]["verdict"]}


@pytest.fixture
def short(monkeypatch):
    """Retention in days instead of weeks."""
    monkeypatch.setattr(retention, "LEAST_DAYS", 1)
    monkeypatch.setattr(retention, "BEFORE", 0)


@pytest.mark.slow
def test_nights_in_a_row_are_those_of_fresh_runs_and_prune_keeps_what_they_need(make_workspace, short):
    ws = make_workspace(days=NIGHTS + 2)
    text = (ws.root / "ragbench.yaml").read_text().replace("dataset: {min_examples: 10}", MORE)
    (ws.root / "ragbench.yaml").write_text(text)
    ws = Workspace.open(ws.root)
    days = sample_days()[-NIGHTS:]
    said = {day: figures(command("run", "-w", str(ws.root), "--date", day, "--json")) for day in days}
    fresh = make_workspace(days=NIGHTS + 2, name="fresh")
    (fresh.root / "ragbench.yaml").write_text(text)
    shutil.copy(ws.root / ".key", fresh.root / ".key")
    alone = figures(command("run", "-w", str(fresh.root), "--date", days[-1], "--json"))
    assert alone["release"] == said[days[-1]]["release"]
    assert alone["systems"] == said[days[-1]]["systems"]
    # Nights before the last go, but for the one that others are measured against; their releases and verdicts stay.
    releases, ledger = [r["id"] for r in list_releases(ws)], (ws.store / "ledger.db").stat().st_size
    needed = outdated(ws, 1).needed
    looked = json.loads(command("prune", "--keep-days", "1", "--dry-run", "--json", "-w", str(ws.root)))["removed"]
    assert len(list((ws.store / "nights").glob("2*"))) == NIGHTS
    removed = json.loads(command("prune", "--keep-days", "1", "--json", "-w", str(ws.root)))["removed"]
    assert {name: removed[name] for name in looked} == looked
    assert removed["nights"] == NIGHTS - 1 - len(needed)
    assert removed["days of traffic"] == 3
    assert removed["runs"] > 0
    assert sorted(p.name for p in (ws.store / "nights").glob("2*")) == sorted({*needed, days[-1]})
    assert [r["id"] for r in list_releases(ws)] == releases
    assert all(load_release(ws, name) for name in releases)
    assert (ws.store / "ledger.db").stat().st_size >= ledger
    # The kept night run again is what it was, nothing comes back from the logs, and nothing more goes.
    # Production's week reaches back the six days that this test's short retention does not keep.
    once_more, before = figures(command("run", "-w", str(ws.root), "--date", days[-1], "--json")), said[days[-1]]
    assert once_more["release"] == before["release"]
    assert once_more["systems"]["bm25"] == before["systems"]["bm25"]
    assert read_json(ws.traffic(sample_days()[-5]) / "facts.json")["pruned"]
    assert not (ws.traffic(sample_days()[-5]) / "scrubbed.parquet").exists()
    again = json.loads(command("prune", "--keep-days", "1", "--json", "-w", str(ws.root)))["removed"]
    assert (again["nights"], again["days of traffic"]) == (0, 0)
    # Who asked is still known where the text is gone.
    first = sample_days()[-5]
    asked = (ws.traffic(first) / "asked.parquet").exists()
    assert asked
    assert find_requests(ws, [("user", "nobody")]).requests == 0
    prepare_home(ws)
    with DagsterInstance.get() as instance:
        assert instance.get_runs()  # the night that was run again
    shards = {p.stem for p in (ws.dagster_home / "history" / "runs").glob("*-*.db")}
    assert len(shards) <= 2 + len(needed)


def test_too_few_days_and_no_night_are_one_line(make_workspace):
    ws = make_workspace(days=1)
    with pytest.raises(UserError, match="at least 28"):
        outdated(ws, 3)
    with pytest.raises(UserError, match="no night"):
        outdated(ws, 60)
