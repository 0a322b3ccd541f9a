"""One line of JSON: what is a request, what is quarantined and why, and that both ways of reading agree."""

import json
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragbench_dagster.settings import Traffic
from ragbench_dagster.traffic.parse import Decoder
from ragbench_dagster.traffic.requests import BadLine, LogRequest, Node

FAST = Decoder(Traffic())
SLOW = Decoder(Traffic(where={"nothing_of_the_kind": [None]}))  # a condition every line meets
BASE = {"timestamp": "2026-11-20T09:00:00Z", "query": "How?"}


def line(**fields) -> bytes:
    return json.dumps({**BASE, **fields}).encode()


def request(raw: bytes) -> LogRequest:
    found = FAST.line(1, raw)
    assert isinstance(found, LogRequest), found
    return found


def reason(raw: bytes) -> str:
    found = FAST.line(1, raw)
    assert isinstance(found, BadLine), found
    return found.reason


@pytest.mark.parametrize(
    ("written", "id_"),
    [
        ("9007199254740993", "9007199254740993"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ('"1e3"', "1e3"),
        ("1e3", "1e3"),
        ("1000", "1000"),
        ('"1000"', "1000"),
        ('"00010"', "00010"),
        ('"2024-01-01"', "2024-01-01"),
        ('"caf\\u00e9"', "café"),
    ],
)
@pytest.mark.parametrize("decoder", [FAST, SLOW])
def test_ids_are_the_text_that_stands_there(decoder, written, id_):
    raw = b'{"timestamp": 1795168800, "query": "q", "request_id": ' + written.encode() + b"}"
    found = decoder.line(1, raw)
    assert isinstance(found, LogRequest)
    assert found.request_id == id_


def test_all_ids_of_a_line_keep_their_digits():
    found = request(line(user_id=9007199254740993, conversation_id=9007199254740995, source_nodes=[9007199254740997]))
    assert (found.user_id, found.conversation_id) == ("9007199254740993", "9007199254740995")
    assert found.nodes == (Node("9007199254740997"),)


def test_missing_id_is_derived_from_content_and_position():
    raw = line()
    assert request(raw).request_id == request(raw).request_id
    assert request(raw).request_id != FAST.line(2, raw).request_id
    assert request(raw).request_id != request(line(query="Why?")).request_id
    assert request(line(request_id="")).request_id.startswith("line:1:")
    assert request(line(request_id=None)).request_id.startswith("line:1:")


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e400"])
@pytest.mark.parametrize("field", ["latency_ms", "something_else"])
def test_literals_that_are_no_json_numbers(literal, field):
    raw = b'{"timestamp": 1795168800, "query": "q", "' + field.encode() + b'": ' + literal.encode() + b"}"
    if (literal, field) == ("1e400", "something_else"):
        assert isinstance(FAST.line(1, raw), LogRequest)  # a legal number in a field that nobody reads
    else:
        assert reason(raw).startswith("not JSON: ")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"[1, 2, 3]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b'{"timestamp": 1795168800, "quer', "not JSON: truncated"),
        (b"{'timestamp': 1}", "not JSON: "),
        (b"\0\0\0\0", "not JSON: "),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (line(query=42), "query: text is wanted, not a number"),
        (line(query=""), "query: empty"),
        (line(query=" \n\t"), "query: empty"),
        (line(query=None), "query: missing"),
        (json.dumps({"query": "q"}).encode(), "timestamp: missing"),
        (line(timestamp="yesterday"), "timestamp: neither ISO 8601 nor an epoch number"),
        (line(request_id=["a"]), "request_id: text or a number is wanted, not an array"),
        (line(request_id=True), "request_id: text or a number is wanted, not true or false"),
        (line(latency_ms=-1), "latency_ms: negative"),
        (line(latency_ms="fast"), "latency_ms: a number is wanted"),
        (line(response={"a": 1}), "response: text is wanted, not an object"),
        (line(source_nodes=3), "source_nodes: an array is wanted, not a number"),
        (line(source_nodes=[["a"]]), "source_nodes[0]: text or a number is wanted, not an array"),
        (line(source_nodes=[{"node_id": "a", "score": "high"}]), "source_nodes[0].score: a number is wanted"),
        (line(history=[3]), "history[0]: text or a message is wanted, not a number"),
        (line().replace(b'"query"', b'"query\xff\xfe"'), "not valid UTF-8 at byte "),
        (line(other="x").replace(b'"x"', b'"\xff"'), "not valid UTF-8 at byte "),
    ],
)
def test_bad_line_says_what_is_wrong(raw, why):
    assert reason(raw).startswith(why)


