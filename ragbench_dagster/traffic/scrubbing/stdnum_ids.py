"""National ids by their check digits alone, for the countries of `scrub.countries`: what `python-stdnum` knows.

Presidio knows 18 countries (`national`); this table adds the numbers that belong to a person in the others and
those of the 18 that Presidio lacks. Numbers of firms (VAT and registry numbers) are left out on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.spans import Span

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
_OWN = {"US_SSN"}  # found by `finance`
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
def entities_of(chosen: tuple[str, ...]) -> frozenset[str]:
    """The entity types of `chosen` countries."""
    return frozenset(entity for country in chosen for entity, _ in _modules(_iso(country))) - _OWN


def _iso(country: str) -> str:
    return {"UK": "GB"}.get(country.upper(), country.upper())


def checked_ids(facts: Facts, chosen: tuple[str, ...]) -> Iterator[Span]:
    """Numbers whose check digit holds in one of the `chosen` countries."""
    modules = [pair for country in chosen for pair in _modules(_iso(country)) if pair[0] not in _OWN]
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
