"""What must hold for every text: skipping changes nothing, offsets are right, placeholders pass unharmed."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import PLACEHOLDER, Span
from ragbench_dagster.traffic.scrubbing.ner import installed_model
from ragbench_dagster.traffic.scrubbing.normalise import view_of
from ragbench_dagster.traffic.scrubbing.prefilter import Caseless, Facts
from ragbench_dagster.traffic.scrubbing.recognisers import addresses, secrets
from ragbench_dagster.traffic.scrubbing.recognisers.names import announced
from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber
from ragbench_dagster.traffic.scrubbing.spans import resolve

FRAGMENTS = [
    "my name is", "MY NAME IS", "i'm", "I am", "regards,", "mr", "Dr.", "name:", "zuzanna", "Zuzanna", "TESTERSON", "Testerson",
    "will", "Mark", "Grace", "O'Neil-Müller", "van", "de", "A.", "Paris", "in", "from", "and", ",", "\n", "call", "+44 20 7946 0018",
    "(202) 555-0143", "2025550143", "fax", "4111 1111 1111 1111", "4111111111111111", "card", "IBAN", "DE89370400440532013000",
    "078-05-1120", "ssn", "203.0.113.7", "v4.18.0.1", "version", "2001:db8::7", "00:00:5E:00:53:AF", "ana@example.com", "@", "(at)",
    " dot ", "https://example.com/?token=x1", "://", "?a=", "example.com", "12", "Sample Street", "Apt. 4", "Musterstraße 5", "62704",
    "i live at", "address is", "the corner of", "born on", "dob", "03/04/1985", "password is", "Tr0ub4dor&3", "paſſword", "PIN",
    "4821", "bearer", "sk-proj-aB3dE5fG7hJ9kL2mN4pQ", "eyJhbGciOi.eyJzdWIiOi.c2ln", "<PERSON_1>", "<EMAIL_ADDRESS>", "<", ">", "K", "ı", "İ",
    "\u200b", "\u202e", "\x00", "😀", "e\u0301", "\u2028", "４１１１", "passport 123456789", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "ich heiße",
    "Schlüssel", "\"", ":", ".", "'s", "-",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=12).flatmap(
    lambda parts: st.sampled_from(["", " "]).map(lambda glue: glue.join(parts))
)
NERS = ["off", pytest.param("on", marks=pytest.mark.skipif(installed_model() is None, reason="no NER model installed"))]


@pytest.fixture(scope="module", params=NERS)
def pair(request) -> tuple[Scrubber, Scrubber]:
    chosen = Scrub(ner=request.param, countries=["GB", "ES"])
    return Scrubber(chosen), Scrubber(chosen, skip=False)


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber(Scrub(ner="off"))


@settings(max_examples=250, deadline=None)
@given(text=TEXTS)
def test_skipping_a_recogniser_never_changes_a_result(pair, text):
    skipping, asking_all = pair
    assert skipping.find_all([text]) == asking_all.find_all([text])


@settings(max_examples=250, deadline=None)
@given(text=TEXTS)
def test_spans_are_inside_the_input_in_order_and_apart(scrubber, text):
    spans = scrubber.spans(text)
    ends = [0, *(s.end for s in spans)]
    assert all(end <= s.start < s.end <= len(text) for end, s in zip(ends, spans, strict=False))
    rebuilt, at = "", 0
    for span in spans:
        rebuilt += text[at : span.start] + text[span.start : span.end]
        at = span.end
    assert rebuilt + text[at:] == text


@settings(max_examples=250, deadline=None)
@given(text=TEXTS)
def test_placeholders_that_are_already_there_pass_unharmed(scrubber, text):
    before = [m[0] for m in PLACEHOLDER.finditer(text)]
    after = [m[0] for m in PLACEHOLDER.finditer(scrubber.texts([text])[0].text)]
    left = iter(after)
    assert all(name in left for name in before)  # a subsequence: each is still there, in order


VALUES = st.sampled_from(
    [
        "ana@example.com", "4111 1111 1111 1111", "DE89370400440532013000", "078-05-1120", "203.0.113.7", "+44 20 7946 0018",
        "https://example.com/?token=x1", "00:00:5E:00:53:AF", "sk-proj-aB3dE5fG7hJ9kL2mN4pQ", "my name is Zuzanna Testerson",
        "12 Sample Street, Springfield 62704", "is it open today", "version 4.18.0.1", "thanks",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(VALUES, min_size=1, max_size=6))
def test_scrubbing_twice_is_scrubbing_once(scrubber, parts):
    once = scrubber.texts([" ; ".join(parts)])[0].text
    assert scrubber.texts([once])[0].text == once


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(TEXTS, max_size=6))
def test_a_text_is_scrubbed_the_same_alone_in_a_batch_and_from_the_cache(texts):
    fresh = Scrubber(Scrub(ner="off"))
    batch = fresh.texts(texts)
    assert batch == [Scrubber(Scrub(ner="off")).texts([t])[0] for t in texts] == fresh.texts(texts)


SPANS = st.builds(
    lambda a, n, t: Span(a, min(40, a + n), t),
    st.integers(0, 39), st.integers(1, 20), st.sampled_from(["PERSON", "URL", "ADDRESS", "PHONE_NUMBER", "OWN"]),
)  # fmt: skip


@given(found=st.lists(SPANS, max_size=12))
def test_resolving_hides_everything_found_but_spaces_and_scraps(found):
    text = "abcdefghi " * 4
    kept = resolve(found, text)
    assert all(a.end <= b.start for a, b in pairwise(kept))
    hidden = {i for s in kept for i in range(s.start, s.end)}
    wanted = {i for s in found if s.type != "PHONE_NUMBER" for i in range(s.start, s.end)}
    assert sum(not text[i].isspace() for i in wanted - hidden) <= len(found)  # single letters between winners


@given(text=st.text())
def test_the_view_keeps_every_place_or_says_where_each_character_was(text):
    view = view_of(text)
    if view.origin is None:
        assert len(view.text) == len(text)
        assert all(seen == ch for seen, ch in zip(view.text, text, strict=True) if ch.isascii())
    else:
        assert len(view.origin) == len(view.text)
        assert list(view.origin) == sorted(set(view.origin))


def caseless_patterns() -> list[tuple[str, Caseless]]:
    return [
        (f"{module.__name__.rpartition('.')[2]}.{name}", pattern)
        for module in (announced, addresses, secrets)
        for name, pattern in vars(module).items()
        if isinstance(pattern, Caseless)
    ]


@pytest.mark.parametrize("pattern", [p for _, p in caseless_patterns()], ids=[n for n, _ in caseless_patterns()])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_caseless_pattern_finds_the_same_in_the_folded_text(pattern, data):
    """In every case of the letters, inside other words, and beside letters that ASCII does not have."""
    matching = data.draw(st.from_regex(pattern.lower_case))
    around = data.draw(st.sampled_from(["", " so it goes", " 12 Main St", " Hauptweg 5, ", " é"]))
    text = data.draw(st.sampled_from([str.lower, str.upper, str.title, str.swapcase]))(matching) + around
    both = [[m.span() for m in pattern.any_case.finditer(text)], [m.span() for m in pattern.finditer(Facts(text))]]
    assert both[0] == both[1]
