"""Each member of a registry says what it is, has a version or a mark of its own, and a property that a test holds."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.evaluation.retrieval import metrics_at_k
from ragbench_dagster.metrics import METRICS, Metric, is_judged, is_known, is_retrieval, metric_of
from ragbench_dagster.records import Item
from ragbench_dagster.registry import member
from ragbench_dagster.reporting.report.render import environment
from ragbench_dagster.reporting.report.section import SECTIONS
from ragbench_dagster.reporting.tracking import TRACKERS
from ragbench_dagster.settings import Scrub
from ragbench_dagster.settings_parts import LOG_FORMATS, SYSTEM_KINDS, SystemBase
from ragbench_dagster.traffic.log_format import log_format
from ragbench_dagster.traffic.parse import Decoder
from ragbench_dagster.traffic.requests import LogRequest, Span
from ragbench_dagster.traffic.scrubbing.normalise import view_of
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.recogniser import RECOGNISERS, choose
from ragbench_dagster.traffic.traces.span_records import SpanDecoder

REFERENCE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")

# What each member must show. A new member needs a line here, which is its property test.
BEST: dict[str, tuple[list[str], list[str], float]] = {  # expected ids, retrieved ids, value at 3
    "hit_rate": (["a"], ["x", "a"], 1.0),
    "mrr": (["a"], ["x", "a"], 0.5),
    "precision": (["a"], ["x", "a"], 1 / 3),
    "recall": (["a", "b"], ["x", "a"], 0.5),
    "ap": (["a", "b"], ["x", "a"], 0.25),
    "ndcg": (["a"], ["x", "a"], 1 / math.log2(3)),
}
GRADED: dict[str, Item] = {  # an answer that the embedded evaluator scores
    name: Item("a", "What does it cost?", "It costs 10 euro.", ("The fee is 10 euro.",), "10 euro")
    for name in ("faithfulness", "relevancy", "correctness")
}
HELD = {  # metrics that other tests hold: name -> their file
    "answer_relevancy": "evaluation/judge/test_llamaindex_use.py",
    "context_relevancy": "evaluation/judge/test_llamaindex_use.py",
    "guideline": "evaluation/judge/test_llamaindex_use.py",
    "pairwise": "evaluation/judge/test_llamaindex_use.py",
    "semantic_similarity": "evaluation/judge/test_evaluators.py",
    "answered": "reporting/test_failures_of_a_system.py",
    "latency_p50_ms": "reporting/test_latency_percentiles.py",
    "latency_p95_ms": "reporting/test_latency_percentiles.py",
    "latency_p99_ms": "reporting/test_latency_percentiles.py",
    "cost_per_question_usd": "reporting/test_gate_verdicts.py",
}
PERSONAL = {
    "urls": "see https://example.com/?token=x1",
    "secrets": "the password is Tr0ub4dor&3",
    "emails": "write to ana@example.com",
    "ip_addresses": "from 203.0.113.7 please",
    "mac_addresses": "device 00:00:5E:00:53:AF",
    "ibans": "IBAN DE89370400440532013000",
    "cards": "card 4111 1111 1111 1111",
    "ssns": "ssn 078-05-1120",
    "births": "born on 03/04/1985",
    "phones": "call +44 20 7946 0018",
    "name_scripts": "меня зовут Иван Петров",
    "labelled_numbers": "passport number 123456789",
    "disguised": "ana (at) example (dot) com",
    "home_folders": "/home/maria.fernandez/notes",
    "keyed_values": '{"first_name": "Zuzanna"}',
    "addresses": "I live at 12 Sample Street, Apt. 4",
    "announced": "my name is Zuzanna",
    "names": "ask Maria Fernandez about it",
    "national": "the wallet is 1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
    "national_checked": "steuernummer 36574261809",
}
RECORDS: dict[str, bytes] = {
    "ragbench": b'{"timestamp": "2026-11-20T10:00:00Z", "query": "is it open?"}',
    "langfuse": b'{"id": "t1", "timestamp": "2026-11-20T10:00:00Z", "input": "is it open?", "output": "yes"}',
    "openinference": b'{"context": {"trace_id": "t1", "span_id": "s1"}, "start_time": "2026-11-20T10:00:00Z",'
    b' "attributes": {"openinference.span.kind": "CHAIN", "input.value": "is it open?"}}',
}
SYSTEMS: dict[str, dict[str, Any]] = {
    "engine": {"engine": "my_app:build"},
    "retriever": {"engine": "my_app:build"},
    "http": {"url": "https://rag.example.com/answer"},
    "logged": {},
}


@pytest.mark.parametrize("base", METRICS)
def test_a_metric_is_documented_versioned_and_has_a_hint(base: str) -> None:
    metric = METRICS[base]
    row = next((line for line in REFERENCE.splitlines() if line.startswith(f"| `{base}")), "")
    assert metric.documentation
    assert metric.documentation in row, f"docs/metrics.md lacks {base}"
    assert metric.hint in row
    assert metric.version
    assert metric.scale[0] < metric.scale[1]
    assert metric.higher_is_better == (metric.unit == "share")
    assert (metric.formula is not None) == (metric.family == "retrieval")
    assert (metric.grading is not None) == metric.judged
    assert base in BEST or base in GRADED or base in HELD, f"{base} has no property test"


@pytest.mark.parametrize("base", HELD)
def test_a_metric_that_another_file_holds_is_named_there(base: str) -> None:
    text = (Path(__file__).parents[1] / HELD[base]).read_text(encoding="utf-8")
    assert base in text or METRICS[base].family in text


@pytest.mark.parametrize("base", [m.base for m in METRICS.values() if m.formula])
def test_a_formula_has_the_value_of_its_line(base: str) -> None:
    expected, retrieved, value = BEST[base]
    assert metrics_at_k(expected, retrieved, 3)[f"{base}@3"] == pytest.approx(value)


@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), st.lists(st.sampled_from("abcdefgh")),
    st.integers(1, 9),
)  # fmt: skip
def test_every_formula_keeps_to_its_scale(expected: list[str], retrieved: list[str], k: int) -> None:
    for name, value in metrics_at_k(expected, retrieved, k).items():
        low, high = metric_of(name).scale
        assert value is not None
        assert low <= value <= high + 1e-9
        assert not metric_of(name).binary or value in (0.0, 1.0)
        assert metric_of(name).why(value)


@pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.grading], ids=lambda m: m.base)
def test_an_evaluator_says_what_it_is(metric: Metric) -> None:
    assert metric.grading is not None
    for path in {metric.grading.llm, metric.grading.embedded} - {""}:
        kind = member(path)
        assert kind.name == metric.base
        assert kind.__doc__
        assert kind.version
        assert hasattr(kind, "peer") or getattr(kind, "prompt", "") or kind.template_hash is not None


@pytest.mark.parametrize("base", [m.base for m in METRICS.values() if m.grading and m.grading.embedded not in ("", m.grading.llm)])  # fmt: skip
def test_an_embedded_score_keeps_to_its_scale(base: str) -> None:
    import asyncio

    from ragbench_dagster.evaluation.embedded import build

    verdict = asyncio.run(build(base).grade(GRADED[base]))
    low, high = METRICS[base].scale
    assert verdict.status == "scored"
    assert low <= verdict.score <= high


def test_names_of_metrics_are_read_in_one_way() -> None:
    assert metric_of("hit_rate@5") == METRICS["hit_rate"].at(5)
    assert metric_of("hit_rate@5").name == "hit_rate@5"
    assert is_retrieval("ap@10")
    assert not is_judged("ap@10")
    assert is_judged("faithfulness")
    assert not any(is_judged(name) for name in ("answered", "latency_p95_ms", "cost_per_question_usd"))
    for imported in ("mine", "mine@5", "precision", "judge.v2[x] & co", "faithfulness@5", "latency_p90_ms"):
        assert is_judged(imported)
        assert metric_of(imported).name == imported
        assert imported in metric_of(imported).hint
        assert not is_known(imported)
    # one spelling of a k: another one would be looked up under a name that nothing has
    for name in ("hit_rate@05", "hit_rate@0", "hit_rate@-1", "hit_rate@5.0", "hit_rate@ 5", "hit_rate@٥", "hit_rate@", "hit_rate@12345", "hit_rate@5@5", "answered", "pairwise", "latency_p95_ms"):  # fmt: skip
        assert not is_known(name), name


@pytest.mark.parametrize("name", RECOGNISERS)
def test_a_recogniser_is_documented_and_finds_its_kind(name: str) -> None:
    recogniser, text = RECOGNISERS[name], view_of(PERSONAL[name]).text
    chosen = choose(Scrub(countries=["DE"]))
    entities = recogniser.entities(chosen.countries)
    assert recogniser.find.__doc__
    assert entities <= chosen.entities
    facts = Facts(text)
    spans = [span for span in recogniser.finder(chosen)(facts) if span.type in entities]
    assert spans, f"{name} finds nothing in its line"
    assert recogniser.might(facts)


@pytest.mark.parametrize("name", RECOGNISERS)
@given(st.lists(st.sampled_from([*PERSONAL.values(), "and", "\n", ",", "Paris", "42"]), max_size=4))
def test_what_a_recogniser_finds_its_prefilter_lets_through(name: str, pieces: list[str]) -> None:
    recogniser, chosen = RECOGNISERS[name], choose(Scrub())
    facts = Facts(view_of(" ".join(pieces)).text)
    if list(recogniser.finder(chosen)(facts)):
        assert recogniser.might(facts)


@pytest.mark.parametrize("name", LOG_FORMATS)
def test_a_log_format_is_documented_and_reads_its_record(name: str) -> None:
    from ragbench_dagster.settings import Traffic

    form, traffic = log_format(name), Traffic(format=name)
    assert form.documentation
    if form.traces:
        (read,) = SpanDecoder(traffic).line(1, RECORDS[name])
        assert isinstance(read, Span)
        assert read.question == "is it open?"
    else:
        request = Decoder(traffic).line(1, RECORDS[name])
        assert isinstance(request, LogRequest)
        assert request.query == "is it open?"


@pytest.mark.parametrize("kind", SYSTEM_KINDS)
def test_a_system_kind_is_documented_and_has_an_identity(kind: str) -> None:
    entry = SYSTEM_KINDS[kind]
    settings = entry.model.model_validate({"kind": kind, **SYSTEMS[kind]})
    assert isinstance(settings, SystemBase)
    assert entry.model.__doc__
    assert entry.model.__doc__ != SystemBase.__doc__
    assert member(entry.build).__doc__
    assert settings.identity() != settings.model_copy(update={"model": "another"}).identity()
    assert settings.identity() == settings.model_copy(update={"timeout_s": 1.0}).identity()


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_has_a_title_a_note_and_a_macro(name: str) -> None:
    section = SECTIONS[name]
    assert section.title
    assert section.note
    assert hasattr(environment().get_template(section.template).module, section.macro)
    assert (section.macro == "plain") == (section.table is not None)


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_is_documented_and_off_by_default(name: str) -> None:
    from ragbench_dagster.settings import Tracking

    tracker = TRACKERS[name]
    assert tracker.title
    assert not tracker.chosen(Tracking())
    assert member(tracker.track).__doc__
    assert member(tracker.remove).__doc__
