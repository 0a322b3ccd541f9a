"""Patterns and checksums, on values from reserved ranges and the networks' public test numbers."""

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return build_scrubber(Scrub(ner="off"))


FOUND = [
    ("EMAIL_ADDRESS", "mail ", "ana.test+x@example.com", " please"),
    ("EMAIL_ADDRESS", "mailto:", "o'neil@mail.example.co.uk", ", ok"),
    ("EMAIL_ADDRESS", "...", "one@example.com", "..."),
    ("EMAIL_ADDRESS", "write to ", "ana (at) example dot org", " instead"),
    ("EMAIL_ADDRESS", "", "jörg@büro.example", ""),
    ("URL", "see (", "https://example.com/a_(b)?x=1", "), thanks"),
    ("URL", "open ", "HTTP://Example.ORG", "."),
    ("URL", "db is ", "postgres://admin:s3cret@db.example.net:5432/main", " today"),
    ("URL", "use ", "example.com/r?token=tok_51Habc", " now"),
    ("IP_ADDRESS", "from ", "203.0.113.7", " to here"),
    ("IP_ADDRESS", "allow ", "198.51.100.0/24", ","),
    ("IP_ADDRESS", "host ", "2001:db8::7", " is down"),
    ("IP_ADDRESS", "host=", "192.0.2.44", ";"),
    ("MAC_ADDRESS", "nic ", "00:00:5E:00:53:AF", " lost"),
    ("MAC_ADDRESS", "nic ", "0000.5e00.53af", " lost"),
    ("CREDIT_CARD", "charged on ", "4111 1111 1111 1111", " twice"),
    ("CREDIT_CARD", "", "3782-822463-10005", " expired"),
    ("CREDIT_CARD", "number:", "5555555555554444", ""),
    ("IBAN_CODE", "to ", "DE89 3704 0044 0532 0130 00", " bitte"),
    ("IBAN_CODE", "to ", "gb82west12345698765432", " today"),
    ("US_SSN", "it is ", "078-05-1120", "."),
    ("US_SSN", "my ssn is ", "078051120", ""),
    ("US_ITIN", "itin ", "912-70-1234", ""),
    ("PHONE_NUMBER", "num:", "+33199001234", ";ok"),
    ("PHONE_NUMBER", "call", "(202)555-0143", "or mail"),
    ("PHONE_NUMBER", "the desk is ", "+44 (20) 7946 0018", ""),
    ("PHONE_NUMBER", "ring ", "0161 496 0123", " after six"),
    ("PHONE_NUMBER", "text me at ", "2025550143", ""),
    ("PHONE_NUMBER", "fax: ", "202-555-0143 ext. 12", ""),
    ("DATE_OF_BIRTH", "dob ", "03/04/1985", ""),
    ("DATE_OF_BIRTH", "i was born on ", "April 3, 1985", " in a town"),
    ("DATE_OF_BIRTH", "geboren am ", "3.4.1985", ""),
    ("CRYPTO", "send to ", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", ""),
    ("ADDRESS", "send it to ", "12 Sample Street, Springfield 62704", ""),
    ("ADDRESS", "ich wohne in der ", "Musterstraße 5", ""),
    ("ADDRESS", "i live at ", "7 imaginary lane apt 3b", ""),
    ("ADDRESS", "office: ", "P.O. Box 123", ""),
    ("ADDRESS", "j'habite au ", "40 rue Imaginaire", ""),
]


@pytest.mark.parametrize(("entity", "before", "value", "after"), FOUND, ids=[f"{e}-{v}" for e, _, v, _ in FOUND])
def test_the_whole_value_is_found_and_the_words_around_it_stay(scrubber, entity, before, value, after):
    text = before + value + after
    spans = scrubber.spans(text)
    assert [(s.type, text[s.start : s.end]) for s in spans] == [(entity, value)]


KEPT = [
    "job 1796000000002 failed",  # passes Luhn; no network issues 17
    "session 46093154-8150-4271-ad3e-c0ffee12d0aa",
    "v4.18.0.1 to 4.19.2.0",
    "driver version 10.1.1.45 crashes",
    "see example.org/docs/install and README.md",
    "std::vector and a::b",
    "at 12:30:45 every day",
    "GB00WEST12345698765432 is no account",  # mod 97 is wrong
    "000-12-3456 and 666-12-3456 and 123-00-4567",
    "03/05/2019 or 2019-05-03",
    "ref 2617-0042, cursor 1796000000",
    "what happened in 1985",
    "the password is wrong",
    "my token expired, is the api key free",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "npm install left-pad@1.3.0",
    "@property and @media are not people",
    "which country has 100 by 20 meters",
    "room for 4 people at 5 pm on march 2 and 3",
    "call 5 times a day",
    "error 0x80070057 in build 22621.1702",
    "bind to 127.0.0.1:5432 or 0.0.0.0",
    "invoice 2024-00123 vs 2024-00124",
    "class MyVeryLongClassNameForTesting123 is missing",
    "the COVID-19 AGEE stream and 2 Kafka Streams",
    "a 5 minute drive or a 3 hard drive raid",
]


@pytest.mark.parametrize("text", KEPT)
def test_look_alikes_are_kept(scrubber, text):
    assert scrubber.spans(text) == []


def test_an_iban_stops_where_its_country_says_so_and_spares_the_next_word(scrubber):
    text = "IBAN GB82 WEST 1234 5698 7654 32 and more"
    assert scrubber.texts([text])[0].text == "IBAN <IBAN_CODE_1> and more"


def test_a_mistyped_card_next_to_the_word_is_as_personal_as_a_right_one(scrubber):
    assert scrubber.texts(["my card is 4111 1111 1111 1112"])[0].text == "my card is <CREDIT_CARD_1>"
    assert scrubber.spans("order 4111111111111112") == []


def test_every_http_url_goes_by_default_and_only_telling_ones_when_narrowed():
    plain, telling = "https://example.com/docs", "https://example.com/u/ana?sid=9f8e"
    every = build_scrubber(Scrub(ner="off"))
    narrow = build_scrubber(Scrub(ner="off", entities={"URL": "identifying"}))
    assert [len(every.spans(u)) for u in (plain, telling)] == [1, 1]
    assert [len(narrow.spans(u)) for u in (plain, telling)] == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "4111\u00a01111\u00a01111\u00a01111 declined",  # no-break spaces
        "４１１１１１１１１１１１１１１１ declined",  # full-width digits
        "4111\u200b1111\u200b1111\u200b1111 declined",  # zero-width spaces
        "card \u202e4111-1111-1111-1111\u202c",  # direction marks
    ],
)
def test_look_alike_and_invisible_characters_do_not_hide_a_card(scrubber, text):
    spans = scrubber.spans(text)
    assert [s.type for s in spans] == ["CREDIT_CARD"]
    inside = text[spans[0].start : spans[0].end]
    assert sum(c.isdigit() for c in inside) == 16
