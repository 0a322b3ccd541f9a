"""Speed of scrubbing beside Presidio in the same run, on one core.

    taskset -c 0 env OMP_NUM_THREADS=1 pytest tests/bench/bench_scrub.py -s

Presidio runs as its users run it, but for its model and the list of public suffixes, which come from installed
packages: its defaults would download both. CPU seconds, distinct texts, both warmed up.
"""

import json
import os
import time
from collections.abc import Callable

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing.ner import installed_model
from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber  # a new one: `build_scrubber` may share its cache

STRUCTURED = ["EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "US_SSN", "IP_ADDRESS", "PHONE_NUMBER", "URL"]
WARM = "warm up: my name is Ada Testwood, call +44 20 7946 0018 or mail ana@example.com"
ROWS = 600


@pytest.fixture(scope="module", autouse=True)
def _one_core():
    """Pin this process; the BLAS threads of a second core would count as CPU of either side."""
    if hasattr(os, "sched_setaffinity"):
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(before)})
        yield
        os.sched_setaffinity(0, before)
    else:
        yield


@pytest.fixture(scope="module", params=["pii_presidio", "mixed"])
def texts(request, shared) -> list[str]:
    def column(name: str, key: str) -> list[str]:
        data = (shared / "data" / name).read_bytes().split(b"\n")
        return [json.loads(line)[key] for line in data if line.strip()]

    personal = column("pii_presidio/rows.jsonl", "text")
    if request.param == "mixed":
        personal = personal[: ROWS // 3] + column("queries_banking77/queries.jsonl", "query")
    return list(dict.fromkeys(personal))[:ROWS]


def _presidio(nlp):
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    # One snapshot-only extractor for the module functions that Presidio's e-mail recogniser calls.
    tldextract.extract = tldextract.tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)

    class Loaded(SpacyNlpEngine):
        def __init__(self) -> None:
            super().__init__(models=[{"lang_code": "en", "model_name": "loaded"}])
            self.nlp = {"en": nlp}

        def load(self) -> None:
            pass

    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    return AnalyzerEngine(registry=registry, nlp_engine=Loaded(), supported_languages=["en"])


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _ours(scrubber: Scrubber, texts: list[str]) -> float:
    scrubber.texts([WARM, WARM + " again"])
    return _seconds(lambda: scrubber.texts(texts))


def _tell(what: str, texts: list[str], ours: float, **peers: float) -> None:
    sides = ", ".join(f"{n} {len(texts) / s:,.0f} ({s / ours:.1f}x)" for n, s in peers.items())
    print(f"\n{what}: rows/s ours {len(texts) / ours:,.0f}; {sides}")


def test_structured_entities_at_ten_times_presidios_speed(texts):
    import spacy

    engine = _presidio(spacy.blank("en"))
    engine.analyze(WARM, language="en", entities=STRUCTURED)
    peer = _seconds(lambda: [engine.analyze(t, language="en", entities=STRUCTURED) for t in texts])
    ours = _ours(Scrubber(Scrub(entities=STRUCTURED, ner="off")), texts)
    _tell("7 structured entities", texts, ours, presidio=peer)
    assert peer / ours >= 10


def test_everything_with_ner_at_four_and_two_times_presidios_speed(texts):
    import importlib

    from presidio_analyzer import BatchAnalyzerEngine

    model = installed_model()
    if model is None:
        pytest.skip("no NER model: install ragbench-dagster[ner]")
    engine = _presidio(importlib.import_module(model).load())
    wanted = [*STRUCTURED, "PERSON"]
    engine.analyze(WARM, language="en", entities=wanted)
    single = _seconds(lambda: [engine.analyze(t, language="en", entities=wanted) for t in texts])
    batch = _seconds(lambda: list(BatchAnalyzerEngine(engine).analyze_iterator(texts, language="en", entities=wanted)))
    ours = _ours(Scrubber(Scrub(ner="on")), texts)
    _tell("all entities with NER", texts, ours, analyze=single, batch=batch)
    assert single / ours >= 4
    assert batch / ours >= 2
