"""Small real workspaces, cut from the sample."""

import hashlib
import shutil
from pathlib import Path

import pytest

from ragbench_dagster.store import Workspace

SAMPLE = Path(__file__).resolve().parents[2] / "data"
LAST = "2026-11-22"  # the sample's last day, a Sunday
SETTINGS = """\
traffic: {{sample: {{rate: 1.0}}}}
systems:
  bm25: {{kind: engine, engine: "ragbench_dagster.evaluation.bm25:build", params: {{top_k: 5}}}}
  logged: {{kind: logged}}
metrics: [faithfulness, hit_rate@5]
dataset: {{min_examples: 10}}
calibration: {{sentinel: 20}}
{more}
"""


def sample_days() -> list[str]:
    return sorted(p.name[:10] for p in (SAMPLE / "logs").glob("*.jsonl.gz"))


@pytest.fixture
def make_workspace(tmp_path):
    """make_workspace(days=5, more="yaml") -> Workspace with the sample's last days."""

    def make(days: int = 5, more: str = "", name: str = "ws") -> Workspace:
        root = tmp_path / name
        (root / "logs").mkdir(parents=True)
        for day in sample_days()[-days:]:
            shutil.copy(SAMPLE / "logs" / f"{day}.jsonl.gz", root / "logs")
        for part in ("corpus.jsonl", "labels.jsonl", "scrub_labels.jsonl"):
            shutil.copy(SAMPLE / part, root)
        shutil.copytree(SAMPLE / "calibration", root / "calibration")
        (root / "ragbench.yaml").write_text(SETTINGS.format(more=more), encoding="utf-8")
        return Workspace.open(root)

    return make


def store_bytes(ws: Workspace) -> dict[str, str]:
    """Digest of every store file but SQLite's and the lock."""
    files = (p for p in ws.store.rglob("*") if p.is_file())
    kept = [p for p in files if ".db" not in p.name and p.name != ".lock"]
    return {str(p.relative_to(ws.store)): hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}
