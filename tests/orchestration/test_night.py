"""The night on a real Dagster instance: caught up once, repeated without calls, changed by changed logs only."""

import gzip
import json
import shutil

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.orchestration.instance import open_instance
from ragbench_dagster.orchestration.runs import choose_day, run_night
from ragbench_dagster.results import GateDecision, Manifest
from ragbench_dagster.store import Workspace, read_json, read_table
from tests.support.sample_workspace import LAST, store_bytes


def runs_of(ws):
    """(job, first day, last day) of every run, oldest first."""
    found = []
    for run in reversed(open_instance(ws).get_runs()):
        tags = run.tags
        day = tags.get("dagster/partition")
        first = tags.get("dagster/asset_partition_range_start", day)
        found.append((run.job_name, first, tags.get("dagster/asset_partition_range_end", day)))
    return found


def test_a_new_workspace_catches_up_in_one_run_and_a_second_night_changes_nothing(make_workspace):
    ws = make_workspace(days=5)
    done = run_night(ws, LAST)
    assert done.caught_up == [("2026-11-18", "2026-11-21")]
    assert done.calls_system > 0
    assert done.calls_judge > 0
    assert runs_of(ws) == [("catch_up", "2026-11-18", "2026-11-21"), ("nightly", LAST, LAST)]
    gate = ws.result(LAST, GateDecision)
    assert gate.verdict == "inconclusive"  # there are no thresholds: nothing to decide
    before = store_bytes(ws)
    again = run_night(ws, LAST)
    assert (again.caught_up, again.calls_system, again.calls_judge) == ([], 0, 0)
    assert store_bytes(ws) == before


def test_checks_of_caught_up_days_are_reported_day_by_day(make_workspace):
    ws = make_workspace(days=3)
    run_night(ws, LAST)
    instance = open_instance(ws)
    import dagster as dg

    key = dg.AssetCheckKey(dg.AssetKey("scrubbed_requests"), "no_personal_data_left")
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
    assert {r.status.value for r in records} == {"SUCCEEDED"}
    assert len(records) == 3


def test_days_that_are_missing_are_run_again_one_run_a_gap_and_good_days_are_not(make_workspace):
    """Days 3, 4 and 7 of 10 are gone, and 7 has new logs."""
    ws = make_workspace(days=10)
    days = [f"2026-11-{d}" for d in range(13, 23)]
    run_night(ws, LAST)
    before = store_bytes(ws)
    for day in (days[2], days[3], days[6]):
        shutil.rmtree(ws.traffic(day))
    extra = {
        "timestamp": f"{days[6]}T10:00:00Z",
        "request_id": "late-1",
        "query": "is there a weekly digest of failed hooks?",
    }
    (ws.root / "logs" / "late.jsonl").write_text(json.dumps(extra) + "\n", encoding="utf-8")
    done = run_night(ws, LAST)
    assert done.caught_up == [(days[2], days[3]), (days[6], days[6])]
    after = store_bytes(ws)
    for day in days:
        same = {k for k in before if k.startswith(f"traffic/{day}/")}
        if day != days[6]:
            assert {k: after[k] for k in same} == {k: before[k] for k in same}, day
    assert after[f"traffic/{days[6]}/scrubbed.parquet"] != before[f"traffic/{days[6]}/scrubbed.parquet"]


def test_a_changed_file_of_one_past_day_runs_that_day_only(make_workspace):
    ws = make_workspace(days=8)  # more than a first week, whose releases end at the night
    run_night(ws, LAST)
    releases = {p.name for p in (ws.store / "releases").iterdir() if p.is_dir()}
    path = ws.root / "logs" / "2026-11-20.jsonl.gz"
    lines = gzip.decompress(path.read_bytes())
    extra = {"timestamp": "2026-11-20T23:59:00Z", "request_id": "x-1", "query": "can a flock be renamed by a guest?"}
    path.write_bytes(gzip.compress(lines + json.dumps(extra).encode() + b"\n", mtime=0))
    assert run_night(ws, LAST).caught_up == [("2026-11-20", "2026-11-20")]
    # The release of this week ends before that day: its content is the same, so it stays.
    assert {p.name for p in (ws.store / "releases").iterdir() if p.is_dir()} == releases


