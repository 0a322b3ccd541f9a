"""Real questions with planted duplicates, and generated pairs that mean different things. Seeded, so repeatable.

The typing errors hit any character of a question, spaces and digits too. The pairs are written here, apart from
the product's own word lists.
"""

from __future__ import annotations

import json
import random
import re
import string
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path

SETS = ("queries_banking77", "queries_clinc150", "queries_wellformedness")
KINDS = {"exact": 0.30, "surface": 0.25, "typo": 0.30, "polite": 0.15}
# Phrases from another hand than the product's lists: each in front of or behind the question.
STRANGERS_BEFORE = (
    "Hello friends, ", "Good day to you! ", "Apologies in advance, but ", "Might you be able to tell me ",
    "Hey assistant, ", "I'd be thankful to learn ", "A small question if I may: ", "I've been meaning to ask, ",
    "Just checking: ", "Help! ", "Can you kindly explain ", "Greetings all. ", "Please could you say ",
)  # fmt: skip
STRANGERS_AFTER = (
    " many thanks!", " thx a ton", " Thanks ever so much.", " any pointers?", " Cheers mate", " please and thank you",
    " grateful for any help", " thank you kindly!", " - thanks, Sam", " can you assist?", " ty!!", " pls respond",
)  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """One row: its text, the number of the real question it was made from, and how."""

    text: str
    base: int
    kind: str
    original: str = ""
    word_after: str = ""  # typo: the word that the error made


def real_questions(shared: Path) -> list[str]:
    """The distinct questions of the three sets, in file order."""
    found: dict[str, None] = {}
    for name in SETS:
        for line in (shared / "data" / name / "queries.jsonl").read_bytes().split(b"\n"):
            if line.strip():
                found.setdefault(json.loads(line)["query"])
    return list(found)


def plant(questions: list[str], rows: int, listed: tuple[list[str], list[str]], seed: int = 7) -> list[Planted]:
    """`rows` rows: every question once, the rest planted duplicates of random ones.

    Args:
        listed: the product's own openings and closings, for the polite kind.
    """
    rng = random.Random(seed)
    out = [Planted(text, base, "real") for base, text in enumerate(questions)]
    kinds, shares = list(KINDS), list(KINDS.values())
    while len(out) < rows:
        base = rng.randrange(len(questions))
        kind = rng.choices(kinds, shares)[0]
        text = questions[base]
        if kind == "typo":
            made, word = typo(text, rng)
            out.append(Planted(made, base, kind, text, word))
        elif kind == "surface":
            out.append(Planted(surface(text, rng), base, kind, text))
        elif kind == "polite":
            out.append(Planted(polite(text, rng, *listed), base, kind, text))
        else:
            out.append(Planted(text, base, kind, text))
    rng.shuffle(out)
    return out


def typo(text: str, rng: random.Random) -> tuple[str, str]:
    """One character lost, doubled or added, changed, or swapped, anywhere; and the word that came of it."""
    at = rng.randrange(len(text))
    kind = rng.randrange(4)
    letter = rng.choice(string.ascii_lowercase)
    if kind == 0:
        made = text[:at] + text[at + 1 :]
    elif kind == 1:
        made = text[:at] + letter + text[at:]
    elif kind == 2:
        made = text[:at] + letter + text[at + 1 :]
    else:
        made = text[:at] + text[at : at + 2][::-1] + text[at + 2 :]
    touched = text[max(0, at - 1) : at + 2] if kind == 3 else text[at : at + 1]
    plain = not re.search(r"[\d\s]", touched)
    around = re.search(r"[\w']*$", made[:at]), re.match(r"[\w']*", made[at:])
    word = (around[0].group() if around[0] else "") + (around[1].group() if around[1] else "")
    return made, word.lower() if plain else " "


def surface(text: str, rng: random.Random) -> str:
    """Case, spacing or punctuation changed."""
    return rng.choice(
        (
            text.lower(), text.upper(), text.title(), text.rstrip("?.! ") + "??", text.rstrip("?.! "),
            "  " + text.replace(" ", "  ", 2) + "\n", text.rstrip("?.! ") + " ...", text.replace(" ", "\u00a0"),
            text.replace("'", "\u2019"), text.swapcase(), text.rstrip("?.! ") + " ?!", '"' + text + '"',
        )
    )  # fmt: skip


def polite(text: str, rng: random.Random, openings: list[str], closings: list[str]) -> str:
    roll = rng.random()
    if roll < 0.6:
        return rng.choice(openings) + rng.choice((" ", ", ", "! ", ": ")) + text
    if roll < 0.9:
        return text + rng.choice((" ", ", ", " - ")) + rng.choice(closings)
    return rng.choice(openings) + ", " + text + " " + rng.choice(closings)


