"""Which entities are looked for: the defaults, and `scrub.entities` and `scrub.countries` laid over them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Scrub

DEFAULT = (
    "PERSON", "ADDRESS", "PHONE_NUMBER", "EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "US_SSN", "US_ITIN",
    "IP_ADDRESS", "MAC_ADDRESS", "URL", "SECRET", "DATE_OF_BIRTH", "CRYPTO", "MEDICAL_LICENSE", "US_PASSPORT",
    "US_DRIVER_LICENSE", "US_BANK_NUMBER", "ACCOUNT_NUMBER", "CUSTOMER_NUMBER", "PATIENT_NUMBER", "DEVICE_ID", "VEHICLE_ID",
    "PASSPORT_NUMBER", "LICENSE_NUMBER", "NATIONAL_ID",
)  # fmt: skip
# Alone these are no personal data in a question; they come from the NER model where one is used.
OPTIONAL = ("DATE_TIME", "LOCATION", "ORGANIZATION", "NRP")
NER_LABELS = {
    "DATE_TIME": ("DATE", "TIME"), "LOCATION": ("GPE", "LOC", "FAC"), "ORGANIZATION": ("ORG",), "NRP": ("NORP",),
}  # fmt: skip
URL_OPTIONS = ("all", "identifying")


@dataclass(frozen=True)
class Chosen:
    """The entities to look for, and how narrowly URLs are taken."""

    entities: frozenset[str]
    urls: str = "all"

    def __contains__(self, entity: str) -> bool:
        return entity in self.entities


def choose(settings: Scrub, national: frozenset[str]) -> Chosen:
    """The entities of `settings`; `national` are those of the configured countries.

    Raises:
        UserError: an entity that no recogniser has, or an option that it does not know.
    """
    own = {r.entity for r in settings.recognizers}
    known = {*DEFAULT, *OPTIONAL, *national, *own}
    chosen = {*DEFAULT, *national, *own}
    urls = "all"
    asked = settings.entities
    if isinstance(asked, list):
        for entity in asked:
            _check(entity, known)
        return Chosen(frozenset(asked) | own, urls)
    if isinstance(asked, dict):
        for entity, value in asked.items():
            _check(entity, known)
            if value is True:
                chosen.add(entity)
            elif value is False:
                chosen.discard(entity)
            else:
                urls = _option(entity, value)
                chosen.add(entity)
    return Chosen(frozenset(chosen), urls)


def _check(entity: str, known: set[str]) -> None:
    if entity not in known:
        name = entity.upper()
        near = [k for k in sorted(known) if k.startswith(name + "_")] or difflib.get_close_matches(
            name, sorted(known), 1, 0.75
        )
        hint = f", did you mean {near[0]}?" if near else "; national ids need scrub.countries"
        raise UserError(f"ragbench.yaml: scrub.entities: {entity!r} is no entity{hint}")


def _option(entity: str, value: Any) -> str:
    if entity == "URL" and value in URL_OPTIONS:
        return str(value)
    allowed = ", all or identifying" if entity == "URL" else ""
    raise UserError(f"ragbench.yaml: scrub.entities.{entity}: must be true or false{allowed}")
