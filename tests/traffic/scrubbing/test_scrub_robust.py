"""Long and hostile texts take time in proportion to their length."""

import time

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, residual

N = 100_000
HOSTILE = {
    "letters": "a" * N, "digits": "1" * N, "spaced digits": "1 " * (N // 2), "at signs": "a@" * (N // 2), "dots": "a." * (N // 2),
    "schemes": "http://" * (N // 7), "colons": "1:" * (N // 2), "brackets": "(1" * (N // 2), "plus": "+1" * (N // 2), "dashes": "a-" * (N // 2),
    "apostrophes": "a'" * (N // 2), "announcements": "my name is " * (N // 11), "names": "John Smith " * (N // 11), "list": "Anna, " * (N // 6),
    "passwords": "password is a" * (N // 13), "jwt": "eyJ" * (N // 3), "streets": "12 Main Street " * (N // 15), "rue": "rue a " * (N // 6),
    "corner": "the corner of " * (N // 14), "units": "apt 1 " * (N // 6), "keys": "-----BEGIN PRIVATE KEY-----" * (N // 27),
    "lines": "\n" * N, "ibans": "DE12" * (N // 4), "queries": "?a=b&" * (N // 5), "domains": "a.com?" * (N // 6), "base64": "aB3x" * (N // 4),
    "placeholders": "<PERSON_1" * (N // 9), "half placeholders": "<" + "A_" * (N // 2), "titles": "Mr. " * (N // 4), "nul": "\0" * N,
    "homes": "/home/anna " * (N // 11), "shares": "\\\\" * (N // 2), "keys and values": "name=a&" * (N // 7), "tags": "<name>a" * (N // 7),
    "hidden": "a [at] b [.] " * (N // 13), "said": "a dot a at " * (N // 11), "entities": "&#64;" * (N // 5), "ideographs": "我叫" * (N // 2),
    "zero width": "\u200b" * N, "combining": "e\u0301" * (N // 2), "blocks": "John Q Public\n12345\n" * (N // 20),
}  # fmt: skip


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    made = Scrubber(Scrub(ner="off"))
    made.spans("warm up: call Ana Testerson, 12 Sample Street, passport 123456789")
    return made


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_of_100_kb_takes_seconds_at_most(scrubber, name):
    start = time.process_time()
    scrubber.find_all([HOSTILE[name]])
    residual([HOSTILE[name]])
    assert time.process_time() - start < 5


def test_a_needle_in_100_kb_is_found_and_the_rest_stays(scrubber):
    hay = "the quick brown fox jumps over the lazy dog. " * (N // 90)
    text = hay + "mail ana@example.com now. " + hay
    spans = scrubber.spans(text)
    assert [text[s.start : s.end] for s in spans] == ["ana@example.com"]


def test_control_characters_and_emoji_do_not_move_offsets(scrubber):
    text = "\x00😀\u202e\u200b mail ana@example.com \U0001f469\u200d\U0001f4bb\x00"
    (span,) = scrubber.spans(text)
    assert text[span.start : span.end] == "ana@example.com"


def test_a_word_of_a_hundred_thousand_letters_takes_no_minutes():
    """Every cut of it was looked up as a compound: the doctor hung on one such line."""
    import time

    from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import lexicon

    begin = time.process_time()
    for letter in "aXz":
        lexicon().flags(letter * 100_000)
    assert time.process_time() - begin < 2
