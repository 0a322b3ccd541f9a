"""Border of the kind: weak evidence speaks for its own place; what stands for nobody is no person and no secret."""

import json
import sys
from collections import Counter

import pytest

from ragbench_dagster.settings import Scrub, parse_settings
from ragbench_dagster.store import Workspace, read_json
from ragbench_dagster.traffic.scrubbing import Scrubber, Span, build_scrubber, stage_scrub
from ragbench_dagster.traffic.scrubbing.ner import installed_model
from ragbench_dagster.traffic.scrubbing.placeholders import Request, scrub_request, words_of
from ragbench_dagster.traffic.scrubbing.quality import most_frequent, summed
from ragbench_dagster.traffic.scrubbing.spans import Evidence, resolve


@pytest.fixture(scope="module", params=["off", "auto"])
def scrubber(request) -> Scrubber:
    return build_scrubber(Scrub(ner=request.param))


NOBODY = [
    "apply key COVID-19 prevention steps", "the key ISO-27001 controls", "token ERC-20 standards", "key SHA-256 hashes", "which token BERT-base2 uses",
    "February, March and April are closed", "open in May, June and July", "reports for April, May and August", "between April and June",
    "Respirators, gloves and gowns", "What respirators are NIOSH-approved?", "Respirators are not for children", "Biosafety rules of the lab",
    "the Biosafety manual", "Handwashing tips for schools", "Bloodborne pathogens training", "Videoconferencing is preferred",
    "Stagger shifts and start times", "Runny nose or fever", "Hydroxychloroquine is unproven", "Enterobacteriaceae in wards",
    "Newborn screening tests", "Waybill numbers of the parcel", "the Air Waybill is used", "Candida auris is resistant", "Microfinance for farmers",
    "in the Riviera region", "Ibuprofen or Paracetamol", "OSHA's Respiratory Protection standard", "OSHA's Hazard Communication",
    "Emergency Use Authorizations for devices", "Hand Sanitizer with alcohol", "list medications (names, dosages, and times)",
    "the Regulation Agency (Ahpra), national boards", "Español [PDF]", "how to properly don a mask", "Norfolk Island: travel advice",
    "families address issues related to COVID-19", "shipped at 2-8 C with ice packs", "French Polynesia and New Caledonia",
]  # fmt: skip


@pytest.mark.parametrize("text", NOBODY)
def test_months_adjectives_masks_and_measures_are_nobody(scrubber, text):
    assert scrubber.texts([text])[0].text == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("April Jones called twice", "April Jones"), ("Anna, Peter, Mark and May came", "May"),
        ("ask Conly for it", "Conly"), ("Victoria said it is fine", "Victoria"), ("please tell Emily", "Emily"),
        ("the Jensen novel is out", "Jensen"), ("add Don Draper to the list", "Don Draper"), ("Robert's income tax return", "Robert"),
    ],
)  # fmt: skip
def test_people_of_the_same_names_still_go(scrubber, text, name):
    assert name not in scrubber.texts([text])[0].text


def _request(query, passage, *spans):
    """A request whose passage holds the given findings and whose question holds none."""
    return scrub_request(Request(query, None, (passage,)), [[], list(spans)], build_scrubber(Scrub(ner="off"))._lexicon)


WEAK = [e for e in Evidence if not e.strong]
STRONG = [e for e in Evidence if e.strong]


@pytest.mark.parametrize("evidence", list(Evidence))
@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("PERSON", "Quuxina Testwood"),
        ("SECRET", "COVID-19"),
        ("PERSON", "Respirators"),
        ("ADDRESS", "Deakin Hall"),
        ("URL", "a.example/x"),
    ],
)
def test_only_strong_evidence_spreads_from_a_passage_to_the_question(evidence, type_, value):
    query, passage = f"what of {value} here", f"see {value} and {value} again"
    done = _request(query, passage, Span(4, 4 + len(value), type_, 1.0, evidence))
    assert (value in done.query) is not evidence.strong
    assert done.contexts == [f"see <{type_}_1> and <{type_}_1> again"]  # in its own text the value repeats


def test_weak_evidence_repeats_letter_by_letter_only():
    done = _request("x", "Respirators and respirators", Span(0, 11, "PERSON", 0.6, Evidence.MODEL))
    assert done.contexts == ["<PERSON_1> and respirators"]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("what will happen", "what will happen"),
        ("Will it arrive", "Will it arrive"),
        ("when is Will back", "when is <PERSON_1> back"),
        ("WILL YOU HELP", "WILL YOU HELP"),
    ],
)
def test_a_name_that_is_an_everyday_word_spreads_only_where_it_stands_as_a_name(query, shown):
    assert _request(query, "my name is Will", Span(11, 15, "PERSON", 0.9, Evidence.ANNOUNCED)).query == shown


def test_the_question_of_the_public_health_workspace_keeps_its_words():
    passage = "Respirators\nNIOSH-approved Respirators. Respirators, Gloves and Biosafety Cabinets " * 4
    for ner in ("off", "auto"):
        done = build_scrubber(Scrub(ner=ner)).request("What respirators are NIOSH-approved?", None, [passage])
        assert done.query == "What respirators are NIOSH-approved?"


def test_a_finding_keeps_the_strongest_evidence_of_what_it_swallows():
    weak, strong = Span(0, 20, "PERSON", 0.6, Evidence.MODEL), Span(3, 12, "PERSON", 0.9, Evidence.ANNOUNCED)
    (kept,) = resolve([weak, strong], "x" * 30)
    assert (kept.start, kept.end, kept.evidence) == (0, 20, Evidence.ANNOUNCED)
    (kept,) = resolve([weak, Span(3, 12, "URL")], "y" * 30)[:1]
    assert kept.evidence is Evidence.MODEL


