"""What the log-file sensor asks for, tick by tick: the store says what must run, the runs what is under way."""

import json
import os
from datetime import date, timedelta

import dagster as dg
import pytest
from dagster import DagsterRunStatus
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.orchestration import sensors
from ragbench_dagster.orchestration.instance import PID_TAG
from ragbench_dagster.orchestration.partitions import ranges
from ragbench_dagster.orchestration.sensors import (
    CONTENT_TAG,
    GENERATION_TAG,
    Asked,
    asked_runs,
    generation_of,
    next_tick,
    requests,
)

DAY = "2026-11-20"
A, B = {DAY: "a" * 32}, {DAY: "b" * 32}
NOW = 1_790_000_000.0


def failed(mark, ago_s, generation=1):
    return Asked(DAY, DAY, failed_at=NOW - ago_s, content={d: m[:12] for d, m in mark.items()}, generation=generation)


def test_a_day_that_the_store_lacks_is_asked_for_and_one_under_way_is_not():
    assert next_tick(0, A, [], NOW).days == [DAY]
    assert next_tick(1, A, [Asked(DAY, DAY, unfinished=True)], NOW).days == []
    assert (
        next_tick(1, A, [Asked("2026-11-01", "2026-11-30", unfinished=True)], NOW).days == []
    )  # a range, of any origin
    assert next_tick(1, {}, [], NOW).days == []


def test_a_deleted_store_is_asked_for_again():
    """`store/traffic` may be deleted: its runs have succeeded, and the day is stale all the same."""
    assert next_tick(5, A, [Asked(DAY, DAY, content={DAY: "a" * 12}, generation=5)], NOW) == sensors.Tick([DAY], 6)


def test_content_that_comes_back_and_a_cleared_cursor_meet_no_used_run_key():
    keys, runs, generation = [], [], 0
    for marks in (A, B, A, A, A):
        tick = next_tick(generation, marks, runs, NOW)
        keys += [r.run_key for r in requests(tick, marks)]
        runs.append(Asked(DAY, DAY, generation=tick.generation))
        generation = 0  # cleared each time
    assert len(set(keys)) == 5


def test_a_failed_run_is_asked_for_again_after_a_pause_that_grows():
    assert next_tick(1, A, [failed(A, 30)], NOW).days == []
    assert next_tick(1, A, [failed(A, 700)], NOW).days == [DAY]
    assert next_tick(1, A, [failed(A, 700), failed(A, 3000)], NOW).days == []
    assert next_tick(1, A, [failed(A, 1300), failed(A, 3000)], NOW).days == [DAY]
    assert next_tick(1, A, [failed(A, 90_000)] * 60, NOW).days == [DAY]  # once a day at least
    assert next_tick(1, B, [failed(A, 30)], NOW).days == [DAY]  # other content is another matter


def test_a_clock_that_was_set_back_silences_no_day_for_ever():
    future = failed(A, -10 * 86_400)
    assert next_tick(1, A, [future], NOW).days == []
    assert next_tick(1, A, [future], NOW + 11 * 86_400).days == [DAY]


def test_many_days_are_one_range_run_and_single_days_keep_their_checks():
    marks = {f"2026-11-{d:02d}": "x" * 32 for d in (1, 2, 3, 7)}
    found = requests(next_tick(0, marks, [], NOW), marks)
    assert [(r.job_name, r.partition_key) for r in found] == [("catch_up", None), ("ingest", "2026-11-07")]
    assert found[0].tags["dagster/asset_partition_range_end"] == "2026-11-03"
    assert found[0].tags[CONTENT_TAG].count("=") == 3


def test_a_tick_asks_for_thirty_days_and_the_next_for_the_rest():
    marks = {(date(2026, 9, 1) + timedelta(n)).isoformat(): "x" * 32 for n in range(70)}
    first = next_tick(0, marks, [], NOW)
    assert len(first.days) == 30
    under_way = [Asked(first.days[0], first.days[-1], unfinished=True)]
    assert next_tick(1, marks, under_way, NOW).days == sorted(marks)[30:60]


