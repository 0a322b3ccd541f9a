"""`scrub` in ragbench.yaml: entities, countries, allow-list, own recognisers; and errors of one line."""

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Recognizer, Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber, scrubber_version
from ragbench_dagster.traffic.scrubbing.ner import installed_model

TEXT = "my name is Ada Testwood, mail ana@example.com from 203.0.113.7"


def _types(text: str, **chosen) -> list[str]:
    return [s.type for s in build_scrubber(Scrub(ner="off", **chosen)).spans(text)]


def test_a_list_names_exactly_what_is_looked_for():
    assert _types(TEXT) == ["PERSON", "EMAIL_ADDRESS", "IP_ADDRESS"]
    assert _types(TEXT, entities=["EMAIL_ADDRESS"]) == ["EMAIL_ADDRESS"]


def test_a_mapping_changes_the_defaults():
    assert _types(TEXT, entities={"IP_ADDRESS": False}) == ["PERSON", "EMAIL_ADDRESS"]


def test_dates_places_and_organisations_are_kept_unless_asked_for():
    text = "Did the office of Microsoft in Paris open on 3 May 2021?"
    assert _types(text) == []
    if installed_model() is None:
        pytest.skip("no NER model installed")
    wanted = {"LOCATION": True, "DATE_TIME": True, "ORGANIZATION": True}
    found = {s.type for s in build_scrubber(Scrub(ner="on", entities=wanted)).spans(text)}
    assert found == {"LOCATION", "DATE_TIME", "ORGANIZATION"}


@pytest.mark.parametrize(
    ("entities", "words"),
    [
        (["EMAIL"], ["EMAIL", "did you mean EMAIL_ADDRESS"]),
        ({"UK_NINO": True}, ["UK_NINO", "scrub.countries"]),
        ({"PERSON": "yes"}, ["scrub.entities.PERSON", "true or false"]),
        ({"URL": "some"}, ["scrub.entities.URL", "identifying"]),
    ],
)
def test_an_entity_that_nobody_knows_is_one_line_with_the_way_out(entities, words):
    with pytest.raises(UserError) as fault:
        build_scrubber(Scrub(ner="off", entities=entities))
    assert "\n" not in str(fault.value)
    assert all(word in str(fault.value) for word in words)


@pytest.mark.parametrize(
    ("country", "entity", "text"),
    [
        ("GB", "UK_NINO", "my national insurance number is AB123456C"),
        ("GB", "UK_NHS", "the nhs number is 401-023-2137"),
        ("es", "ES_NIF", "mi dni es 12345678Z"),
        ("IT", "IT_FISCAL_CODE", "codice fiscale RSSMRA85T10A562S"),
        ("PL", "PL_PESEL", "pesel 44051401359"),
        ("IN", "IN_PAN", "my pan is ABCPD1234F"),
        ("FI", "FI_PERSONAL_IDENTITY_CODE", "henkilötunnus 131052-308T"),
    ],
)
def test_national_ids_are_found_where_their_country_is_named(country, entity, text):
    assert entity in _types(text, countries=[country])
    assert entity not in _types(text)


def test_a_country_without_recognisers_is_an_error_that_lists_the_others():
    with pytest.raises(UserError, match=r"'XX'.*AR, AT, AU"):
        build_scrubber(Scrub(ner="off", countries=["XX"]))


def test_allowed_product_names_stay_in_any_case_but_people_beside_them_do_not():
    chosen = Scrub(ner="off", allow=["Harriet", "Ada Cloud"])
    done = build_scrubber(chosen).texts(["does Harriet know Peter Testwood", "ADA CLOUD is down", "ask HARRIET's api"])
    assert [d.text for d in done] == ["does Harriet know <PERSON_1>", "ADA CLOUD is down", "ask HARRIET's api"]


def test_the_users_own_pattern_is_an_entity_of_its_own():
    own = Recognizer(entity="CUSTOMER_ID", regex=r"\bC-\d{6}\b")
    done = build_scrubber(Scrub(ner="off", recognizers=[own])).texts(["is C-123456 or C-123457 overdue, C-12 is fine"])
    assert done[0].text == "is <CUSTOMER_ID_1> or <CUSTOMER_ID_2> overdue, C-12 is fine"


def find_quux(text: str) -> list[tuple[int, int]]:
    return [(i, i + 4) for i in range(len(text)) if text.startswith("quux", i)]


def make_function():
    return find_quux


def make_presidio():
    from presidio_analyzer import Pattern, PatternRecognizer

    return PatternRecognizer("QUUX", patterns=[Pattern("quux", r"quux", 0.9)])


@pytest.mark.parametrize("factory", ["make_function", "make_presidio"])
def test_an_own_recogniser_joins_by_import_path(factory):
    own = Recognizer(entity="QUUX", import_path=f"{__name__}:{factory}")
    assert build_scrubber(Scrub(ner="off", recognizers=[own])).texts(["what is a quux"])[0].text == "what is a <QUUX_1>"


@pytest.mark.parametrize(
    "own",
    [
        Recognizer(entity="X"),
        Recognizer(entity="X", regex="a", import_path="a:b"),
        Recognizer(entity="lower", regex="a"),
        Recognizer(entity="X", import_path="no_such_module_at_all:make"),
        Recognizer(entity="X", import_path="json:nothing"),
    ],
)
def test_a_recogniser_that_cannot_be_made_is_one_line_that_names_its_place(own):
    with pytest.raises(UserError, match=r"^ragbench.yaml: scrub.recognizers\[0\][^\n]*$"):
        build_scrubber(Scrub(ner="off", recognizers=[own]))


def test_ner_on_without_a_model_says_what_to_install(monkeypatch):
    monkeypatch.setattr("ragbench_dagster.traffic.scrubbing.ner.installed_model", lambda: None)
    with pytest.raises(UserError, match=r"ragbench-dagster\[ner\]"):
        build_scrubber(Scrub(ner="on"))
    assert build_scrubber(Scrub(ner="auto")).ner is None


def test_the_version_changes_with_what_changes_a_result_and_with_nothing_else():
    plain = scrubber_version(Scrub(ner="off"))
    assert plain == scrubber_version(Scrub(ner="off", processes=4, floor={"all": 0.9}))
    changed = [Scrub(ner="off", allow=["x"]), Scrub(ner="off", countries=["GB"]), Scrub(ner="off", entities=["URL"])]
    assert len({plain, *map(scrubber_version, changed)}) == 4
