"""Dates of birth: a date right after words that say so. A date alone is no personal data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.prefilter import Facts, holds
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|s|zo)?|m(?:ä|ae)rz|apr(?:il)?|may|mai|mayo|june?|juni|juin|juli?|july"
    r"|juillet|aug(?:ust)?|août|sept?(?:ember|embre)?|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?|de[cz](?:ember)?|décembre|enero"
    r"|febrero|abril|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\.?"
)
DATE = (
    r"(?:\d{1,2}\s?[./-]\s?\d{1,2}\s?[./-]\s?(?:\d{4}|\d{2})|\d{4}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{1,2}|\d{8}"
    rf"|(?:the\s)?\d{{1,2}}(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?{_MONTH},?\s(?:de\s)?\d{{4}}"
    rf"|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}|\d{{1,2}}-{_MONTH}-\d{{2,4}}"
    r"|\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日|\d{4}\s?년\s?\d{1,2}\s?월\s?\d{1,2}\s?일)"
)
_BIRTH = re.compile(
    r"(?:\bdate of birth|\bbirth ?date|\bbirthday|\bd\.?o\.?b\b\.?|\bborn(?: on| in)?|\bgeboren(?: am)?|\bgeburtsdatum"
    r"|\bn[ée]+(?:e|\(e\))? le|\bdate de naissance|\bfecha de nacimiento|\bnacid[oa] el|\bdata di nascita|\bnat[oa] il"
    r"|\bdata de nascimento|\bgeboortedatum|生年月日|出生日期|出生于|出生年月日|生日|생년월일|생일|วันเกิด|дат[аы] рождения|родил(?:ся|ась)"
    r"|дата народження|ημερομηνία γέννησης|तारीख|जन्मतिथि|जन्म तिथि|تاريخ الميلاد|תאריך לידה|ngày sinh|doğum tarihi|data urodzenia"
    r"|datum narození|födelsedatum|fødselsdato|syntymäaika)"
    r"[\s:=.,?!()是为為は은는이가-]{0,6}(?:(?:is|was|as|it'?s|on|my|his|her|ist|est|es)[\s:.]{1,3}){0,3}"
    rf"(?P<d>{DATE})(?!\d)",
    re.IGNORECASE,
)
_WORDS = (
    "birth",
    "dob",
    "d.o",
    "do.b",
    "born",
    "gebor",
    "geburt",
    "naiss",
    "nacim",
    "nacid",
    "nascit",
    "nascim",
    " le ",
    "nat",
    "geboorte",
    *"生 생 วันเกิด рожд родил народж γέννησ तारीख जन्म ميلاد לידה sinh doğum urodz naroz födelse fødsel syntym".split(),
)


def births(facts: Facts) -> Iterator[Span]:
    """Dates that are said to be someone's date of birth."""
    text = facts.text
    stretches = facts.around_numbers(100, 60, 3) if facts.skip else [(0, len(text))]
    for match in (m for begin, end in stretches for m in _BIRTH.finditer(text, begin, end)):
        yield Span(match.start("d"), match.end("d"), "DATE_OF_BIRTH", evidence=Evidence.ANNOUNCED)


_FOLDED = tuple(word.casefold() for word in _WORDS)


def might_birth(facts: Facts) -> bool:
    return facts.digits >= 3 and holds(facts.folded, _FOLDED)