@given(
    st.text(string.ascii_letters, min_size=3).map("Zq".__add__),
    st.sampled_from(["query", "latency_ms", "request_id", "user_id"]),
)
def test_reason_never_repeats_the_line(secret, field):
    for value in ([secret], {secret: secret}, [{"a": secret}]):
        assert secret not in reason(line(**{field: value}))
    assert secret not in reason(line(query=secret)[:-3])
    assert secret not in reason(line(timestamp=secret))


def test_half_an_emoji_is_kept_as_the_replacement_character():
    found = request(rb'{"timestamp": 1795168800, "query": "Can I \udc00 it?", "response": "wait \ud83d"}')
    assert (found.query, found.response, found.repaired) == ("Can I \ufffd it?", "wait \ufffd", True)
    whole = request(rb'{"timestamp": 1795168800, "query": "\ud83d\ude00 \\ud83d"}')
    assert (whole.query, whole.repaired) == ("\U0001f600 \\ud83d", False)


def test_hostile_but_legal_text_is_kept_whole():
    text = "a\0b\u202eevil\u202c\u2028" + "x" * 100_000
    assert request(line(query=text)).query == text


def test_spellings_of_other_tools():
    nodes = [
        "a",
        7,
        {"node_id": "b", "score": 0.5, "text": "T"},
        {"id": "c", "content": "C", "similarity": 0.25},
        {"node": {"id_": "d", "text": "D"}, "score": 1},
        {"page_content": "E"},
        None,
        {"score": 0.1},
    ]
    assert request(line(source_nodes=nodes)).nodes == (
        Node("a"),
        Node("7"),
        Node("b", 0.5, "T"),
        Node("c", 0.25, "C"),
        Node("d", 1.0, "D"),
        Node(None, None, "E"),
        Node(None),  # without an id, it keeps its rank
        Node(None, 0.1),
    )
    assert request(line(source_nodes=[])).nodes == ()
    assert request(line()).nodes is None


def test_history_is_the_turns_before_the_question():
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "And refunds?"},
        {"role": "assistant", "content": [{"type": "text", "text": "30 days."}]},
        {"role": "user", "content": "How?"},
    ]
    assert request(line(history=turns)).history == ("user: And refunds?", "assistant: 30 days.")
    assert request(line(history=turns[:1] + turns[3:])).history == ()
    assert request(line(history=["first", "second"])).history == ("first", "second")
    assert request(line(history=[["q", "a"]])).history == ("q", "a")
    assert request(line(history="earlier")).history == ("earlier",)
    assert request(line(history=[])).history == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
FIELDS = ["timestamp", "query", "request_id", "response", "source_nodes", "latency_ms", "category", "user_id", "model",
          "conversation_id", "history"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4))
@example({"source_nodes": [{"node_id": 1, "score": 2, "text": ""}]})
@example({"history": [{"role": "user", "content": "How?"}]})
@example({"latency_ms": 10**20, "user_id": 10**20, "category": 0})
@example({"model": "", "category": "", "conversation_id": ""})
def test_the_fast_and_the_patient_way_agree(fields):
    raw = json.dumps({**BASE, **fields}).encode()
    assert FAST.line(3, raw) == SLOW.line(3, raw)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80))
def test_no_bytes_break_the_decoder(raw):
    assert isinstance(FAST.line(1, raw), LogRequest | BadLine)
