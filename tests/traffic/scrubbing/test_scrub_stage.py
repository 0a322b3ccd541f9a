"""The stage filter and the worker processes."""

import multiprocessing

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Request, build_scrubber, pool, stage_scrub
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
def test_several_processes_find_what_one_finds_and_there_is_one_pool(monkeypatch):
    monkeypatch.setattr("ragbench_dagster.traffic.scrubbing.pool.WORTH", 10)
    started: list[int] = []
    executor = pool.ProcessPoolExecutor
    monkeypatch.setattr(pool, "ProcessPoolExecutor", lambda n, *rest: started.append(n) or executor(n, *rest))
    texts = [f"my name is Ada Testwood, mail u{i}@example.com" for i in range(40)]
    settings = Scrub(ner="off", entities=["EMAIL_ADDRESS"], processes=2)
    many, other = Scrubber(settings), Scrubber(settings)
    one = Scrubber(settings.model_copy(update={"processes": 1}))
    batches = many.batches([[Request(text)] for text in texts])
    first = next(batches)
    assert other.texts(texts) == one.texts(texts)  # while the first still works: in the same processes
    assert [first, *batches] == [one.requests([Request(text)]) for text in texts]
    assert started == [2]
    assert not multiprocessing.active_children(), "the processes end with their work"


def test_a_worker_process_starts_none_of_its_own():
    pool._start(Scrub(ner="off", entities=["EMAIL_ADDRESS"], processes=4), None)
    assert pool._scrubbers.pop()._workers is None


def test_little_text_starts_no_process(monkeypatch):
    monkeypatch.setattr(pool, "ProcessPoolExecutor", None)
    made = Scrubber(Scrub(ner="off", entities=["EMAIL_ADDRESS"], processes=4))
    done = made.batches(iter([[Request("mail a@example.com")], [Request("b@example.com")]]))
    assert [one.query for some in done for one in some] == ["mail <EMAIL_ADDRESS_1>", "<EMAIL_ADDRESS_1>"]
