"""What names of files and folders may say: dates, parts and words of the trade, nobody's number, name or key."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.settings import Scrub
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.files import Source, is_harmless, plain_name
from ragbench_dagster.traffic.scrubbing import build_scrubber

PLACEHOLDER = re.compile(r"<[A-Z_]+>")


@pytest.fixture(scope="module")
def plain():
    return build_scrubber(Scrub(ner="off")).plain


NUMBERS = [
    "4111111111111111", "4111-1111-1111-1111", "4111_1111_1111_1111", "5500.0000.0000.0004", "378282246310005",
    "123-45-6789", "123456789", "123_45_6789", "5551234567", "555-123-4567", "555.123.4567", "+49-170-1234567",
    "+491701234567", "0170_1234567", "1234567", "10.1.2.3", "192-168-0-17", "10_20_30_40", "2001:db8::8a2e:370:7334",
    "1995061512345", "20261345", "4111/1111/1111/1111", "202611209999999",
]  # fmt: skip
PEOPLE = ["maria.fernandez", "maria_fernandez", "Maria-Fernandez", "MariaFernandez", "mariafernandez", "mfernandez", "fernandezm", "fernandez.m", "maria2", "will.smith", "smith_will", "john.doe", "j.fernandez"]  # fmt: skip
KEYS = ["sess_9f8a7b6c5d4e3f2a1b0c", "1f0c6f3e-7a7b-4d6e-9b1a-2f3c4d5e6f70", "a1b2c3d4e5", "sk-abcd1234efgh5678ijkl", "eyJhbGciOi.eyJzdWIi.c2ln", "Zx81Kf0w77ab"]  # fmt: skip
FRAMES = ["{}", "logs-{}", "2026-11-20/{}", "{}/2026-11-20", "2026-11-20_{}_part-0001", "year=2026/month=11/{}/day=20"]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("word", [*NUMBERS, *KEYS])
def test_no_number_and_no_key_stays(word: str, frame: str, plain) -> None:
    name = plain_name(frame.format(word) + ".jsonl", plain)
    assert PLACEHOLDER.search(name)
    left = PLACEHOLDER.sub(" ", name)
    assert not set(re.findall(r"[A-Za-z0-9]{5,}", word)) & set(re.findall(r"[A-Za-z0-9]{5,}", left))
    digits = re.sub(r"2026\D?(month=)?11\D?(day=)?20|month=11|year=2026|day=20|0001", "", left)
    assert len(re.sub(r"\D", "", digits)) <= 6


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("word", PEOPLE)
def test_no_persons_name_stays(word: str, frame: str, plain) -> None:
    left = PLACEHOLDER.sub(" ", plain_name(frame.format(word) + ".jsonl.gz", plain)).casefold()
    for part in ("maria", "fernandez", "smith", "john", "doe"):
        assert part not in left


HARMLESS = [
    "2026-11-20.jsonl", "2026/11/20/requests-00017.jsonl.gz", "year=2026/month=11/day=20/hour=14/part-00001.parquet",
    "20261120.csv", "2026112014.jsonl", "20261120T140509Z.jsonl", "prod-eu-1/2026-11-20.jsonl", "U.JSONL",
    "rag-search_2026_11_20.ndjson", "worker-12/queries.7.jsonl", "answers.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_names_that_say_nothing_stay_and_load_nothing(name: str) -> None:
    assert is_harmless(name)
    assert plain_name(name, lambda text: pytest.fail("a scrubber was asked")) == name


@pytest.mark.parametrize("name", ["customer-support/2026-11-20.jsonl", "kubernetes_docs.csv", "checkout-service.v2.jsonl", "billing/invoices.jsonl", "feedback.2026-11.jsonl"])  # fmt: skip
def test_ordinary_words_stay_readable(name: str, plain) -> None:
    assert plain_name(name, plain) == name


@given(st.from_regex(r"[0-9]{7,20}", fullmatch=True))
def test_every_bare_number_is_replaced_but_dates(number: str) -> None:
    name = plain_name(f"{number}.jsonl", lambda text: text)
    is_date = re.fullmatch(r"20\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])([0-5]\d){0,2})?", number)
    assert (name == f"{number}.jsonl") == bool(is_date)


def test_two_peoples_files_stay_two_and_the_mark_is_keyed(tmp_path) -> None:
    names = set()
    for place in ("a", "b"):
        logs = tmp_path / place / "logs"
        logs.mkdir(parents=True)
        for number in ("5551234567", "5551234568"):
            (logs / f"{number}.jsonl").write_text("{}\n")
        ws = Workspace.open(tmp_path / place)
        names |= {file.name for file in Source(ws).files(lambda text: text)}
    assert len(names) == 4
    assert all(name.startswith("<NUMBER>.jsonl~") for name in names)
