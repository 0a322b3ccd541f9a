"""Presidio's recognisers for national ids and other numbers, used one by one: no engine, no model, no network.

Presidio's own engine downloads a model and its URL recogniser the list of public suffixes; neither is made
here. A match counts when its check digit holds, or a word that Presidio names for it stands near.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.traffic.scrubbing.normalise import any_of, blanked
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.spans import Span

_FOLDERS = {
    "AU": "australia", "CA": "canada", "DE": "germany", "ES": "spain", "FI": "finland", "GB": "uk", "IN": "india", "IT": "italy",
    "KR": "korea", "NG": "nigeria", "PH": "philippines", "PL": "poland", "SE": "sweden", "SG": "singapore", "TH": "thai",
    "TR": "turkey", "US": "us", "ZA": "south_africa",
}  # fmt: skip
# Looked for without a country being named. US social security numbers and ITINs have their own recogniser.
_ALWAYS = (
    "CryptoRecognizer",
    "MedicalLicenseRecognizer",
    "UsPassportRecognizer",
    "UsLicenseRecognizer",
    "UsBankRecognizer",
)
_OWN = {"US_SSN", "US_ITIN", "PHONE_NUMBER"}  # found by our own recognisers
_NEAR = 60  # characters before or after in which a context word counts
# Presidio's own words for these ("check", "save") stand in every second question.
_CONTEXT = {
    "US_BANK_NUMBER": re.compile(
        r"\b(?:bank|checking|savings?|account|acct)\s?(?:account\s?)?(?:number|num|no|nr|#)", re.IGNORECASE
    )
}
_DIGIT = re.compile(r"[0-9]")
_PIECE, _OVERLAP = 1_000, 100  # characters
_SURE = 0.6  # a pattern of this score needs no word and no check digit


def folder_of(country: str) -> str:
    """Presidio's folder of an ISO country code; empty where `stdnum_ids` alone knows the country.

    Raises:
        UserError: no recognisers for this country; the line lists those there are.
    """
    code = {"UK": "GB"}.get(country.upper(), country.upper())
    if code not in _FOLDERS and code in countries():
        return ""
    if code not in _FOLDERS:
        raise UserError(
            f"ragbench.yaml: scrub.countries: no national ids are known for {country!r}; known: {', '.join(sorted(_FOLDERS.keys() | countries()))}"
        )
    return _FOLDERS[code]


@lru_cache(maxsize=32)
def entities_of(countries: tuple[str, ...]) -> frozenset[str]:
    """The entity types of the national ids of `countries`."""
    return frozenset(entity for r in _of_countries(countries) for entity in r.supported_entities if entity not in _OWN)


def types(countries: tuple[str, ...]) -> frozenset[str]:
    """The entity types that `national_ids` finds: those of `countries`, and those that are looked for without one."""
    return entities_of(countries) | {
        "CRYPTO", "MEDICAL_LICENSE", "US_PASSPORT", "US_DRIVER_LICENSE", "US_BANK_NUMBER",
    }  # fmt: skip


def _of_countries(countries: tuple[str, ...]) -> list[Any]:
    made: dict[str, Any] = {}
    for country in countries:
        if not folder_of(country):
            continue
        base = f"presidio_analyzer.predefined_recognizers.country_specific.{folder_of(country)}"
        for module in pkgutil.iter_modules(importlib.import_module(base).__path__):
            loaded = importlib.import_module(f"{base}.{module.name}")
            for name, kind in vars(loaded).items():
                local = isinstance(kind, type) and kind.__module__ == loaded.__name__ and name.endswith("Recognizer")
                if local and not {"Phone", "Base"} & set(_parts(name)):
                    made[name] = kind()
    return [made[name] for name in sorted(made)]


def _parts(name: str) -> list[str]:
    return re.findall(r"[A-Z][a-z]+", name)


@lru_cache(maxsize=32)
def recognizers(countries: tuple[str, ...]) -> tuple[tuple[Any, re.Pattern[str] | None, tuple[str, ...]], ...]:
    """Presidio recognisers, their context words as one pattern, and words of which every match of it holds one."""
    from presidio_analyzer import predefined_recognizers as presidio

    made = {type(r).__name__: r for r in (*(getattr(presidio, name)() for name in _ALWAYS), *_of_countries(countries))}
    return tuple((made[name], *_context(made[name])) for name in sorted(made))


def _context(recognizer: Any) -> tuple[re.Pattern[str] | None, tuple[str, ...]]:
    for entity in recognizer.supported_entities:
        if entity in _CONTEXT:
            return _CONTEXT[entity], ("",)
    words = sorted({w.lower() for w in recognizer.context or () if len(w) > 1}, key=lambda w: (-len(w), w))
    if not words:
        return None, ()
    return re.compile(any_of(words), re.IGNORECASE), tuple(Facts(word).folded for word in words)


def national_ids(facts: Facts, countries: tuple[str, ...], wanted: frozenset[str]) -> Iterator[Span]:
    """Numbers that Presidio's recognisers know, where the check digit or a word beside them speaks for it."""
    text = facts.text
    chosen = []
    for recognizer, context, words in recognizers(countries):
        entities = [e for e in recognizer.supported_entities if e in wanted and e not in _OWN]
        worded = (
            not facts.skip or not _needs_word(recognizer) or (context and facts.holds(words) and context.search(text))
        )
        if entities and worded:
            chosen.append((recognizer, context, entities))
    for offset, piece in _pieces(text) if chosen else ():
        for recognizer, context, entities in chosen:
            for result in recognizer.analyze(piece, entities) or ():
                start, end = offset + result.start, offset + result.end
                near = context is not None and context.search(text[max(0, start - _NEAR) : end + _NEAR])
                if result.score >= 1.0 or near or result.score >= _SURE:
                    yield Span(start, end, result.entity_type, 0.8)


