"""The sample workspace is what the script makes of its hand-written parts, and is as large as promised."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from ragbench_dagster.settings import Settings, load_settings

DATA = Path(__file__).resolve().parents[2] / "data"
MADE = ("labels.jsonl", "scrub_labels.jsonl", "calibration/answers.jsonl")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


@pytest.fixture(scope="module")
def requests() -> dict[str, dict[str, Any]]:
    """Every readable request of the logs by its id: re-delivered ones once."""
    found = {}
    for path in sorted((DATA / "logs").glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).split(b"\n"):
            try:
                row = json.loads(line)
                date.fromisoformat(row["timestamp"][:10])
                assert isinstance(row["query"], str)
            except (ValueError, KeyError, TypeError, AssertionError):
                continue
            found[row["request_id"]] = row
    return found


def test_the_script_makes_the_committed_files_again(tmp_path: Path) -> None:
    """Logs are compared unpacked: zlib builds differ in how they compress, not in what."""
    subprocess.run([sys.executable, DATA / "make_sample.py", "--to", tmp_path], check=True)
    for name in MADE:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name
    committed = {path.name for path in (DATA / "logs").iterdir()}
    assert {path.name for path in (tmp_path / "logs").iterdir()} == committed
    for name in committed:
        new, old = ((folder / "logs" / name).read_bytes() for folder in (tmp_path, DATA))
        assert old[4:8] == b"\0\0\0\0", f"{name}: the gzip header holds a time"
        assert gzip.decompress(new) == gzip.decompress(old), name


def test_the_logs_are_100_days_with_6000_requests(requests: dict[str, dict[str, Any]]) -> None:
    days = sorted({row["timestamp"][:10] for row in requests.values()})
    assert len(days) == 100
    assert days[-1] == "2026-11-22"
    assert len(requests) >= 6000
    assert len({row["category"] for row in requests.values()}) >= 8
    latencies = sorted(row["latency_ms"] for row in requests.values())
    assert latencies[int(0.95 * len(latencies))] < 4000
    assert sum(bool(row.get("history")) for row in requests.values()) >= 100


def test_a_few_lines_are_broken_and_some_come_twice(requests: dict[str, dict[str, Any]]) -> None:
    files = (DATA / "logs").glob("*.jsonl.gz")
    lines = Counter(line for path in files for line in gzip.decompress(path.read_bytes()).split(b"\n") if line)
    twice = sum(count - 1 for count in lines.values())
    broken = lines.total() - twice - len(requests)
    assert 0.001 < broken / lines.total() < 0.006
    assert twice >= 30


def test_there_are_400_questions_and_60_passages_that_answer_them() -> None:
    corpus = {row["doc_id"]: row["text"] for row in rows(DATA / "corpus.jsonl")}
    questions = [row for path in (DATA / "parts" / "questions").glob("*.jsonl") for row in rows(path)]
    assert len(corpus) >= 60
    assert len({row["q"].casefold() for row in questions}) == len(questions) >= 400
    assert {doc for row in questions for doc in row["docs"]} <= corpus.keys()


def test_200_labels_name_known_passages() -> None:
    corpus = {row["doc_id"] for row in rows(DATA / "corpus.jsonl")}
    labels = rows(DATA / "labels.jsonl")
    assert len({row["query"] for row in labels}) == len(labels) >= 200
    for row in labels:
        assert row["expected_answer"], row
        assert row["expected_doc_ids"], row
        assert set(row["expected_doc_ids"]) <= corpus, row


@pytest.mark.parametrize("metric", ["faithfulness", "relevancy", "correctness"])
def test_150_calibration_rows_hold_both_classes(metric: str) -> None:
    labels = Counter(row["human"].get(metric) for row in rows(DATA / "calibration" / "answers.jsonl"))
    n = labels[0] + labels[1]
    assert n >= 150
    assert min(labels[0], labels[1]) >= 0.25 * n


def test_300_scrub_rows_have_valid_offsets_and_100_are_clean() -> None:
    found = rows(DATA / "scrub_labels.jsonl")
    assert len({row["text"] for row in found}) == len(found) >= 300
    assert sum(not row["spans"] for row in found) >= 100
    for row in found:
        end = 0
        for span in row["spans"]:
            assert end <= span["start"] < span["end"] <= len(row["text"]), row
            value, end = row["text"][span["start"] : span["end"]], span["end"]
            assert value == value.strip(), row
            assert "|" not in value, row


def test_every_made_up_mail_address_is_in_a_reserved_domain() -> None:
    """RFC 2606 and 6761: example.com, .net, .org, .co.uk's `example` label and the top level `example`."""
    files = [DATA / "corpus.jsonl", *(DATA / name for name in MADE), *(DATA / "parts").rglob("*.*")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    text += "\n".join(
        gzip.decompress(path.read_bytes()).decode("utf-8", "replace") for path in (DATA / "logs").iterdir()
    )
    hosts = {host.lower() for host in re.findall(r"[\w.+-]@([\w-]+(?:\.[\w-]+)+)", text)}
    allowed = re.compile(r"(.+\.)?example(\.(com|net|org|co\.uk))?")
    assert hosts
    assert [host for host in hosts if not allowed.fullmatch(host)] == []


def keys_of(model: type[BaseModel]) -> Iterator[str]:
    """Every key of the settings, by the name it has in the file, inner models included."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for inner in models_in(field.annotation):
            yield from keys_of(inner)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def test_ragbench_yaml_loads_and_shows_every_key_in_its_section() -> None:
    path = DATA / "ragbench.yaml"
    assert load_settings(path).thresholds
    parts = re.split(r"^(?:# )?([a-z]+):", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert sorted(Settings.model_fields.keys() - sections.keys()) == []
    missing = {}
    for name, field in Settings.model_fields.items():
        wanted = {key for inner in models_in(field.annotation) for key in keys_of(inner)}
        missing[name] = sorted(wanted - set(re.findall(r"([A-Za-z_]+):", sections[name])))
    assert {name: keys for name, keys in missing.items() if keys} == {}


def test_the_sample_is_small() -> None:
    """It is committed and packed into the wheel. What a run writes beside it does not count."""
    out = {"store", ".dagster", "__pycache__"}
    files = [p for p in DATA.rglob("*") if p.is_file() and not out & set(p.relative_to(DATA).parts)]
    assert sum(path.stat().st_size for path in files) < 4_000_000


def test_the_script_needs_nothing_but_the_standard_library() -> None:
    source = (DATA / "make_sample.py").read_text(encoding="utf-8")
    imported = set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE))
    assert imported <= sys.stdlib_module_names
