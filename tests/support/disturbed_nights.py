"""A small workspace whose night is disturbed, what the night leaves, and what was paid for it."""

import hashlib
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.fake_provider import Act, FakeProvider, Seen
from tests.support.night_forks import Forks

SETTINGS = """\
traffic: {{start: 2026-11-18, sample: {{rate: 1.0}}}}
systems:
  logged: {{kind: logged}}
  bm25: {{kind: engine, engine: "ragbench_dagster.evaluation.bm25:build", params: {{top_k: 2}}}}
judge: {{provider: openai_like, model: fake-2026-01-01, api_base: "{base}", api_key_env: JUDGE_KEY,
        context_window: 32000, max_tokens: 64, price: {{input: 0, output: 0}},
        concurrency: {{min: 1, start: 2, max: {workers}}}}}
metrics: [relevancy]
dataset: {{min_examples: 2}}
"""
DOCS = ["Rotate a token under settings.", "The trial lasts fourteen days.", "Pause a hook in its menu."]
ASKED = ["How long is the trial?", "Where do I rotate a token?", "Can a hook be paused?", "Which plan has audit logs?"]
NIGHT = 3  # exit code of a calm one: a gate without thresholds is inconclusive
DAY = "2026-11-20"
WORKERS = 4  # calls in flight at most
# A release that was cut from half a file stays (design rule 3), and so do verdicts that were paid and alerts.
KEPT = ("store/releases/", "ledger ", "store/alerts")


def provider() -> FakeProvider:
    """A judge whose reply depends on the prompt alone; slow enough that calls are in flight at a kill."""

    def plan(seen: Seen) -> Act:
        passing = hashlib.sha256(seen.prompt.encode()).digest()[0] % 4
        return Act("YES" if passing else "NO", delay_s=0.02)

    return FakeProvider(plan, key=lambda seen: seen.headers.get("authorization", ""))


def line(day: int | str, n: int) -> str:
    given = {"timestamp": f"2026-11-{day}T09:{n:02d}:00Z", "request_id": f"{day}-{n}", "query": ASKED[n % 4]}
    return json.dumps(given | {"response": f"See the guide. {DOCS[n % 3]}", "source_nodes": [f"d{n % 3}"]}) + "\n"


def day_lines(day: int | str, count: int = 8) -> str:
    return "".join(line(day, n) for n in range(count))


def make(root: Path, base: str, last_day: str | None = None) -> Path:
    """The workspace `root`; its last folder must be called alike everywhere, since reports name it."""
    (root / "logs").mkdir(parents=True)
    (root / "ragbench.yaml").write_text(SETTINGS.format(base=base, workers=WORKERS))
    (root / ".key").write_text("ab" * 32 + "\n")  # equal keys, equal hashes
    (root / ".key").chmod(0o600)
    docs = [json.dumps({"doc_id": f"d{n}", "text": text}) for n, text in enumerate(DOCS)]
    (root / "corpus.jsonl").write_text("\n".join(docs) + "\n")
    for day in (18, 19):
        (root / "logs" / f"2026-11-{day}.jsonl").write_text(day_lines(day))
    (root / "logs" / f"{DAY}.jsonl").write_text(day_lines(20) if last_day is None else last_day)
    return root


def outcome(root: Path) -> dict[str, str]:
    """{file of the store: digest} and the ledger's rows, but what design rule 2 leaves out: times and attempts."""
    outside = ("timings.parquet", "attempts.json", ".lock")
    files = (p for p in (root / "store").rglob("*") if p.is_file() and ".db" not in p.name and p.name not in outside)
    left = {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files if "cache" not in p.parts
    }
    with closing(sqlite3.connect(root / "store" / "ledger.db")) as db:
        for row in db.execute("SELECT key, system, example_id, status, score, feedback FROM verdicts"):
            left[f"ledger {row[0]}"] = str(row[1:])
    return left


def differences(root: Path, calm: dict[str, str], but: tuple[str, ...] = ()) -> list[str]:
    """What is not as in a calm night, half-written files too; in folders `but` there may be more, never other."""
    left = outcome(root)
    more = {n for n in left if n.startswith(but) and n not in calm} if but else set()
    halves = [str(p.relative_to(root)) for p in root.rglob("*.part")]
    return sorted(n for n in (calm.keys() | left.keys()) - more if calm.get(n) != left.get(n)) + halves


def paid(judge: FakeProvider, root: Path) -> Counter[str]:
    """{prompt: how often the judge was asked} by this workspace."""
    return Counter(seen.prompt for seen in judge.attempts[f"Bearer {root.parent.name}"])


@pytest.fixture(scope="module")
def judge():
    with provider() as judge:
        yield judge


@pytest.fixture(scope="module")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture(scope="module")
def calm(forks, judge, tmp_path_factory):
    """(what an undisturbed night leaves, what it paid)"""
    root = make(tmp_path_factory.mktemp("calm") / "ws", judge.base)
    code, said = forks.run(root)
    assert code == NIGHT, said
    asked = paid(judge, root)
    assert set(asked.values()) == {1}
    return outcome(root), asked
