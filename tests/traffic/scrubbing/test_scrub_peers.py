"""What Presidio's own recognisers are sure of, ours find too; and nothing ever asks the network."""

import json
import subprocess
import sys

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber

OFFLINE = """
import socket, sys, json
def refuse(*a, **k):
    raise AssertionError("the network was asked")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
socket.create_connection = refuse
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber
made = build_scrubber(Scrub(countries=["US", "GB", "ES", "IT"]))
done = made.texts(["my name is Ada Testwood, open https://example.com/?token=1 with passport 123456789",
                   "1BoatSLRHtKNngkdXEeobR76b53LETtpyT or ring 0161 496 0123"])
sys.stdout.write(json.dumps([d.text for d in done]))
"""


def test_scrubbing_works_with_all_sockets_blocked():
    done = subprocess.run([sys.executable, "-c", OFFLINE], capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = json.loads(done.stdout)
    assert first == "my name is <PERSON_1>, open <URL_1> with passport <US_PASSPORT_1>"
    assert second == "<CRYPTO_1> or ring <PHONE_NUMBER_1>"


SURE = 0.85  # Presidio's score where a check digit holds, or the pattern alone is certain


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("CreditCardRecognizer", "CREDIT_CARD"), ("IbanRecognizer", "IBAN_CODE"), ("CryptoRecognizer", "CRYPTO"),
        ("MedicalLicenseRecognizer", "MEDICAL_LICENSE"),
    ],
)  # fmt: skip
def test_what_presidio_is_sure_of_is_hidden_by_ours_too(shared, name, entity):
    from presidio_analyzer import predefined_recognizers as presidio

    peer = getattr(presidio, name)()
    rows = (shared / "data" / "pii_presidio" / "rows.jsonl").read_bytes().split(b"\n")
    texts = [json.loads(row)["text"] for row in rows if row.strip()]
    texts += [
        "dea number BB1388568 please",
        "send 1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
        "DE89 3704 0044 0532 0130 00 ok",
    ]
    ours = build_scrubber(Scrub(ner="off")).texts(texts)
    sure = 0
    for text, done in zip(texts, ours, strict=True):
        for result in peer.analyze(text, [entity]) or ():
            if result.score >= SURE:
                sure += 1
                assert any(s.start < result.end and result.start < s.end for s in done.spans), entity
    assert sure > 0