@lru_cache(maxsize=256)
def _needs_word(recognizer: Any) -> bool:
    """It has no check digit and no sure pattern: without one of its words in the text nothing can count."""
    from presidio_analyzer import PatternRecognizer

    if not isinstance(recognizer, PatternRecognizer):
        return False
    plain = type(recognizer).validate_result is PatternRecognizer.validate_result
    patterns: list[Any] = recognizer.__dict__["patterns"]
    return plain and all(pattern.score < _SURE for pattern in patterns)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """`text` in overlapping pieces with digits in them: Presidio's patterns were not made for long texts."""
    for offset in range(0, max(1, len(text) - _OVERLAP), _PIECE - _OVERLAP):
        piece = text[offset : offset + _PIECE]
        if _DIGIT.search(piece):
            yield offset, blanked(piece)  # Presidio's edges are `\b`, which sees none beside an ideograph


def might_national(facts: Facts) -> bool:
    """Every pattern that is used needs a digit."""
    return facts.digit


# National ids by their check digits alone, for the countries of `scrub.countries`: what `python-stdnum` knows.
#
# Presidio knows 18 countries (`national`); this table adds the numbers that belong to a person in the others and
# those of the 18 that Presidio lacks. Numbers of firms (VAT and registry numbers) are left out on purpose.

PERSONAL: dict[str, tuple[str, ...]] = {
    "AL": ("nipt",), "AR": ("dni", "cuit"), "AT": ("vnr",), "AU": ("tfn",), "AZ": ("voen",), "BE": ("nn", "bis"), "BG": ("egn", "pnf"), "BR": ("cpf",),
    "CA": ("sin", "bc_phn"), "CH": ("ssn",), "CL": ("rut",), "CN": ("ric",), "CO": ("nit",), "CR": ("cpf", "cr"), "CU": ("ni",), "CZ": ("rc",),
    "DE": ("idnr",), "DK": ("cpr",), "DO": ("cedula",), "EC": ("ci",), "EE": ("ik",), "EG": ("tn",), "ES": ("dni", "nie"), "FI": ("hetu",),
    "FR": ("nir",), "GB": ("nhs", "utr"), "GR": ("amka",), "GT": ("nit",), "HR": ("oib",), "ID": ("nik",), "IE": ("pps",), "IL": ("idnr",),
    "IN": ("aadhaar", "pan", "epic"), "IS": ("kennitala",), "IT": ("codicefiscale",), "KR": ("rrn",), "LT": ("asmens",), "LV": ("pvn",), "MD": ("idno",),
    "ME": ("pib",), "MK": ("edb",), "MU": ("nid",), "MX": ("curp",), "MY": ("nric",), "NL": ("bsn",), "NO": ("fodselsnummer",), "NZ": ("ird",),
    "PE": ("cui",), "PK": ("cnic",), "PL": ("pesel",), "PT": ("cc", "nif"), "PY": ("ruc",), "RO": ("cnp",), "RS": ("pib",), "SE": ("personnummer",),
    "SI": ("emso",), "SK": ("rc",), "SM": ("coe",), "SV": ("nit",), "TH": ("pin",), "TR": ("tckimlik",), "TW": ("ubn",), "UA": ("rntrc",), "US": ("ssn",),
    "UY": ("rut",), "VE": ("rif",), "VN": ("mst",), "ZA": ("idnr",),
}  # fmt: skip
_FIRMS = {"AL", "AZ", "GT", "MD", "ME", "MK", "PY", "RS", "SM", "SV", "TW", "UY", "VE", "VN", "LV"}
_STDNUM_OWN = {"US_SSN"}  # found by `finance`
_CANDIDATE = re.compile(
    r"(?<![A-Za-z0-9.,/-])(?:[A-Za-z]{1,6})?\d[0-9A-Za-z+]*(?:[ ./-][0-9A-Za-z]*\d[0-9A-Za-z]*){0,7}(?![A-Za-z0-9]|[.,]\d)"
)
_FEWEST = 6  # digits


def countries() -> frozenset[str]:
    """ISO codes of the countries whose personal numbers are known here."""
    return frozenset(PERSONAL) - _FIRMS


@lru_cache(maxsize=64)
def _modules(country: str) -> tuple[tuple[str, Any], ...]:
    """(entity, module of python-stdnum) of a country; none for one that is not known."""
    folder = {"IN": "in_", "IS": "is_", "DO": "do"}.get(country, country.lower())
    names = PERSONAL[country] if country in countries() else ()
    return tuple((f"{country}_{name.upper()}", import_module(f"stdnum.{folder}.{name}")) for name in names)


@lru_cache(maxsize=64)
def stdnum_entities(chosen: tuple[str, ...]) -> frozenset[str]:
    """The entity types of `chosen` countries."""
    return frozenset(entity for country in chosen for entity, _ in _modules(_iso(country))) - _STDNUM_OWN


def _iso(country: str) -> str:
    return {"UK": "GB"}.get(country.upper(), country.upper())


def checked_ids(facts: Facts, chosen: tuple[str, ...]) -> Iterator[Span]:
    """Numbers whose check digit holds in one of the `chosen` countries."""
    modules = [pair for country in chosen for pair in _modules(_iso(country)) if pair[0] not in _STDNUM_OWN]
    for match in _CANDIDATE.finditer(facts.text) if modules else ():
        value = match[0]
        if sum(ch.isdigit() for ch in value) < _FEWEST:
            continue
        for entity, module in modules:
            if module.is_valid(value):
                yield Span(
                    match.start(), match.end(), entity, 0.7
                )  # below Presidio's: its names of the same ids are older
                break


def might_checked(facts: Facts) -> bool:
    return facts.digits >= _FEWEST