def test_a_moved_start_runs_no_day_again(make_workspace):
    ws = make_workspace(days=6)
    run_night(ws, LAST)
    text = (ws.root / "ragbench.yaml").read_text(encoding="utf-8")
    for start in ("2026-11-19", "2026-11-10"):
        moved = text.replace("traffic: {", f"traffic: {{start: {start}, ")
        (ws.root / "ragbench.yaml").write_text(moved, encoding="utf-8")
        later = Workspace.open(ws.root)
        assert run_night(later, LAST).caught_up == []


def test_a_day_without_logs_is_served_by_the_current_release(make_workspace):
    ws = make_workspace(days=3)
    run_night(ws, LAST)
    day, warnings = choose_day(ws, "2026-11-24")
    assert warnings == ["2026-11-24: no log lines; the current release serves"]
    run_night(ws, day)
    assert ws.result(day, Manifest).examples > 0
    assert read_json(ws.traffic(day) / "facts.json")["read"] == 0


def test_only_one_system_is_run_when_asked(make_workspace):
    ws = make_workspace(days=3)
    run_night(ws, LAST, system="bm25")
    assert (ws.night(LAST, "bm25") / "verdicts.parquet").exists()
    assert not ws.night(LAST, "logged").exists()
    with pytest.raises(UserError, match="--system nobody: no such system; known: bm25, logged"):
        run_night(ws, LAST, system="nobody")


def test_a_sampled_night_is_the_same_each_time_and_leaves_the_full_night_alone(make_workspace):
    ws = make_workspace(days=5)
    run_night(ws, LAST)
    full = store_bytes(ws)
    part = ws.sampled(12)
    run_night(part, LAST)
    ids = read_table(part.night(LAST, "bm25") / "responses.parquet")["example_id"].to_pylist()
    assert len(ids) == 12
    assert run_night(part, LAST).calls_judge == 0
    now = store_bytes(ws)
    assert {k: v for k, v in now.items() if not k.startswith(("nights-sample", "cache"))} == {
        k: v for k, v in full.items() if not k.startswith("cache")
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "gate: {systems: [loged]}",
            "gate.systems: 'loged' is no system, did you mean 'logged'?; there are bm25, logged",
        ),
        ("pairwise: [[logged, mine]]", "pairwise: 'mine' is no system"),
        ("judge: {provider: openai_like, model: gpt-4o, api_key_env: ''}", "not pinned"),
    ],
)
def test_what_cannot_work_is_told_before_any_work(make_workspace, more, said):
    ws = make_workspace(days=1, more=more)
    with pytest.raises(UserError) as fault:
        run_night(ws, LAST)
    assert said in str(fault.value)
    assert not (ws.store / "traffic").exists()


def test_a_release_is_held_below_the_floor_of_scrubbing(make_workspace):
    """A type with a floor but without labelled rows is unknown, and unknown is not good."""
    ws = make_workspace(days=3, more="scrub: {floor: {EMAIL_ADDRESS: 0.9, CRYPTO: 0.9}}")
    with_floor = run_night(ws, LAST)
    assert any("scrub_floor" in line and "CRYPTO" in line for line in with_floor.blocked)
    assert not (ws.store / "releases").exists() or not list((ws.store / "releases").iterdir())


def test_a_night_where_nothing_is_scored_has_no_nan_in_any_metadata(make_workspace):
    """A NaN in metadata froze the run page: everything that the UI reads loads with a strict reader."""
    ws = make_workspace(days=2, more="")
    (ws.root / "labels.jsonl").unlink()
    text = (ws.root / "ragbench.yaml").read_text(encoding="utf-8")
    settings = text.replace("metrics: [faithfulness, hit_rate@5]", "metrics: [correctness, hit_rate@5]")
    (ws.root / "ragbench.yaml").write_text(settings, encoding="utf-8")
    ws = Workspace.open(ws.root)
    run_night(ws, LAST)
    rows = read_table(ws.night(LAST) / "scores.parquet").to_pylist()
    assert {row["status"] for row in rows if row["metric"] != "answered"} == {"not_applicable"}
    instance, seen = open_instance(ws), 0
    for run in instance.get_runs():
        for entry in instance.all_logs(run.run_id):
            event = entry.dagster_event
            if event and event.is_step_materialization:
                found = {
                    k: getattr(v, "value", None)
                    for k, v in event.step_materialization_data.materialization.metadata.items()
                }
                json.dumps(found, allow_nan=False, default=str)
                seen += 1
    assert seen > 10
