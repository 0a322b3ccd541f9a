"""A night in Weights & Biases, offline: nights out of order lose nothing, and nothing is warned of."""

import json
import struct
import warnings

import pytest

from ragbench_dagster.reporting.tracking import track
from tests.support.tracked_nights import tracked_night, write_night

DAYS = ["2026-11-28", "2026-11-20"]


@pytest.fixture(autouse=True)
def wandb(monkeypatch):
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    return pytest.importorskip("wandb", reason="no W&B: pip install 'ragbench-dagster[wandb]'")


@pytest.fixture
def made(maker):
    found = []

    def make(*args, **more):
        found.append(maker(*args, **more))
        return found[-1]

    tracked_night(make, "wandb_project: ragbench", day=DAYS[0])
    return found[0]


def log_records(data: bytes):
    """Records of a LevelDB log (blocks of 32 KiB, each piece with crc, length and kind) after W&B's 7-byte head."""
    assert data.startswith(b":W&B")
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32_768 - at % 32_768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a full record, or the last piece of one
            yield whole
            whole = b""


def offline(ws):
    """Every run below store/wandb as {run id: [(folder, config, summary, rows of its history)]}, read from its file."""
    from wandb.proto import wandb_internal_pb2

    found = {}
    for path in sorted((ws.store / "wandb").glob("offline-run-*/*.wandb")):
        config, summary, history, run_id = {}, {}, 0, ""
        for data in log_records(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "run":
                run_id = record.run.run_id
                config |= {u.key: json.loads(u.value_json) for u in record.run.config.update}
            elif kind == "summary":
                summary |= {u.key or "/".join(u.nested_key): json.loads(u.value_json) for u in record.summary.update}
            elif kind == "history":
                history += 1
        found.setdefault(run_id, []).append((path.parent, config, summary, history))
    return found


def test_an_older_night_after_a_newer_one_loses_nothing(made, capfd):
    """wandb#5632: values of an earlier step were dropped with a mere warning."""
    write_night(made, DAYS[1], 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        told = [track(made.ws, day) for day in DAYS]
    said = capfd.readouterr()
    assert "warn" not in (said.out + said.err).lower()
    runs = offline(made.ws)
    assert set(runs) == {t["wandb_run"] for t in told}
    for t, day, value in zip(told, DAYS, (0.8, 0.5), strict=True):
        ((_, config, summary, history),) = runs[t["wandb_run"]]
        assert config["night"] == day
        assert config["release"] == made.release
        assert config["template.faithfulness"] == "hash-one"
        assert summary["logged/faithfulness"] == pytest.approx(value)
        assert summary["logged/hit_rate_at_5"] == pytest.approx(value)
        assert "logged/ndcg_at_10" not in summary
        assert history == 0


def test_the_same_night_again_writes_nothing(made):
    first = track(made.ws, DAYS[0])
    before = {p: p.stat().st_mtime_ns for p in made.ws.store.rglob("*") if p.is_file()}
    assert track(made.ws, DAYS[0]) == {**first, "wandb_change": "unchanged"}
    assert {p: p.stat().st_mtime_ns for p in made.ws.store.rglob("*") if p.is_file()} == before


def test_a_changed_night_takes_the_place_of_its_unsynced_run(made):
    first = track(made.ws, DAYS[0])
    write_night(made, DAYS[0], 0.6, templates={"faithfulness": "hash-two"})
    told = track(made.ws, DAYS[0])
    assert told["wandb_change"] == "updated"
    assert told["wandb_run"] == first["wandb_run"]
    ((_, config, summary, _),) = offline(made.ws)[told["wandb_run"]]
    assert config["template.faithfulness"] == "hash-two"
    assert summary["logged/faithfulness"] == pytest.approx(0.6)
