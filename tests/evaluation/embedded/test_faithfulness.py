"""The embedded faithfulness metric: what it must see, and what it must not call a contradiction."""

import pytest

from ragbench_dagster.evaluation.embedded import build
from ragbench_dagster.records import Item, Verdict

JUDGE = build("faithfulness")


def judge(answer: str, *contexts: str, query: str = "a question") -> Verdict:
    return JUDGE.grade_sync(Item("e", query, answer, contexts))


@pytest.mark.parametrize(
    ("answer", "context", "reason"),
    [
        ("Refunds are given within 14 days.", "Refunds are given within 30 days of purchase.", "a number"),
        ("A workspace can hold 250 keys.", "A workspace can hold up to 25 active keys.", "a number"),
        ("Extraction takes 4 minutes a page.", "Extraction takes about 4 seconds a page.", "something else"),
        ("Delivery is tried 36 times over 12 hours.", "Delivery is tried 12 times over 36 hours.", "something else"),
        ("Nest costs $29 a month.", "Nest costs €29 a month with 2,000 credits.", "another currency"),
        ("Nest allows 50 requests.", "Hatch allows 2 requests, Nest 10 and Flock 50.", "another name"),
        ("You cannot delete a page.", "You can delete a page in the settings.", "a negation"),
        ("A published version can be edited.", "A published version cannot be edited: save a new one.", "a negation"),
        ("PayPal is accepted on Nest.", "PayPal and cheques are not accepted.", "a negation"),
        ("The API works without a key.", "The API works with a key.", "a negation"),
        ("Logging is disabled by default.", "Logging is enabled by default.", "the opposite"),
        ("The resolution is above 150 dpi.", "unreadable: the resolution is below 150 dpi.", "the opposite"),
        ("The default is Harriet.", "Marlow is the default. Set Harriet instead of Marlow.", "another name"),
        ("Acme acquired Beta in 2019.", "In 2019 Beta acquired Acme.", "the other way round"),
        ("<PERSON_1> reports to <PERSON_2>.", "<PERSON_2> reports to <PERSON_1>.", "the other way round"),
        ("<PERSON_1> manages <PERSON_2>.", "<PERSON_1> is managed by <PERSON_2>.", "the other way round"),
        ("The moon is made of green cheese.", "Invoices are sent every month.", "of its words"),
    ],
)
def test_what_contradicts_the_contexts_fails_and_is_said(answer: str, context: str, reason: str) -> None:
    verdict = judge(answer, context)
    assert verdict.status == "scored"
    assert verdict.passing is False
    assert reason in verdict.feedback
    faithful = judge(context, context)
    assert faithful.passing is True
    assert (faithful.score or 0) > (verdict.score or 0)


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("You have 2 days.", "You have 48 hours."),
        ("It costs 1000 credits.", "It costs 1,000 credits."),
        ("There are seven roles.", "There are 7 roles."),
        ("There are twenty five keys.", "There are 25 keys."),
        ("Encrypted images are not scanned.", "Encrypted images aren't scanned by the advisor."),
        ("No, encrypted images aren't scanned.", "Encrypted images aren't scanned."),
        ("<PERSON_2> is managed by <PERSON_1>.", "<PERSON_1> manages <PERSON_2>."),
        ("Ada and Ben maintain the index.", "Ben and Ada maintain the index."),
        ("1. Open the settings. 2. Press Rotate.", "Open the settings and press Rotate."),
        ("Open the settings and press Rotate.", "Press Rotate. You will find it when you open the settings."),
        ("Es geht ohne Schlüssel.", "Es geht auch ohne Schlüssel."),
        ("退款可以在30天内申请", "退款可以在30天内申请。请联系客服。"),
        ("Not only admins can invite people.", "Admins and owners can invite people."),
    ],
)
def test_another_wording_of_the_same_passes(answer: str, context: str) -> None:
    verdict = judge(answer, context)
    assert verdict.passing is True, verdict.feedback


def test_the_score_is_continuous_and_falls_with_every_added_claim() -> None:
    context = "The old secret keeps working for 72 hours after you press Rotate."
    scores = [
        judge(answer, context).score or 0
        for answer in (
            context,
            context + " Wombats dig long burrows.",
            context + " Wombats dig long burrows. Penguins swim under thick ice.",
            "Wombats dig long burrows. Penguins swim under thick ice.",
        )
    ]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 4
    assert judge(context + " Wombats dig long burrows.", context).passing is False


def test_a_number_of_the_question_may_be_repeated() -> None:
    answer, context = "Error 429 means too many requests.", "An error means too many requests."
    assert judge(answer, context, query="what is error 429?").passing is True
    assert judge(answer, context, query="what is error 500?").passing is False


def test_no_contexts_is_not_applicable() -> None:
    for contexts in ((), ("",), ("  \n",)):
        verdict = judge("An answer.", *contexts)
        assert (verdict.status, verdict.score, verdict.passing) == ("not_applicable", None, None)
    assert judge("", "a context").status == "not_applicable"


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I’m sorry, but I do not have any information about that.",
        "The documents do not mention this. Please contact support.",
        "There is no information about this in the provided context.",
    ],
)
def test_a_refusal_passes_beside_contexts_that_are_silent_and_fails_beside_those_that_answer(answer: str) -> None:
    query = "how long does the old secret keep working?"
    silent = judge(answer, "Invoices are sent every month.", query=query)
    speaking = judge(answer, "The old secret keeps working for 72 hours.", query=query)
    assert (silent.score, silent.passing) == (0.5, True)
    assert (speaking.score, speaking.passing) == (0.5, False)
    assert "does not know" in silent.feedback


def test_an_answer_that_goes_on_after_a_reservation_is_judged_by_what_it_claims() -> None:
    context = "Secrets keep working for 72 hours."
    assert judge("I'm not sure, but secrets keep working for 72 hours.", context).passing is True
    assert judge("I'm not sure, but secrets keep working for 99 hours.", context).passing is False
