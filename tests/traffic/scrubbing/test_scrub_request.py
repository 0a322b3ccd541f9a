"""Placeholders: numbered within a request, shared by its texts, silent across requests."""

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Request, build_scrubber, is_question

SCRUBBER = build_scrubber(Scrub(ner="off"))


def test_two_people_stay_two_people_in_question_answer_and_contexts():
    """The field case: with one placeholder for both, an answer that swaps them looked faithful."""
    done = SCRUBBER.request(
        "my name is Ada Testwood, does Ben Sample report to me?",
        "Ada Testwood reports to Ben Sample.",
        ["Ben Sample reports to Ada Testwood."],
    )
    assert done.query == "my name is <PERSON_1>, does <PERSON_2> report to me?"
    assert done.response == "<PERSON_1> reports to <PERSON_2>."
    assert done.contexts == ["<PERSON_2> reports to <PERSON_1>."]
    assert done.question
    assert done.counts == {"PERSON": 6}


def test_a_value_of_the_question_is_removed_where_the_answer_repeats_it_in_another_form():
    done = SCRUBBER.request(
        "call me at 202-555-0143, my name is borgildha quux",
        "We will call 2025550143 and ask for BORGILDHA QUUX.",
        ["caller: borgildha  quux"],
    )
    assert done.response == "We will call <PHONE_NUMBER_1> and ask for <PERSON_1>."
    assert done.contexts == ["caller: <PERSON_1>"]


def test_the_first_name_alone_is_the_same_person():
    done = SCRUBBER.request("my name is Zuzanna Testerson, who is my agent", "Dear Zuzanna, it is Karl Probe.")
    assert done.response == "Dear <PERSON_1>, it is <PERSON_2>."


def test_history_shares_the_numbers_and_none_stays_none():
    done = SCRUBBER.request(
        "and for ana@example.com?", None, [], ["is ben@example.org a user", "what of ana@example.com"]
    )
    assert done.query == "and for <EMAIL_ADDRESS_1>?"
    assert done.history == ["is <EMAIL_ADDRESS_2> a user", "what of <EMAIL_ADDRESS_1>"]
    assert done.response is None


def test_placeholders_say_nothing_across_requests():
    one, two = SCRUBBER.requests([Request("mail ana@example.com"), Request("mail ben@example.com")])
    assert one.query == two.query == "mail <EMAIL_ADDRESS_1>"


def test_numbers_that_the_log_already_uses_are_left_to_it():
    done = SCRUBBER.request("<PERSON_1> asked <EMAIL_ADDRESS_7> about ana@example.com", "ask <PERSON>")
    assert done.query == "<PERSON_1> asked <EMAIL_ADDRESS_7> about <EMAIL_ADDRESS_8>"
    assert done.response == "ask <PERSON>"
    assert done.counts == {"EMAIL_ADDRESS": 1}


def test_what_holds_only_placeholders_and_greetings_is_no_question():
    assert not SCRUBBER.request("hello, my name is Ada Testwood").question
    assert not SCRUBBER.request("ana@example.com").question
    assert not SCRUBBER.request(" ... ").question
    assert SCRUBBER.request("ana@example.com is locked").question
    assert is_question("wie lange noch")


def test_plain_scrubs_file_names_and_categories_without_numbers():
    assert "ana@example.com" not in SCRUBBER.plain("logs/ana@example.com/2026-11-20.jsonl")
    assert SCRUBBER.plain("billing") == "billing"
    assert SCRUBBER.plain("2026-11-20.jsonl.gz") == "2026-11-20.jsonl.gz"
    assert SCRUBBER.plain("doc/setup.py") == "doc/setup.py"
