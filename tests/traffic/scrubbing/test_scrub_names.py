"""Announced names in any case, from a source that the scrubber does not use; and words that are no names."""

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber

TEMPLATES = [
    "hi, my name is {} and i forgot my pin code",
    "this is {} speaking, where is my parcel",
    "i am {}, please help me",
    "hello, i'm {}. how do i log in?",
    "how do i reset it? kind regards, {}",
    "name: {}",
    "customer name: {} wants a refund",
    "please call me {}",
    "my full name is {} but the card says otherwise",
    "the account is in the name of {}",
    "my husband's name is {}",
    "dear {}, when is it due",
    "me llamo {} y no puedo entrar",
    "ich heiße {} und habe eine Frage",
    "je m'appelle {} et je veux annuler",
    "mi chiamo {}, vorrei un rimborso",
    "i go by {}",
]


def _names() -> list[str]:
    """500 names of 20 languages from mimesis (MIT), three quarters of them with a family name."""
    mimesis = pytest.importorskip("mimesis")
    people = [mimesis.Person(code, seed=7) for code in LOCALES]
    return [
        people[i % len(people)].first_name() + (" " + people[i % len(people)].last_name() if i % 4 else "")
        for i in range(500)
    ]


LOCALES = "en en-gb de fr es it pt-br pl sv nl cs tr hu da fi no et is sk hr".split()


@pytest.fixture(scope="module", params=["off", "auto"])
def scrubber(request) -> Scrubber:
    return build_scrubber(Scrub(ner=request.param))


@pytest.mark.parametrize("case", ["lower", "upper", "title"])
def test_announced_names_of_another_source_are_found(scrubber, case):
    names, hits, whole = _names(), 0, 0
    for index, name in enumerate(names):
        shown = {"lower": name.lower(), "upper": name.upper(), "title": name}[case]
        template = TEMPLATES[index % len(TEMPLATES)]
        text = (template.upper() if case == "upper" else template).format(shown)
        start = text.rindex(shown)
        spans = [s for s in scrubber.spans(text) if s.type == "PERSON"]
        hits += any(s.start < start + len(shown) and start < s.end for s in spans)
        whole += any((s.start, s.end) == (start, start + len(shown)) for s in spans)
    assert hits / len(names) >= 0.90
    assert whole / len(names) >= 0.85


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("this is O'Neil-Müller, Jörg speaking", "O'Neil-Müller, Jörg"),
        ("MY NAME IS SOFIA TESTERSON", "SOFIA TESTERSON"),
        ("please ask mr. de la Probe about it", "de la Probe"),
        ("can Anna Testerson see my files", "Anna Testerson"),
        ("does Quirin Thorvaldsen get the mail", "Quirin Thorvaldsen"),
        ("add Anna, Peter, Mark and Crystal to the list", "Crystal"),
        ('luis: "who are you?"', "luis"),
        ("Emily's account is locked", "Emily"),
    ],
)
def test_names_in_their_usual_surroundings(scrubber, text, name):
    assert name in [text[s.start : s.end] for s in scrubber.spans(text) if s.type == "PERSON"]


@pytest.mark.parametrize(
    "text",
    [
        "is Gill Sans allowed in exports",
        "use the Grant Report template",
        "can i chase the mark sheet in june",
        "does grace period apply in april",
        "the jenkins job for cassandra fails",
        "Jenkins and Cassandra are down",
        "my name is wrong on the card",
        "my name is not on the list",
        "i am looking for the invoice",
        "I'm unable to log in, this is urgent",
        "this is really annoying. thanks a lot",
        "thanks, bye",
        "Will my card arrive in May",
        "transfers from France to South Africa",
        "I've been waiting since Monday, 24 April 2020",
        "hi there, i'm dissapointed with the servise",
        "Torres Strait and Bering Sea",
        "AsyncClient with FastAPI returns HEIC",
        "why does setup.py ignore build.rs",
    ],
)
def test_words_that_are_no_people_stay(scrubber, text):
    assert scrubber.spans(text) == []
