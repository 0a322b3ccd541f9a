"""The recognisers, one line each, and which of their entities are looked for by `scrub.entities` and `scrub.countries`.

A new recogniser is a file of `recognisers/` with two functions, `might` and `find`, and one line of `RECOGNISERS`. The
user's own (`scrub.recognizers`) belong to `recognisers/custom.py`, what a model finds to `ner`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.recognisers import (
    addresses,
    births,
    finance,
    home_folders,
    keyed_values,
    labelled_numbers,
    national,
    network,
    phones,
    secrets,
)
from ragbench_dagster.traffic.scrubbing.recognisers.names import announced, name_scripts, single
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import lexicon
from ragbench_dagster.traffic.scrubbing.spans import Span

# Alone these are no personal data in a question; they come from the NER model where one is used.
OPTIONAL = ("DATE_TIME", "LOCATION", "ORGANIZATION", "NRP")
NER_LABELS = {
    "DATE_TIME": ("DATE", "TIME"), "LOCATION": ("GPE", "LOC", "FAC"), "ORGANIZATION": ("ORG",), "NRP": ("NORP",),
}  # fmt: skip
URL_OPTIONS = ("all", "identifying")


@dataclass(frozen=True)
class Chosen:
    """The entities to look for, how narrowly URLs are taken, and the countries whose ids are looked for."""

    entities: frozenset[str]
    urls: str = "all"
    countries: tuple[str, ...] = ()

    def __contains__(self, entity: str) -> bool:
        return entity in self.entities


def _nothing(chosen: Chosen) -> Mapping[str, Any]:
    del chosen
    return {}


def _words(chosen: Chosen) -> Mapping[str, Any]:
    del chosen
    return {"lex": lexicon()}


def _narrow(chosen: Chosen) -> Mapping[str, Any]:
    return {"only_identifying": chosen.urls == "identifying"}


def _undisguised(chosen: Chosen) -> Mapping[str, Any]:
    return {"finders": (network.emails, partial(network.urls, **_narrow(chosen)), network.addresses)}


@dataclass(frozen=True)
class Recogniser:
    """One kind of personal data, and how it is found.

    Args:
        types: the entities of its spans; of national ids, those of the countries.
        might: whether `find` can find anything; true for every text in which it does.
        find: the spans in a text.
        given: further arguments of `find`.
    """

    types: tuple[str, ...] | Callable[[tuple[str, ...]], frozenset[str]]
    might: Callable[[Facts], bool]
    find: Callable[..., Iterable[Span]]
    given: Callable[[Chosen], Mapping[str, Any]] = _nothing

    def entities(self, countries: tuple[str, ...]) -> frozenset[str]:
        """The entities that it finds where `countries` are configured."""
        return self.types(countries) if callable(self.types) else frozenset(self.types)

    def finder(self, chosen: Chosen) -> Callable[[Facts], Iterable[Span]]:
        """`find` with what the choice gives it."""
        given = self.given(chosen)
        return partial(self.find, **given) if given else self.find


RECOGNISERS: dict[str, Recogniser] = {
    "urls": Recogniser(("URL",), network.might_url, network.urls, _narrow),
    "secrets": Recogniser(("SECRET",), secrets.might_secret, secrets.secrets),
    "emails": Recogniser(("EMAIL_ADDRESS",), network.might_email, network.emails),
    "ip_addresses": Recogniser(("IP_ADDRESS",), network.might_address, network.addresses),
    "mac_addresses": Recogniser(("MAC_ADDRESS",), network.might_mac, network.macs),
    "ibans": Recogniser(("IBAN_CODE",), finance.might_iban, finance.ibans),
    "cards": Recogniser(("CREDIT_CARD",), finance.might_card, finance.cards),
    "ssns": Recogniser(("US_SSN", "US_ITIN"), finance.might_ssn, finance.ssns),
    "births": Recogniser(("DATE_OF_BIRTH",), births.might_birth, births.births),
    "phones": Recogniser(("PHONE_NUMBER",), phones.might_phone, phones.phones),
    "name_scripts": Recogniser(("PERSON",), name_scripts.might_name_in_script, name_scripts.names_in_scripts),
    "labelled_numbers": Recogniser(
        labelled_numbers.TYPES, labelled_numbers.might_labelled, labelled_numbers.labelled_numbers
    ),
    "disguised": Recogniser(
        ("EMAIL_ADDRESS", "URL", "IP_ADDRESS"), network.might_disguise, network.disguised, _undisguised
    ),
    "home_folders": Recogniser(("PERSON",), home_folders.might_home, home_folders.home_folders, _words),
    "keyed_values": Recogniser(
        ("PERSON", "DATE_OF_BIRTH"), keyed_values.might_keyed, keyed_values.keyed_values, _words
    ),
    "addresses": Recogniser(("ADDRESS",), addresses.might_street, addresses.streets, _words),
    "announced": Recogniser(("PERSON",), announced.might_announce, announced.announced, _words),
    "names": Recogniser(("PERSON",), single.might_people, single.people, _words),
    "national": Recogniser(
        national.types,
        national.might_national,
        national.national_ids,
        lambda chosen: {"countries": chosen.countries, "wanted": chosen.entities},
    ),
    "national_checked": Recogniser(
        national.stdnum_entities,
        national.might_checked,
        national.checked_ids,
        lambda chosen: {"chosen": chosen.countries},
    ),
}


def choose(settings: Scrub) -> Chosen:
    """The entities of `settings`: those of all recognisers, with `scrub.entities` laid over them.

    Raises:
        UserError: an entity that no recogniser has, an unknown country, or an option that a recogniser does not know.
    """
    countries = tuple(sorted({country.upper() for country in settings.countries}))
    default = {entity for known in RECOGNISERS.values() for entity in known.entities(countries)}
    own = {r.entity for r in settings.recognizers}
    known = {*default, *OPTIONAL, *own}
    chosen = {*default, *own}
    urls = "all"
    asked = settings.entities
    if isinstance(asked, list):
        for entity in asked:
            _check(entity, known)
        return Chosen(frozenset(asked) | own, urls, countries)
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
    return Chosen(frozenset(chosen), urls, countries)


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
