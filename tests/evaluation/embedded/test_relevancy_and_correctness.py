"""The embedded relevancy and correctness metrics."""

import pytest

from ragbench_dagster.evaluation.embedded import build
from ragbench_dagster.evaluation.embedded.scoring import split_references
from ragbench_dagster.records import Item, Verdict

RELEVANCY, CORRECTNESS = build("relevancy"), build("correctness")


def relevant(query: str, answer: str, *contexts: str) -> Verdict:
    return RELEVANCY.grade_sync(Item("e", query, answer, contexts))


def correct(answer: str, reference: str | None) -> Verdict:
    return CORRECTNESS.grade_sync(Item("e", "a question", answer, (), reference))


def test_an_answer_that_takes_up_the_question_is_relevant_and_another_is_not() -> None:
    query = "how do I cancel a seat?"
    assert relevant(query, "Seats are cancelled under Billing.").passing is True
    assert relevant(query, "Invoices are sent every month.").passing is False


def test_a_short_answer_is_relevant_through_the_sentence_it_rests_on() -> None:
    query = "how long until batch results are ready"
    context = "Batches. Results of a batch are ready within 6 hours. Seats are billed monthly."
    assert relevant(query, "Within 6 hours.", context).passing is True
    assert relevant(query, "Seats are billed monthly.", "Invoices. Seats are billed monthly.").passing is False


def test_a_typing_error_in_the_question_is_forgiven() -> None:
    assert relevant("cancle my subscrption", "You can cancel a subscription at any time.").passing is True


@pytest.mark.parametrize("answer", ["", "   ", "I don't know.", "Sorry, I cannot answer that. Please contact support."])
def test_a_refusal_or_nothing_answers_no_question(answer: str) -> None:
    verdict = relevant("how do I cancel a seat?", answer, "Seats are cancelled under Billing.")
    assert (verdict.status, verdict.score, verdict.passing) == ("scored", 0.0, False)


def test_a_question_without_a_word_is_not_applicable() -> None:
    assert relevant("???", "An answer.").status == "not_applicable"


@pytest.mark.parametrize(
    ("answer", "reference", "passing"),
    [
        ("The Redskins are based in Landover, Maryland.", "FedExField in Landover, Maryland/Landover, Maryland", True),
        ("It was John Humphrey.", "Cyrus/Cyrus the Great", False),
        ("You have 30 days.", "30 days", True),
        ("You have 14 days.", "30 days", False),
        ("Yes, you can delete a page.", "Yes", True),
        ("No, you cannot.", "Yes", False),
        ("Keys cannot be shown again.", "Keys can be shown again.", False),
        ("Ben reports to Ada.", "Ada reports to Ben.", False),
        ("I don't know.", "30 days", False),
        ("I do not know.", "There is no information about this.", True),
        ("", "30 days", False),
    ],
)
def test_correctness_passes_what_says_the_reference(answer: str, reference: str, passing: bool) -> None:
    verdict = correct(answer, reference)
    assert verdict.status == "scored"
    assert verdict.passing is passing, verdict.feedback
    assert 1.0 <= (verdict.score or 0) <= 5.0
    assert ((verdict.score or 0) >= 4.0) is passing


def test_no_reference_is_not_applicable() -> None:
    for reference in (None, "", " / "):
        assert correct("An answer.", reference).status == "not_applicable"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("14 December 1972 UTC/December 1972", ["14 December 1972 UTC", "December 1972"]),
        ("a / b/c", ["a", "b", "c"]),
        ("1/2", ["1/2"]),
        ("on 03/04/2026", ["on 03/04/2026"]),
        ("see https://example.com/a", ["see https://example.com/a"]),
        ("GET /v1/documents", ["GET /v1/documents"]),
        ("owners and/or admins", ["owners and/or admins"]),
        ("30 days/a month", ["30 days", "a month"]),
        ("", []),
    ],
)
def test_references_are_cut_at_slashes_that_separate(text: str, parts: list[str]) -> None:
    assert split_references(text) == parts
