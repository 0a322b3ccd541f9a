"""Border of the kind: a disguise counts where an address shows once it is off, and nowhere else."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber

ATS = [
    "@",
    "(at)",
    "[at]",
    " [at] ",
    "{at}",
    "<at>",
    "[@]",
    " (@) ",
    "&#64;",
    "&#x40;",
    "&commat;",
    " at ",
    " AT ",
    "(AT)",
    "[ at ]",
]
DOTS = [".", "[.]", "(.)", "{.}", "[dot]", " [dot] ", "(dot)", " dot ", " DOT ", "&#46;", "&period;"]
QUAD_DOTS = ["[.]", "(.)", "{.}", "[dot]", "(dot)", " [.] "]


@pytest.fixture(scope="module", params=["off", "auto"])
def scrubber(request) -> Scrubber:
    return build_scrubber(Scrub(ner=request.param))


@pytest.mark.parametrize("at", ATS)
def test_every_mixture_of_hidden_and_plain_signs_is_an_address(scrubber, at):
    for dot, host_dot in itertools.product(DOTS, DOTS):
        text = f"write to jane{dot}roe{at}example{host_dot}com today"
        assert scrubber.texts([text])[0].text == "write to <EMAIL_ADDRESS_1> today", text


@pytest.mark.parametrize("dot", QUAD_DOTS)
def test_dotted_quads_and_urls_in_disguise_go_whole(scrubber, dot):
    cases = [
        (f"from 192{dot}0{dot}2{dot}44 today", "from <IP_ADDRESS_1> today"),
        (f"from 192.0.2{dot}44 today", "from <IP_ADDRESS_1> today"),
        (f"open hxxp://evil{dot}example/a?b=1 today", "open <URL_1> today"),
        (f"open hxxps[:]//evil{dot}example/a today", "open <URL_1> today"),
    ]
    for text, done in cases:
        assert scrubber.texts([text])[0].text == done, text


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("jane dot roe at example dot com is my mail", "<EMAIL_ADDRESS_1> is my mail"),
        ("my mail is jane.roe @ example.com ok", "my mail is <EMAIL_ADDRESS_1> ok"),
        ("jane arroba example punto com", "<EMAIL_ADDRESS_1>"),
        ("email jane.roe at example.com please", "email <EMAIL_ADDRESS_1> please"),
        ("hxxps://example.com/x is down", "<URL_1> is down"),
        ("hxxp[://]example[.]com/x is down", "<URL_1> is down"),
        ("http://203[.]0[.]113[.]7/x is down", "<URL_1> is down"),
        ("2001:db8::17 or 203.0.113[.]7", "<IP_ADDRESS_1> or <IP_ADDRESS_2>"),
        ("jane underscore roe at mail dot example dot org", "<EMAIL_ADDRESS_1>"),
        ("ana (at) example dot org", "<EMAIL_ADDRESS_1>"),
    ],
)
def test_spelled_addresses_go(scrubber, text, done):
    assert scrubber.texts([text])[0].text == done


@pytest.mark.parametrize(
    "text",
    [
        "can we meet at example room 4", "items[at] and list[.] in the query language", "arr[.] and map[at]", "look at example dot com please",
        "log in at example dot com", "the (at) sign and the (dot) are missing", "a [dot] at the end", "regex a\\.b\\.c matches", "x &#64; y",
        "version 4[.]18", "python -m pytest tests [at] all", "cc @example.com", "thanks @anna. me too", "pin it @ 5.30 pm", "at 5 dot 30",
        "dot com bubble at its peak", "the dot product at point com", "find it at example.com", "available at docs.example.com", "see [.] here",
        "use dot notation at all times", "f(at) = g(dot)", "array[at](.)", "hxxp is not a scheme", "what does [at] mean in an e-mail",
        "driver version 10[.]1[.]1[.]45", "two items at 3.50 each", "connect the dots at home.", "pip install left-pad@1.3.0", "npm i a @ b", "no delays at this point in time", "at that point me and you",
    ],
)  # fmt: skip
def test_brackets_dots_and_places_that_lead_to_no_address_stay(scrubber, text):
    assert scrubber.texts([text])[0].text == text


@settings(max_examples=100, deadline=None)
@given(
    at=st.sampled_from(ATS[1:]), dot=st.sampled_from(DOTS),
    local=st.from_regex(r"[a-z]{3,8}[0-9]{1,2}", fullmatch=True), host=st.from_regex(r"[a-z]{3,10}", fullmatch=True),
)  # fmt: skip
def test_any_address_behind_any_disguise_is_gone(at, dot, local, host):
    text = f"my mail is {local}{at}{host}{dot}org, thanks"
    done = build_scrubber(Scrub(ner="off")).texts([text])[0].text
    assert local not in done
    assert done.startswith("my mail is ")
    assert done.endswith(", thanks")
