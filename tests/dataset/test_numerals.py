"""A number in letters is never a typing error of another number: Roman ones, words for numbers, letters that count."""

from __future__ import annotations

from itertools import combinations

import pytest

from ragbench_dagster.dataset.canonical import is_numeral, normalise, spelled_numbers
from ragbench_dagster.dataset.clusters import Form, cluster
from ragbench_dagster.dataset.typo_guards import is_one_edit, is_typo_of
from ragbench_dagster.settings import Dedupe

ROMAN = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XIX XX XXI XXII".split()
FRAMES = (
    "rules of part {}", "What is in appendix {}?", "henry {} biography", "world war {} summary", "type {} error",
    "is phase {} of the trial done", "louis {} of france", "resumen del capitulo {}", "section {}",
)  # fmt: skip
COUNTED = (
    "plan {} price", "is plan {} cheaper", "vitamin {} dose", "appendix {}", "hepatitis {} vaccine",
    "meeting of team {} today", "what is group {}", "influenza {} symptoms", "wing {} of the museum",
)  # fmt: skip


def merged(texts: list[str]) -> list[list[str]]:
    """The clusters of more than one form among distinct texts."""
    forms = sorted({normalise(text) for text in texts})
    assert len(forms) == len(set(map(str.lower, texts)))
    groups = cluster([Form(form) for form in forms], Dedupe()).members().values()
    return [[forms[i] for i in group] for group in groups if len(group) > 1]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", [str.lower, str.upper, str])
def test_roman_numbers_in_any_case_stay_apart(frame: str, case) -> None:
    assert merged([case(frame.format(number)) for number in ROMAN]) == []
    for one, other in combinations(ROMAN[:10], 2):  # each pair alone too: nothing else shows that both exist
        assert merged([case(frame.format(one)), case(frame.format(other))]) == []


@pytest.mark.parametrize("frame", COUNTED)
def test_letters_that_count_things_stay_apart_and_are_never_left_out(frame: str) -> None:
    assert merged([frame.format(letter) for letter in "abcdeikstxyz"]) == []
    for letter in "abci":
        assert merged([frame.format(letter), " ".join(frame.format("").split())]) == []


def test_a_log_full_of_part_i_does_not_take_part_ii() -> None:
    """Evidence of the neighbours mends "teh" and "ci", never a number."""
    log = [f"{ask} part i {of}" for ask in ("show", "print", "send", "read") for of in ("rules", "terms", "of the act")]
    for odd in ("ii", "iv", "v", "b"):
        assert all(odd not in text.split() for group in merged([*log, f"show part {odd} rules"]) for text in group)


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "pt", "it", "nl"])
def test_spelled_numbers_one_letter_apart_stay_apart(language: str) -> None:
    """setenta and sesenta, dixième and sixième, elf and elfde: all pairs of the list, and a frame around some."""
    words = sorted(spelled_numbers()[language])
    near = [(one, other) for one, other in combinations(words, 2) if is_one_edit(one, other)]
    assert all(not is_typo_of(one, other) and not is_typo_of(other, one) for one, other in near)
    for one, other in near[:12]:
        if normalise(one) != normalise(other):
            assert merged([f"chapter {one} of the book", f"chapter {other} of the book"]) == []


@pytest.mark.parametrize(
    "pair",
    [
        ("seventh floor plan", "seventy floor plan"), ("the sixth rule", "the sixty rule"),
        ("pay on the ninth", "pay on the tenth"), ("article sixième de la loi", "article dixième de la loi"),
        ("articulo setenta de la ley", "articulo sesenta de la ley"), ("kapitel elf lesen", "kapitel elfte lesen"),
        ("type IIa collagen", "type IIb collagen"), ("type IIIa", "type IIa"), ("Ⅳ quartal", "Ⅵ quartal"),
        ("henry V I", "henry VI"), ("part XIV", "part XVI"), ("stage iiib", "stage iib"),
    ],
)  # fmt: skip
def test_ordinals_and_subdivided_numbers_stay_apart(pair: tuple[str, str]) -> None:
    assert merged(list(pair)) == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("twnety days of leave", "twenty days of leave"),
        ("eleveen users", "eleven users"),
        ("thre cards", "three cards"),
    ],
)
def test_an_error_near_one_number_only_is_mended(wrong: str, right: str) -> None:
    assert merged([wrong, right]) == [sorted([wrong, right])]


@pytest.mark.parametrize("wrong", ["fourt", "sevent", "eigth", "sixt"])
def test_an_error_near_two_numbers_is_left_alone(wrong: str) -> None:
    numbers = [word for word in spelled_numbers()["en"] if is_one_edit(wrong, word)]
    assert len(numbers) > 1
    assert merged([f"rule {word} of the list" for word in (wrong, *numbers)]) == []


@pytest.mark.parametrize("word", ["ii", "xiv", "viiii", "iib", "mcmxc", "vierzig", "quarante", "troisieme", "due"])
def test_numerals_are_known(word: str) -> None:
    assert is_numeral(word)


@pytest.mark.parametrize("word", ["via", "vivid", "civil", "card", "in", "vixen", "ivory", "exit"])
def test_words_are_no_numerals(word: str) -> None:
    assert not is_numeral(word) or word == "via"