def _altered(scrubber, texts):
    """Texts with a finding other than a URL, an e-mail or a number that is truly one."""
    return [
        [text[s.start : s.end] for s in done.spans if s.type not in ("URL", "EMAIL_ADDRESS", "PHONE_NUMBER")]
        for text, done in zip(texts, scrubber.texts(texts), strict=True)
    ]


# Read by hand: people, or post boxes, that truly stand in these passages.
TRULY = (
    "Clara Tran Conly Robert Angela Nick Coatsworth Vincent Dan Tehan Natalie Peter Geoff Janet PO Doherty"
).split()


def test_a_public_health_corpus_is_altered_in_one_passage_of_a_thousand_at_most(shared, scrubber):
    path = shared / "data" / "retrieval_feedbackqa" / "corpus.jsonl"
    texts = [json.loads(line)["text"] for line in path.read_bytes().split(b"\n") if line.strip()]
    found = [words for words in _altered(scrubber, texts) if words]
    wrong = [words for words in found if not any(name in " ".join(words) for name in TRULY)]
    assert len(texts) == 1182
    assert len(wrong) / len(texts) <= 0.001
    assert len(found) <= 14


def test_the_most_frequent_words_are_told_as_hashes_and_lengths_by_kind(tmp_path):
    ws = Workspace.open(tmp_path, parse_settings(""))
    made = build_scrubber(Scrub(ner="off"))
    texts = ["please tell Emily"] * 3 + ["my name is Borgildha Quux", "mail ana@example.com"]
    seen = Counter(
        word for text, done in zip(texts, made.texts(texts), strict=True) for word in words_of(text, done.spans)
    )
    rows = most_frequent(seen, ws.keyed)
    assert [(r["evidence"], r["type"], r["times"], r["length"], r["strong"]) for r in rows] == [
        ("shape", "EMAIL_ADDRESS", 1, 15, True),
        ("announced", "PERSON", 1, 14, True),
        ("name", "PERSON", 3, 5, False),
    ]
    told = json.dumps(summed([rows, rows]))
    assert not any(word in told.lower() for word in ("emily", "borgildha", "ana@"))
    assert summed([rows, rows])[2] == {**rows[2], "times": 6, "days": 2}
    assert len(most_frequent(Counter({("name", "PERSON", str(i)): 1 for i in range(99)}), ws.keyed)) == 20


def test_explain_shows_the_words_on_stderr_alone_and_the_rows_stay(capfd, monkeypatch, tmp_path):
    import contextlib
    import io

    from ragbench_dagster.cli import main

    rows = b'{"text": "please tell Emily"}\n{"text": "please tell Emily"}\n'
    shown = {}
    for options in ([], ["--explain"], ["--explain", "--workspace", str(tmp_path)]):
        (tmp_path / "ragbench.yaml").write_text("", encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows)))
        monkeypatch.setattr(sys, "argv", ["ragbench", "stage", "scrub", *options])
        with contextlib.suppress(SystemExit):
            main()
        shown[len(options)] = capfd.readouterr()
    assert shown[0].out == shown[1].out == shown[3].out
    assert "emily" not in shown[0].err.lower()
    assert "emily" in shown[1].err.lower()
    assert shown[1].err.split("\n")[1].split()[:4] == ["name", "no", "2", "PERSON"]
    keyed = Workspace.open(tmp_path).keyed("word PERSON emily")[:12]
    assert keyed in shown[3].err


def test_the_night_keeps_the_list_and_the_doctor_shows_it(workspace, capfd):
    from ragbench_dagster.commands.doctor import scrubbing
    from ragbench_dagster.traffic.ingest import sample_days, scrub_days
    from ragbench_dagster.traffic.privacy import measure_scrubbing

    rows = [
        {"timestamp": f"2026-11-20T0{i}:00:00Z", "request_id": str(i), "query": f"please tell Emily about plan {i}"}
        for i in range(6)
    ]
    ws = workspace({"2026-11-20.jsonl": rows}, "scrub: {ner: 'off'}\ntraffic: {sample: {rate: 1.0}}")
    sample_days(ws, ["2026-11-20"])
    scrub_days(ws, ["2026-11-20"])
    kept = read_json(ws.traffic("2026-11-20") / "replaced.json")
    assert [(r["evidence"], r["type"], r["times"], r["length"]) for r in kept] == [("name", "PERSON", 6, 5)]
    assert measure_scrubbing(ws, "2026-11-22")["most_replaced"] == [{**kept[0], "days": 1}]
    lines = [line for _, _, line in scrubbing(ws)]
    assert lines[0] == f"replaced most by name (weak evidence): PERSON {kept[0]['word']} of 5 characters 6 times"
    assert "mily about" not in "".join(p.read_bytes().decode("latin1") for p in ws.store.rglob("*") if p.is_file())


def test_stage_scrub_counts_only_where_asked():
    seen = Counter()
    rows = [{"text": "mail ana@example.com"}]
    assert list(stage_scrub(rows, build_scrubber(Scrub(ner="off")), seen)) == list(
        stage_scrub(rows, build_scrubber(Scrub(ner="off")))
    )
    assert seen == {("shape", "EMAIL_ADDRESS", "ana@example.com"): 1}


def test_the_weak_kinds_are_those_that_rest_on_one_word_or_a_model():
    assert {e.value for e in WEAK} == {"name", "beside", "form", "model", "implied"}
    assert installed_model() is None or len(STRONG) == 4
