"""A real MLflow server, in a virtual environment of its own, shows the night.

Set RAGBENCH_MLFLOW_SERVER to a python with `mlflow` to use it; else one is made once below the temporary folder
(about two minutes; skipped with a reason where the package cannot be had).
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from ragbench_dagster.reporting.tracking import track
from tests.support.tracked_nights import tracked_night, write_night

SERVER = "mlflow==3.17.2"
DAY = "2026-11-20"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server_python():
    named = os.environ.get("RAGBENCH_MLFLOW_SERVER")
    if named:
        return Path(named)
    folder = Path(tempfile.gettempdir()) / f"ragbench-{SERVER.replace('==', '-')}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", SERVER], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no MLflow server: pip install {SERVER} failed: {done.stderr.strip()[-200:]}")
        (folder / "ready").touch()
    return python


@pytest.fixture(scope="module")
def server(server_python, tmp_path_factory):
    """The server's address, on the loopback, with a database and artefacts of its own."""
    root = tmp_path_factory.mktemp("mlflow-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [
        server_python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{root}/server.db", "--artifacts-destination", str(root / "artifacts"),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PATH": f"{server_python.parent}:{os.environ['PATH']}",
    }
    with open(root / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        for _ in range(240):
            if process.poll() is not None:
                pytest.fail(f"the server ended: {(root / 'log').read_text('utf-8')[-500:]}")
            try:
                urllib.request.urlopen(f"{address}/health", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail("the server did not come up in two minutes")
        yield address
    finally:
        os.killpg(process.pid, 9)  # its workers may wait for open connections of a browser
        process.wait(20)


def test_a_server_shows_the_night_once_and_updates_it(maker, server):
    mlflow = pytest.importorskip("mlflow", reason="no MLflow client: pip install 'ragbench-dagster[mlflow]'")
    made = []
    ws = tracked_night(lambda *a, **k: made.append(maker(*a, **k)) or made[-1], f"mlflow_uri: '{server}'")
    first = track(ws, DAY)
    assert first["mlflow_change"] == "created"
    assert track(ws, DAY)["mlflow_change"] == "unchanged"
    write_night(made[0], DAY, 0.6, templates={"faithfulness": "hash-two"})
    assert track(ws, DAY)["mlflow_change"] == "updated"
    client = mlflow.MlflowClient(tracking_uri=server)
    experiment = client.get_experiment_by_name("ragbench")
    (run,) = client.search_runs([experiment.experiment_id], "tags.\"ragbench.template.faithfulness\" = 'hash-two'")
    assert run.info.run_id == first["mlflow_run"]
    assert run.info.run_name == DAY
    assert run.data.metrics["logged/faithfulness"] == pytest.approx(0.6)
    assert "logged/ndcg_at_10" not in run.data.metrics
    assert "report.html" in {a.path for a in client.list_artifacts(run.info.run_id)}


def test_the_servers_own_page_shows_the_night(maker, server, browser):
    ws = tracked_night(maker, f"mlflow_uri: '{server}'", day="2026-11-25")
    run = track(ws, "2026-11-25")["mlflow_run"]
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{server}/#/experiments/1/runs/{run}")
    page.get_by_role("heading", name="2026-11-25").first.wait_for(timeout=90_000)
    page.get_by_text("logged/faithfulness", exact=True).first.wait_for(timeout=30_000)
    assert page.get_by_text("INCONCLUSIVE").first.is_visible()
    page.close()
