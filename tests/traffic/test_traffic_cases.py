"""The field cases of kinds `logs` and `exports`, and months of made traffic whose truth is known."""

import json
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.ingest import sample_days, scrub_days
from ragbench_dagster.traffic.scan import scan_logs

# case: (read, redelivered, quarantined, follow-ups), from the cases' expect.md
CASES = {
    "log-bom-crlf": (3, 0, 0, 0),
    "log-line-separators": (3, 0, 0, 0),
    "log-nan-literals": (1, 0, 3, 0),
    "log-lone-surrogate": (3, 0, 0, 0),
    "log-ids-are-text": (9, 1, 0, 0),
    "log-timestamps": (4, 0, 0, 0),
    "log-gzip-members": (4, 0, 0, 0),
    "export-multi-turn": (4, 0, 0, 2),
}


def opened(shared, tmp_path, case) -> Workspace:
    root = tmp_path / "ws"
    shutil.copytree(shared / "cases/cases" / case / "ws", root)
    root.chmod(0o755)
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return Workspace.open(root)


@pytest.mark.parametrize("case", CASES)
def test_case(shared, tmp_path, case, fake_scrubber):
    ws = opened(shared, tmp_path, case)
    index = scan_logs(ws)
    facts = sample_days(ws, index.days)
    done = scrub_days(ws, index.days, scrubber=fake_scrubber)
    total = [sum(getattr(f, k) for f in facts.values()) for k in ("read", "redelivered", "quarantined", "follow_ups")]
    assert tuple(total) == CASES[case]
    assert sum(d["rows"] for d in done.values()) == CASES[case][0]


def test_line_numbers_of_the_separator_case_stay_1_to_3(shared, tmp_path):
    ws = opened(shared, tmp_path, "log-line-separators")
    sample_days(ws, ["2026-11-20"])
    assert sorted(pq.read_table(ws.traffic("2026-11-20") / "sampled.parquet")["line"].to_pylist()) == [1, 2, 3]


def test_epoch_rows_of_the_timestamp_case_fall_on_its_day(shared, tmp_path):
    ws = opened(shared, tmp_path, "log-timestamps")
    shutil.copy(shared / "cases/cases/log-timestamps/epoch.jsonl", ws.root / "logs")
    index = scan_logs(ws)
    assert index.days == ["2026-11-20"]
    facts = sample_days(ws, index.days)["2026-11-20"]
    assert facts.read == 6
    assert facts.warnings == ["2 times without a zone were taken as UTC; set traffic.timezone if they are not"]


def test_second_turns_of_the_conversation_case_are_the_follow_ups(shared, tmp_path, fake_scrubber):
    ws = opened(shared, tmp_path, "export-multi-turn")
    sample_days(ws, ["2026-11-20"])
    scrub_days(ws, ["2026-11-20"], scrubber=fake_scrubber)
    rows = pq.read_table(ws.traffic("2026-11-20") / "scrubbed.parquet").to_pylist()
    assert {r["query"]: r["follow_up"] for r in rows} == {
        "How do refunds work on the yearly plan?": False,
        "and what about the monthly one?": True,
        "How do backups work on the free plan?": False,
        "And what about the monthly one?": True,
    }


@pytest.fixture(scope="module")
def made(shared, tmp_path_factory):
    """(folder, truth) of 25 days of made traffic, zipped."""
    out = tmp_path_factory.mktemp("traffic") / "made"
    command = [sys.executable, shared / "tools/make_traffic.py", "--benchmark", shared / "data/retrieval_feedbackqa"]
    options = ["--out", out, "--days", "25", "--per-day", "120", "--broken", "0.03", "--seed", "5", "--gzip"]
    subprocess.run([str(a) for a in command + options], check=True, stdout=subprocess.DEVNULL)
    return out, json.loads((out / "truth.json").read_text(encoding="utf-8"))


def test_quarantine_holds_exactly_the_broken_lines(made):
    out, truth = made
    ws = Workspace.open(out)
    facts = sample_days(ws, scan_logs(ws).days)
    assert sum(f.quarantined for f in facts.values()) == truth["broken"] > 50
    assert {day: f.read for day, f in facts.items()} == truth["per_day"]
    assert sum(f.redelivered for f in facts.values()) == truth["redelivered"] > 0
    quarantine = [pq.read_table(ws.traffic(day) / "quarantine.parquet") for day in facts]
    assert sum(t.num_rows for t in quarantine) == truth["broken"]
    assert all(set(t["file"].to_pylist()) <= {f"{day}.jsonl.gz"} for day, t in zip(facts, quarantine, strict=True))


def test_without_a_floor_a_tenth_is_kept_and_the_weights_match_the_traffic(made):
    out, truth = made
    (out / "ragbench.yaml").write_text("traffic: {sample: {min_per_category: 0}}\n", encoding="utf-8")
    ws = Workspace.open(out)
    facts = sample_days(ws, scan_logs(ws).days)
    share = sum(f.sampled for f in facts.values()) / truth["rows"]
    assert 0.10 <= share < 0.11  # rounded up once a day
    weights = [pq.read_table(ws.traffic(day) / "sampled.parquet")["weight"].to_pylist() for day in facts]
    assert sum(map(sum, weights)) == pytest.approx(truth["rows"])
    (out / "ragbench.yaml").unlink()
