"""The targets of issue 4 on the shared data, with and without an NER model."""

import json
from collections import Counter

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber, residual, stage_scrub
from ragbench_dagster.traffic.scrubbing.ner import installed_model

SAME = {"STREET_ADDRESS": "ADDRESS", "DOMAIN_NAME": "URL"}
TYPES = {
    "PERSON",
    "ADDRESS",
    "PHONE_NUMBER",
    "EMAIL_ADDRESS",
    "CREDIT_CARD",
    "IBAN_CODE",
    "US_SSN",
    "IP_ADDRESS",
    "URL",
}


def _rows(path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


@pytest.fixture(scope="module", params=["off", "on"])
def ner(request) -> str:
    if request.param == "on" and installed_model() is None:
        pytest.skip("no NER model: install ragbench-dagster[ner]")
    return request.param


@pytest.fixture(scope="module")
def scrubber(ner):
    return build_scrubber(Scrub(ner=ner))


@pytest.fixture(scope="module")
def counted(shared, scrubber):
    """Found and labelled, right and predicted, by type: overlap with the same mapped type."""
    found, labelled, right, predicted = Counter(), Counter(), Counter(), Counter()
    rows = _rows(shared / "data" / "pii_presidio" / "rows.jsonl")
    texts = []
    for row, out in zip(rows, stage_scrub(({"text": r["text"]} for r in rows), scrubber), strict=True):
        gold = [(s["start"], s["end"], SAME.get(s["type"], s["type"])) for s in row["spans"]]
        mine = [(s["start"], s["end"], s["type"]) for s in out["spans"] if s["type"] in TYPES]
        for one in gold:
            if one[2] in TYPES:
                labelled[one[2]] += 1
                found[one[2]] += any(_meet(one, other) for other in mine)
        for one in mine:
            predicted[one[2]] += 1
            right[one[2]] += any(_meet(one, other) for other in gold)
        texts.append(out["text"])
    return found, labelled, right, predicted, texts


def _meet(one, other) -> bool:
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]


def test_recall_and_strict_precision_as_a_whole(counted, ner):
    found, labelled, right, predicted, _ = counted
    floor = 0.90 if ner == "on" else 0.88
    assert labelled.total() > 2000
    assert found.total() / labelled.total() >= floor
    assert right.total() / predicted.total() >= floor


@pytest.mark.parametrize(
    ("entity", "floor"),
    [
        ("EMAIL_ADDRESS", 0.98), ("IBAN_CODE", 0.98), ("US_SSN", 0.98), ("IP_ADDRESS", 0.98), ("URL", 0.98),
        ("CREDIT_CARD", 0.95), ("PHONE_NUMBER", 0.95), ("ADDRESS", 0.90), ("PERSON", 0.85),
    ],
)  # fmt: skip
def test_recall_of_each_type(counted, entity, floor):
    found, labelled, _, _, _ = counted
    assert found[entity] / labelled[entity] >= floor


def test_phone_precision(counted):
    _, _, right, predicted, _ = counted
    assert right["PHONE_NUMBER"] / predicted["PHONE_NUMBER"] >= 0.85


def test_nothing_certain_remains_for_the_independent_check(counted):
    assert residual(counted[4]) == {}


@pytest.mark.parametrize(("name", "most"), [("banking77", 0.01), ("clinc150", 0.02)])
def test_clean_questions_are_left_alone(shared, scrubber, name, most):
    queries = [row["query"] for row in _rows(shared / "data" / f"queries_{name}" / "queries.jsonl")]
    assert sum(bool(done.spans) for done in scrubber.texts(queries)) / len(queries) <= most