def strangers(questions: list[str], count: int, seed: int = 11) -> list[Planted]:
    """Questions with politeness that another hand wrote."""
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        base = rng.randrange(len(questions))
        text = questions[base]
        before = rng.random() < 0.5
        made = rng.choice(STRANGERS_BEFORE) + text if before else text + rng.choice(STRANGERS_AFTER)
        out.append(Planted(made, base, "stranger", text))
    return out


_GROUPS: dict[str, tuple[str, ...]] = {
    "environment": ("staging", "production", "testing", "development", "sandbox", "preview", "local", "live"),
    "year": ("2019", "2020", "2021", "2022", "2023", "2024", "2025"),
    "polarity": ("with", "without"),
    "direction": ("before", "after"),
    "plan": ("free", "pro", "team", "business", "enterprise", "starter", "basic", "premium", "plus", "lite"),
    "country": (
        "Iran", "Iraq", "Niger", "Nigeria", "Mali", "Malta", "Malawi", "Austria", "Australia", "Slovakia", "Slovenia",
        "Oman", "Romania", "Gambia", "Zambia", "Guinea", "Guyana", "India", "Indiana", "Chad", "China", "Chile",
        "Dominica", "Ireland", "Iceland", "Paraguay", "Uruguay", "Mauritius", "Mauritania", "Libya", "Liberia",
    ),
    "month": ("January", "February", "March", "May", "June", "July", "August", "October"),
    "tool": ("csv", "tsv", "css", "xls", "xlsx", "xml", "json", "yaml", "http", "https", "ftp", "sftp", "ssh", "ssl"),
    "amount": ("5", "10", "15", "50", "100", "1000", "1.5", "10.5", "105"),
    "size": ("small", "medium", "large"),
    "word": ("import", "export", "enable", "disable", "increase", "decrease", "open", "close", "lock", "unlock"),
}  # fmt: skip
_FRAMES: dict[str, tuple[str, ...]] = {
    "environment": ("how do i deploy to {}", "where are the {} logs kept", "who may change the {} settings"),
    "year": ("what were the limits in {}", "show me the {} price list", "tax form for {}"),
    "polarity": ("can i log in {} a password", "does it work {} cookies", "is shipping possible {} a passport"),
    "direction": ("can i cancel {} the trial ends", "is the fee charged {} the payment"),
    "plan": ("how many seats has the {} plan", "can i get refunds on {}", "is support part of {}"),
    "country": ("do you ship to {}", "what is the vat rate in {}", "can i open an account from {}"),
    "month": ("what changed in {}", "is the office closed in {}"),
    "tool": ("how do i export to {}", "is {} supported", "what is the port for {}"),
    "amount": ("what is the fee for {} transfers", "can i withdraw {} dollars"),
    "size": ("is there a {} instance", "price of the {} box"),
    "word": ("how do i {} the account", "can i {} all users at once"),
}


def swapped_pairs(count: int = 1000, seed: int = 3) -> list[tuple[str, str]]:
    """Pairs that differ in one entity, number or polarity and mean different things."""
    pairs = [
        (frame.format(one), frame.format(other))
        for kind, frames in _FRAMES.items()
        for frame in frames
        for one, other in combinations(_GROUPS[kind], 2)
    ]
    near = [pair for pair in pairs if abs(len(pair[0]) - len(pair[1])) < 2]
    random.Random(seed).shuffle(pairs)
    return list(dict.fromkeys([*near, *pairs]))[:count]


CURRENCIES = (
    "AED AFN ALL AMD ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY "
    "COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR "
    "ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK "
    "MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF "
    "SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS "
    "VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW"
).split()
STATES = (
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA "
    "RI SC SD TN TX UT VT VA WA WV WI WY DC"
).split()


@lru_cache(maxsize=1)
def code_pairs() -> list[tuple[str, str]]:
    """Pairs of questions whose codes are one edit apart."""
    pairs = []
    for codes, frames in (
        (CURRENCIES, ("convert 100 {} to gold", "what is the rate of the {} today")),
        (STATES, ("what is the sales tax in {}", "do you have a shop in {} yet")),
    ):
        for one, other in combinations(codes, 2):
            if len(one) == len(other) and (
                sum(a != b for a, b in zip(one, other, strict=True)) == 1 or (one == other[::-1] and len(one) == 2)
            ):
                pairs += [(frame.format(one), frame.format(other)) for frame in frames]
    return pairs
