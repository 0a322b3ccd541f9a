"""Which forms become one question: typing errors do, other words, numbers, negations and labels do not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.dataset.clusters import Form, cluster, is_question
from ragbench_dagster.dataset.dedupe import stage_dedupe
from ragbench_dagster.settings import Dedupe

ON = Dedupe()
CASES = ("dedupe-polarity-and-order", "dedupe-unicode-forms")


def together(one: str, other: str, *more: str, dedupe: Dedupe = ON) -> bool:
    rows = [{"id": i, "query": text} for i, text in enumerate((one, other, *more))]
    found = [row["cluster"] for row in stage_dedupe(rows, dedupe)]
    return found[0] == found[1]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("how do i rotate the signing secret", "how do i rotat the signing secret"),  # a letter lost
        ("how do i change my password", "how do i change my passwoord"),  # doubled
        ("how do i change my password", "how do i change my passqord"),  # another one
        ("how do i change my password", "how do i chnage my password"),  # two swapped
        ("how do i change my password", "how do i change mypassword"),  # the space lost
        ("how do i change my password", "how do i chang emy password"),  # the space moved
        ("how do i change my password", "how do i change mykpassword"),  # another letter for the space
        ("can i get covid19 twice", "can i get covid-19 twice"),
        ("hi, how do i change my password", "hii, how do i chnage my password"),
        ("kubernetes quota of the cluster", "kubernets quota of the cluster"),  # a name no list knows
    ],
)
def test_a_typing_error_joins_its_question(right: str, wrong: str) -> None:
    assert together(right, wrong)
    assert not together(right, wrong, dedupe=Dedupe(one_edit=False)) or right.replace("-", "") == wrong


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tax rate of 2023", "tax rate of 2024"),
        ("is port 8443 open", "is port 8444 open"),
        ("can i open 1 1 accounts", "can i open 11 accounts"),
        ("i can see the invoice", "i cant see the invoice"),
        ("is it now possible", "is it not possible"),
        ("i can see it", "i cann see it, can't i"),
        ("do you ship to iran", "do you ship to iraq"),
        ("convert usd to gold", "convert aud to gold"),
        ("tax in il today", "tax in in today"),
        ("open a csv file", "open a tsv file"),
        ("i lost my card", "i lost my car"),
        ("is plan a cheaper", "is plan b cheaper"),
        ("how much ram has it", "how much rom has it"),
        ("vitamin k dose", "vitamin a dose"),
        ("is xero supported", "is xeno supported"),  # two short unknown names
        ("konto sperren", "konto sperret"),  # a language nobody told us
        ("wie kann ich das konto der mutter sperren", "wie kann ich das konto der butter sperren"),
        ("\u5982\u4f55\u5f00\u542f\u901a\u77e5", "\u5982\u4f55\u5173\u542f\u901a\u77e5"),  # one sign of Chinese
        ("is c++ fast", "is c# fast"),
    ],
)
def test_another_word_number_or_negation_stays_apart(one: str, other: str) -> None:
    assert not together(one, other)


def test_a_misspelling_near_two_words_never_joins_them() -> None:
    """ "carx" is one edit from card and from cars: it may go to one, and the two stay two."""
    rows = [{"id": i, "query": f"where is my {word}"} for i, word in enumerate(("card", "cars", "carx"))]
    found = [row["cluster"] for row in stage_dedupe(rows, ON)]
    assert found[0] != found[1]


def test_a_name_that_is_asked_for_again_and_again_is_no_error() -> None:
    """One "vigma" beside many "sigma" may be an error; three of them are not."""
    once = ["how do i use sigma"] * 5 + ["how do i use vigma"]
    assert together(once[0], once[-1], *once)
    assert not together(once[0], once[-1], *once, *once[-1:] * 2)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("c\u00f3mo puedo cambiar mi contrase\u00f1a", "c\u00f3mo puedo cambair mi contrase\u00f1a"),
        ("wie kann ich mein passwort \u00e4ndern", "wie kann ich mein paswort \u00e4ndern"),
    ],
)
def test_errors_in_other_languages_are_mended_by_their_own_dictionary(right: str, wrong: str) -> None:
    assert together(right, wrong)
    assert together(wrong, right)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("wie kann ich die seite \u00e4ndern", "wie kann ich die saite \u00e4ndern"),
        ("d\u00f3nde est\u00e1 el perro de la casa", "d\u00f3nde est\u00e1 el pero de la casa"),
        ("comment puis je changer le poisson", "comment puis je changer le poison"),
        ("jak zmienic haslo do konta", "jak zmienic haslo do konto"),
    ],
)
def test_words_of_other_languages_stay_apart(one: str, other: str) -> None:
    assert not together(one, other)


def test_a_frequent_unknown_word_is_a_word_of_this_log() -> None:
    """Two product names one letter apart that both stand in many questions are two names."""
    asks = ("install", "update", "remove", "price of", "license for", "logs of")
    rows = [{"id": (ask, name), "query": f"{ask} {name}"} for ask in asks for name in ("zentrix", "zentrex")]
    rows = [row for row in rows if row["id"] not in {("update", "zentrex"), ("logs of", "zentrix")}]
    rows += [
        {"id": (w, n), "query": f"{w} {n}"} for n in ("zentrix", "zentrex") for w in (f"{n} a", f"{n} b", f"{n} c")
    ]
    found = {row["id"]: row["cluster"] for row in stage_dedupe(rows, ON)}
    assert found["install", "zentrix"] != found["install", "zentrex"]


def test_a_word_of_grammar_takes_a_known_word_only_on_evidence() -> None:
    """ "he card" is "the card" where the log shows "the" between these neighbours many times; else nobody knows."""
    verbs = (
        "block",
        "order",
        "lose",
        "cancel",
        "freeze",
        "replace",
        "activate",
        "return",
        "find",
        "report",
        "pay",
        "use",
    )
    log = [f"how do i {verb} the card today" for verb in verbs]
    assert together("please send the card today", "please send tho card today", *log)
    assert not together("please send the card today", "please send ms card today", *log)
    assert not together("show my card", "show mg card")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("semantic", [False, True])
def test_field_cases(shared: Path, case: str, semantic: bool) -> None:
    if semantic:
        pytest.importorskip("onnxruntime", reason="needs the semantic extra")
    folder = shared / "cases" / "cases" / case
    rows = [json.loads(line) for line in (folder / "in.jsonl").read_bytes().split(b"\n") if line.strip()]
    want = json.loads((folder / "expect.json").read_text(encoding="utf-8"))
    found = {row["id"]: row["cluster"] for row in stage_dedupe(rows, Dedupe(semantic=semantic))}
    assert [group for group in want["same"] if len({found[i] for i in group}) > 1] == []
    assert [pair for pair in want["apart"] if found[pair[0]] == found[pair[1]]] == []


def test_labels_part_what_would_merge() -> None:
    """The same form with two labels is two clusters; a row without a label goes to the only one there is."""
    rows = [
        {"id": 1, "query": "who is <PERSON> in billing", "expected_doc_ids": ["n1"]},
        {"id": 2, "query": "Who is <PERSON> in billing?", "expected_doc_ids": ["n2"]},
        {"id": 3, "query": "how do i pay", "expected_doc_ids": ["n3"]},
        {"id": 4, "query": "How do I pay?"},
    ]
    found = {row["id"]: row["cluster"] for row in stage_dedupe(rows, ON)}
    assert found[1] != found[2]
    assert found[3] == found[4]
    forms = [Form("how do i change my password", 9, (), "a"), Form("how do i change my pasword", 1, (), "b")]
    clusters = cluster(forms, ON)
    assert clusters.root == [0, 1]
    assert clusters.kept_apart == [(0, 1)]


def test_one_row_of_a_cluster_is_canonical_and_rows_keep_their_order_and_keys() -> None:
    rows = [
        {"id": "a", "query": "how do i chnage it", "note": 1},
        {"id": "b", "query": "How do I change it?", "note": 2},
        {"id": "c", "query": "how do I change it", "note": 3},
        {"id": "d", "query": "how do I change it", "note": 4},
        {"id": "e", "query": "something else"},
    ]
    done = list(stage_dedupe(rows, ON))
    assert [row["id"] for row in done] == ["a", "b", "c", "d", "e"]
    assert [row["id"] for row in done if row["canonical"]] == ["c", "e"]  # the spelling seen most, its first row
    assert done[0]["note"] == 1
    assert "cluster" not in rows[0]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("who is <person>", False),
        ("<person> <person>", False),
        ("who is <person> in billing", True),
        ("who is it", True),
    ],
)
def test_a_placeholder_alone_makes_no_question(form: str, expected: bool) -> None:
    assert is_question(form) is expected


def test_rows_without_a_question_say_so() -> None:
    done = list(stage_dedupe([{"id": 1, "query": "who is <PERSON>"}, {"id": 2, "query": "who pays"}], ON))
    assert done[0]["question"] is False
    assert "question" not in done[1]


WORDS = st.sampled_from(
    [
        "how",
        "do",
        "i",
        "change",
        "chnage",
        "my",
        "the",
        "passwrd",
        "password",
        "card",
        "crd",
        "cart",
        "not",
        "nott",
        "5",
        "6",
        "eur",
        "usd",
        "a",
        "b",
    ]
)
FORMS = st.lists(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=25, unique=True)


@given(FORMS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_of_rows_changes_nothing(texts: list[str], rng: random.Random) -> None:
    forms = [Form(text, weight=1.0 + len(text) % 3) for text in texts]
    shuffled = list(forms)
    rng.shuffle(shuffled)

    def groups(order: list[Form]) -> set[frozenset[str]]:
        return {frozenset(order[i].form for i in members) for members in cluster(order, ON).members().values()}

    assert groups(forms) == groups(shuffled)


@given(FORMS)
@settings(max_examples=150, deadline=None)
def test_numbers_and_negations_agree_within_every_cluster(texts: list[str]) -> None:
    forms = [Form(text) for text in texts]
    for members in cluster(forms, ON).members().values():
        split = [forms[i].form.split(" ") for i in members]
        assert len({tuple(w for w in words if w.isdigit()) for words in split}) == 1
        assert len({sum(w in ("not", "nott") for w in words) for words in split}) == 1
