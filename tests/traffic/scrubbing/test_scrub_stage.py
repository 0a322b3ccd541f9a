"""The stage filter and the worker processes."""

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber, stage_scrub
from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber


def test_rows_come_out_in_order_with_spans_that_index_the_input():
    rows = [{"text": f"mail u{i}@example.com", "id": i} for i in range(600)]
    out = list(stage_scrub(iter(rows), build_scrubber(Scrub(ner="off"))))
    assert [o["id"] for o in out] == list(range(600))
    assert {o["text"] for o in out} == {"mail <EMAIL_ADDRESS_1>"}
    assert out[7]["spans"] == [{"start": 5, "end": 19, "type": "EMAIL_ADDRESS"}]


def test_the_stage_is_lazy():
    def rows():
        for _ in range(300):
            yield {"text": "hello"}
        raise AssertionError("read too far")

    assert next(stage_scrub(rows(), build_scrubber(Scrub(ner="off"))))["text"] == "hello"


@pytest.mark.parametrize("row", [{"query": "x"}, {"text": None}, {"text": 3}, ["text"]])
def test_a_row_without_text_is_named_by_its_number(row):
    with pytest.raises(UserError, match=r"^row 2: no text"):
        list(stage_scrub([{"text": "ok"}, row], build_scrubber(Scrub(ner="off"))))


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr("ragbench_dagster.traffic.scrubbing.scrubber.CACHE_CHARS", 10_000)
    made = Scrubber(Scrub(ner="off"))
    made.texts([f"number {i} " + "plain words " * 10 for i in range(300)])
    assert made._cached_chars <= 10_000
    assert 0 < len(made._cache) < 100
    made.texts(["x" * 100_000])
    assert "x" * 100_000 not in made._cache


@pytest.mark.slow
def test_several_processes_find_what_one_finds(monkeypatch):
    monkeypatch.setattr("ragbench_dagster.traffic.scrubbing.pool.WORTH", 10)
    texts = [f"my name is Ada Testwood, mail u{i}@example.com" for i in range(700)]
    many = Scrubber(Scrub(ner="off", processes=2))
    try:
        assert many.texts(texts) == Scrubber(Scrub(ner="off")).texts(texts)
    finally:
        many.close()
