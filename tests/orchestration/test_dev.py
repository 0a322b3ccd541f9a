"""`ragbench dev` for real: UI, daemon, sensor, a materialization through the page's own API, the graph in a browser."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
GROUPS = ("traffic", "dataset", "bm25", "logged", "calibration", "reporting")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def dev_server(ws, *more):
    """The base URL of `ragbench dev` on a free port; its token goes to `TOKEN`."""
    command = [sys.executable, "-m", "ragbench_dagster.cli", "dev", "--workspace", str(ws.root), "--port", "0", *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        for line in process.stderr:
            found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
            if found:
                TOKEN[:] = [found[2]]
                break
        else:
            pytest.fail("ragbench dev ended before it served")
        yield found[1]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


TOKEN = []


def ask(base, query, **variables):
    body = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN[0]}"}
    request = urllib.request.Request(f"{base}/graphql", body, headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        found = json.load(reply)
    assert "errors" not in found, found["errors"]
    return found["data"]


def wait_for(seconds, what, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(1)
    pytest.fail(f"{what}: not within {seconds} s")


RUNS = "{runsOrError(limit: 20) {... on Runs {results {jobName status tags {key value}}}}}"
SWITCHES = """{repositoriesOrError {... on RepositoryConnection {nodes {
    schedules {name scheduleState {status}} sensors {name sensorState {status}}}}}}"""
LAUNCH = """mutation ($p: ExecutionParams!) {launchPipelineExecution(executionParams: $p) {
    __typename ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}
    ... on RunConfigValidationInvalid {errors {message}}}}"""
STATUS = "query ($id: ID!) {runOrError(runId: $id) {... on Run {status}}}"


def days_run(base):
    """The (last) day of every run; a file with late lines of the day before makes a range."""
    found = []
    for run in ask(base, RUNS)["runsOrError"]["results"]:
        tags = {t["key"]: t["value"] for t in run["tags"]}
        found.append(tags.get("dagster/partition") or tags.get("dagster/asset_partition_range_end"))
    return found


@pytest.mark.slow
def test_the_ui_materializes_the_sensor_sees_new_logs_once_and_the_graph_shows_every_asset(make_workspace):
    ws = make_workspace(days=2)
    late = ws.root / "logs" / "2026-11-22.jsonl.gz"
    kept = late.read_bytes()
    late.unlink()
    with dev_server(ws) as base:
        node = ask(base, SWITCHES)["repositoriesOrError"]["nodes"][0]
        assert {s["name"]: s["scheduleState"]["status"] for s in node["schedules"]} == {
            "nightly_schedule": "RUNNING",
            "refresh_schedule": "RUNNING",
        }
        assert {s["name"]: s["sensorState"]["status"] for s in node["sensors"]} == {
            "failed_runs": "RUNNING",
            "log_files": "RUNNING",
        }
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": "ragbench_dagster",
            "pipelineName": "ingest",
            "assetSelection": [{"path": ["sampled_requests"]}],
            "assetCheckSelection": [],
        }
        launched = ask(
            base,
            LAUNCH,
            p={
                "selector": selector,
                "mode": "default",
                "runConfigData": {},
                "executionMetadata": {"tags": [{"key": "dagster/partition", "value": "2026-11-21"}]},
            },
        )["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        run_id = launched["run"]["runId"]
        wait_for(120, "the run of the UI", lambda: ask(base, STATUS, id=run_id)["runOrError"]["status"] == "SUCCESS")
        assert (ws.traffic("2026-11-21") / "sampled.parquet").exists()
        # The sensor: the day that was there at the start, then a new file, once.
        wait_for(150, "the sensor's first run", lambda: days_run(base).count("2026-11-21") == 2)
        late.write_bytes(kept)
        wait_for(150, "the sensor's run of the new file", lambda: "2026-11-22" in days_run(base))
        wait_for(120, "its result", lambda: (ws.traffic("2026-11-22") / "privacy.json").exists())
        time.sleep(35)  # another tick
        assert days_run(base).count("2026-11-22") == 1
        if CHROMIUM is None:
            pytest.skip("no chromium: the asset graph was not looked at")
        names = _names_in_the_graph(base)
    wanted = {
        "sampled_requests", "scrubbed_requests", "scrub_quality", "dataset_release", "dedupe_quality", "responses",
        "retrieval_scores", "verdicts", "judge_calibration", "score_table", "summary", "leaderboard", "gate", "report",
        "experiment_run",
    }  # fmt: skip
    assert wanted <= names, wanted - names


def _names_in_the_graph(base):
    """Every word in the graph of the lineage page with all groups open; the page must not complain."""
    from playwright.sync_api import sync_playwright

    complaints = []
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 2400, "height": 1400})
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        # The page keeps which groups are open in its address; names under "Jump to" stay folded.
        opened = "%2C".join(f"global%40global%3A{group}" for group in GROUPS)
        page.goto(f"{base}/?token={TOKEN[0]}")
        assert page.url == f"{base}/" or "token" not in page.url
        page.goto(f"{base}/asset-groups/?expanded={opened}")
        page.locator("foreignObject", has_text="experiment_run").first.wait_for(timeout=60_000)
        page.wait_for_timeout(2000)
        shot = os.environ.get("RAGBENCH_SCREENSHOTS")
        if shot:
            page.screenshot(path=f"{shot}/asset-graph.png")
        names = set(page.locator("body").inner_text().split())
        browser.close()
    assert complaints == []
    return names


@pytest.mark.slow
def test_without_the_token_nothing_is_served_and_read_only_starts_no_run(make_workspace):
    import stat

    ws = make_workspace(days=1)
    with dev_server(ws, "--read-only") as base:
        mode = (ws.dagster_home / "token").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        body = json.dumps({"query": "{version}"}).encode()
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "ragbench=x"}):
            request = urllib.request.Request(f"{base}/graphql", body, {"content-type": "application/json", **headers})
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(request, timeout=20)
        for path in ("/", "/logs/x", "/?token=wrong", "/server_info"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{base}{path}", timeout=20)
        assert "version" in ask(base, "{version}")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(base, LAUNCH, p={})
        # The code server's door, for the daemon and the page: a socket of this user alone, or none at all.
        sockets = [p for p in map(Path, _sockets()) if p.exists()]
        assert all(p.stat().st_mode & 0o077 == 0 or p.parent.stat().st_mode & 0o077 == 0 for p in sockets)
        kept = TOKEN[0]
    assert (ws.dagster_home / "token").read_text().strip() == kept


def _sockets():
    """Paths of the Unix sockets that Dagster's code servers listen on."""
    with open("/proc/net/unix") as file:
        rows = [line.split() for line in file]
    return [row[-1] for row in rows if len(row) == 8 and row[3] == "00010000" and row[-1].startswith("/tmp/tmp")]


def test_a_busy_port_is_one_line_and_exit_code_2(make_workspace):
    ws = make_workspace(days=1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "ragbench_dagster.cli", "dev", "--workspace", str(ws.root), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"port {port} cannot be used" in done.stderr