@pytest.mark.parametrize(
    "cursor", [None, "", "{}", "[]", "nonsense", '{"generation": "x"}', '{"generation": 1e999}', "[" * 100_000]
)
def test_a_cursor_that_was_cleared_or_damaged_is_a_new_one(cursor):
    assert generation_of(cursor) == 0


def test_a_cursor_of_before_is_understood_and_does_not_grow():
    """It held a hash a day."""
    assert generation_of(json.dumps({"asked": {DAY: "a" * 32}, "generation": 7})) == 7


def test_what_is_under_way_is_read_from_the_instance():
    with dg.instance_for_test() as instance:

        def run(status, **tags):
            made = dg.DagsterRun(job_name="ingest", run_id=_id())
            instance.add_run(made.with_tags({k.replace("__", "/"): v for k, v in tags.items()}).with_status(status))

        run(DagsterRunStatus.NOT_STARTED, dagster__partition=DAY)
        run(
            DagsterRunStatus.FAILURE,
            dagster__partition="2026-11-19",
            ragbench__content=f"2026-11-19={'c' * 12}",
            ragbench__generation="4",
        )
        run(DagsterRunStatus.STARTED, dagster__partition="2026-11-18", **{PID_TAG: f"{_gone()}:1"})
        run(DagsterRunStatus.SUCCESS)
        found = {asked.first: asked for asked in asked_runs(instance)}
    assert sorted(found) == ["2026-11-18", "2026-11-19", DAY]
    assert found[DAY].unfinished
    assert (found["2026-11-19"].generation, found["2026-11-19"].content) == (4, {"2026-11-19": "c" * 12})
    assert found["2026-11-19"].failed_at is not None
    assert not found["2026-11-18"].unfinished  # its process was killed: it would block its day for ever
    assert GENERATION_TAG == "ragbench/generation"


def _id():
    import uuid

    return str(uuid.uuid4())


def _gone():
    """The id of a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


@given(st.sets(st.dates(min_value=date(2020, 1, 1)), max_size=60))
def test_ranges_cover_exactly_the_days(days):
    covered = []
    for first, last in ranges([d.isoformat() for d in days]):
        day = date.fromisoformat(first)
        while day.isoformat() <= last:
            covered.append(day)
            day += timedelta(days=1)
    assert covered == sorted(days)


def test_a_tick_of_the_real_sensor_reads_logs_runs_and_cursor(tmp_path, monkeypatch):
    from ragbench_dagster.orchestration.build import build_definitions
    from ragbench_dagster.orchestration.resources import WorkspaceResource

    (tmp_path / "logs").mkdir()
    line = {"timestamp": f"{DAY}T10:00:00Z", "query": "is it open?", "response": "yes"}
    (tmp_path / "logs" / f"{DAY}.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "ragbench.yaml").write_text("systems: {logged: {kind: logged}}\n")
    defs = build_definitions({"workspace": WorkspaceResource(root=str(tmp_path))})
    sensor = defs.resolve_sensor_def("log_files")
    with dg.instance_for_test() as instance:

        def tick(cursor):
            resources = {"workspace": WorkspaceResource(root=str(tmp_path))}
            context = dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources, definitions=defs)
            return sensor.evaluate_tick(context)

        first = tick(None)
        (asked,) = first.run_requests
        assert (asked.job_name, asked.partition_key, asked.tags[GENERATION_TAG]) == ("ingest", DAY, "1")
        assert json.loads(first.cursor) == {"generation": 1}
        run = dg.DagsterRun(job_name="ingest", run_id=_id(), tags={**asked.tags, "dagster/partition": DAY})
        instance.add_run(run)  # queued
        assert tick(first.cursor).run_requests == []
        instance.report_run_failed(run)
        waits = tick("")
        assert waits.run_requests == []
        assert "under way or failed" in waits.skip_message
