"""Keys, tokens, private keys and passwords. All values are made up."""

import base64
import json

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return build_scrubber(Scrub(ner="off"))


def _part(value: dict) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part({'sub': 'nobody'})}.c2lnbmF0dXJl"
ALNUM = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9d"
SECRETS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + ALNUM[:36],
    "glpat-" + ALNUM[:20],
    "xoxb-" + "123456789012-" + ALNUM[:24],
    "sk-proj-" + ALNUM,
    "sk_live_" + ALNUM[:24],
    "AIza" + ALNUM[:35],
    "SG." + ALNUM[:22] + "." + ALNUM[:30],
    "npm_" + ALNUM[:36],
    "hf_" + ALNUM[:34],
    "acme_live_" + ALNUM[:20],
    JWT,
    ALNUM,
]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda s: s[:8])
def test_a_key_is_removed_in_the_middle_of_a_question(scrubber, secret):
    assert scrubber.texts([f"why is {secret} refused"])[0].text == "why is <SECRET_1> refused"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("curl -H 'Authorization: Bearer {}'", "abcdef0123456789abcdef"),
        ("my password is {} and it fails", "Tr0ub4dor&3"),
        ("the password for the mail server is {}, why", "Heron-nest!22"),
        ("PASSWORD={}", "hunter22xyz"),
        ('{{"api_key": "{}"}}', "just words here"),
        ("login ops password {} refused", "Fl0ck!export9"),
        ("my pin is {}", "4821"),
        ("the cvv {} is not accepted", "123"),
        ("passwort: {}", "Geheim99!"),
    ],
)
def test_what_the_words_call_a_secret_is_one(scrubber, text, secret):
    full = text.format(secret)
    start = full.index(secret)
    spans = [s for s in scrubber.spans(full) if s.type == "SECRET"]
    assert [(s.start, s.end) for s in spans] == [(start, start + len(secret))]


def test_a_private_key_is_removed_whole_also_when_its_end_is_cut_off(scrubber):
    body = "\n".join(["MIIBVgIBADANBgkqhkiG9w0BAQEFAASCAUAwggE8AgEAAkEA"] * 4)
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    assert scrubber.texts([f"here: {key} is it ok"])[0].text == "here: <SECRET_1> is it ok"
    assert "MIIB" not in scrubber.texts([f"here: {key[:150]}"])[0].text


@pytest.mark.parametrize(
    "text",
    [
        "how do i reset my password",
        "is the api key rotated every month",
        "token limits of the basic plan",
        "password: required, at least eight characters",
        "set API_KEY=$MY_KEY in the shell",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "the pin code screen has 3 fields",
        "what does sk stand for",
    ],
)
def test_talking_about_secrets_is_no_secret(scrubber, text):
    assert scrubber.spans(text) == []
