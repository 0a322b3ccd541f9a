"""What a file's or a folder's name may say when it is stored or printed.

A name has no sentence around it: `5551234567.jsonl` is a phone number without a word beside it, `maria.fernandez`
has no capital. So here it is the other way round than in a text: dates, short numbers, ordinary words and versions
stay, and what else could point at somebody is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from ipaddress import ip_address
from itertools import pairwise

from ragbench_dagster.traffic.scrubbing.lexicon import (
    COMMON,
    FIRST,
    KNOWN,
    LAST,
    NAME,
    ORDINARY,
    PRODUCT,
    STOP,
    lexicon,
)
from ragbench_dagster.traffic.scrubbing.spans import PLACEHOLDER

# 2026-11-20, 20261120, 2026/11/20, and in one piece with an hour, minute and second: 20261120140509.
_DAY = re.compile(
    r"(?<!\d)(20\d\d)([-_/.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?:(?:[01]\d|2[0-3])(?:[0-5]\d){0,2})?(?!\d)"
)
_TIME = re.compile(r"[-_/.]?(?:[01]\d|2[0-3])(?:[-_.]?[0-5]\d){0,2}")  # behind a day, and nothing behind it
_WORDS = frozenset(
    "log logs request requests query queries question questions traffic part parts date day month year hour daily hourly "
    "weekly monthly prod production staging stage dev test observations traces spans export exports rag search chat app "
    "api web all data stream events archive north south east west central host server worker shard batch empty json "
    "jsonl ndjson csv tsv parquet gz zst txt answers answer calibration labels label judged human graded sample backup "
    "january february march april may june july august september october november december snappy zstd utf old new raw clean node pod region zone eu us uk de fr es it".split()
)
_HARMLESS_NUMBER = 6  # digits in a row that count shards, hours and ports, and nobody
# One number, whatever stands between its digits: cards, phones and social security numbers are written in groups.
_NUMBER = re.compile(r"\+?\(?\d(?:[\d ()+._/-]*\d)?")
_OCTETS = re.compile(r"(?<!\d)(\d{1,3})[._-](\d{1,3})[._-](\d{1,3})[._-](\d{1,3})(?!\d)")
_COLONS = re.compile(r"(?<![0-9a-z])[0-9a-f:]*:[0-9a-f:]+(?![0-9a-z])", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_RANDOM = 8  # letters and digits mixed from which on a token is a key and not a version
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^A-Za-z]+")


def is_harmless(path: str) -> bool:
    """True of names made of dates, short numbers, pairs of letters and words of the trade: nothing has to be loaded."""
    if re.search(r"[^\w./=-]", path) or _without_numbers(path) != path:
        return False
    rest = re.sub(r"\bT\d{4,6}Z?\b", " ", _DAY.sub(" ", path))  # 20261120T140509Z
    tokens = re.findall(r"[^\W\d_]+|\d+", rest)
    return all(token.isdigit() or len(token) <= 2 or token.casefold() in _WORDS for token in tokens) and not any(
        _is_random(token) for token in _TOKEN.findall(rest)
    )


def plain_name(path: str, plain: Callable[[str], str]) -> str:
    """`path` with placeholders in place of what may point at a person, a key or a machine.

    Args:
        path: with `/` between folders.
        plain: `Scrubber.plain`, which knows addresses, cards and keys by their form.
    """
    if is_harmless(path):
        return path
    done = "/".join(plain(part) for part in path.split("/"))
    done = _outside(done, PLACEHOLDER, _without_numbers)
    return _outside(done, PLACEHOLDER, _without_words)


def _outside(text: str, kept: re.Pattern[str], change: Callable[[str], str]) -> str:
    """`change` done to what lies between the matches of `kept`."""
    out, at = [], 0
    for match in kept.finditer(text):
        out += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*out, change(text[at:])])


def _without_numbers(text: str) -> str:
    text = _COLONS.sub(lambda m: "<IP_ADDRESS>" if _is_address(m[0]) else m[0], text)
    return _outside(text, PLACEHOLDER, lambda rest: _NUMBER.sub(lambda m: _number(m[0]), rest))


def _number(text: str) -> str:
    """A run of digits and what may stand between them: days stay, with a time behind the last; the rest if short."""
    days = [m for m in _DAY.finditer(text) if _is_day(m)]
    if days and _TIME.fullmatch(text[days[-1].end() :]):
        return _short(text[: days[0].start()]) + text[days[0].start() :] if len(days) == 1 else text
    out, at = [], 0
    for day in days:
        out += [_short(text[at : day.start()]), day[0]]
        at = day.end()
    return "".join([*out, _short(text[at:])])


def _short(text: str) -> str:
    if not any(c.isdigit() for c in text):
        return text
    first, last = re.search(r"[+(\d]", text), re.search(r"\d(?=\D*$)", text)
    assert first is not None
    assert last is not None
    number = text[first.start() : last.end()]
    octets = _OCTETS.search(number)
    kind = ""
    if octets is not None and all(int(n) < 256 for n in octets.groups()):
        kind = "<IP_ADDRESS>"
    elif _digits(number) > _HARMLESS_NUMBER:
        kind = "<NUMBER>"
    return text[: first.start()] + (kind or number) + text[last.end() :]


def _digits(text: str) -> int:
    return sum(c.isdigit() for c in text)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _without_words(text: str) -> str:
    dates = [m.span() for m in _DAY.finditer(text) if _is_day(m)]
    tokens = [m for m in _TOKEN.finditer(text) if not any(a < m.end() and m.start() < b for a, b in dates)]
    names = {i for i, token in enumerate(tokens) if _is_name(token[0])}
    for i, (one, two) in enumerate(pairwise(tokens)):
        if two.start() - one.end() == 1 and _are_a_person(one[0], two[0]):
            names |= {i, i + 1}
    out, at = [], 0
    for i, token in enumerate(tokens):
        kind = "ID" if _is_random(token[0]) else "NAME" if i in names else ""
        if kind:
            out += [text[at : token.start()], f"<{kind}>"]
            at = token.end()
    return "".join([*out, text[at:]])


def _is_day(match: re.Match[str]) -> bool:
    try:
        date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return False
    return True


def _is_random(token: str) -> bool:
    """A key of a session, a hash, an id: letters and digits mixed, and long."""
    digits = _digits(token)
    if len(token) < _RANDOM:
        return False
    pieces = _CAMEL.findall(token)
    # mariaFernandezDaily is made of words; eyJhbGciOi is made of nothing.
    return (digits >= 2 and len(token) - digits >= 2) or (len(pieces) >= 4 and len(token) < 3 * len(pieces))


def _is_name(token: str) -> bool:
    """A given or family name that is no ordinary word; also `fernandezm`, `mfernandez`, `mariaFernandez`, `maria2`."""
    word = token.strip("0123456789")
    folded = word.casefold()
    if len(word) < 3 or folded in _WORDS:
        return False
    parts = [p for p in _CAMEL.findall(word) if len(p) > 1]
    if len(parts) > 1 and any(_is_name(p) for p in parts if p != word):
        return True
    bits = lexicon().flags(folded)
    if bits & COMMON:
        return True
    if bits & (ORDINARY | PRODUCT | STOP):
        return False
    if bits & NAME:
        return True
    return not bits & KNOWN and _is_joined(folded)


def _is_joined(word: str) -> bool:
    """A given and a family name, or an initial and a family name, written as one word."""
    flags = lexicon().flags
    if len(word) >= 6 and (flags(word[1:]) & LAST or flags(word[:-1]) & LAST):
        return True
    return any(
        (flags(word[:i]) & FIRST and flags(word[i:]) & LAST) or (flags(word[:i]) & LAST and flags(word[i:]) & FIRST)
        for i in range(3, len(word) - 2)
    )


def _are_a_person(one: str, two: str) -> bool:
    """Two words that are names of a person together, although each is an everyday word too: `will.smith`."""
    if one.casefold() in _WORDS or two.casefold() in _WORDS or min(len(one), len(two)) < 3:
        return False
    first, last = lexicon().flags(one), lexicon().flags(two)
    return bool((first & FIRST and last & LAST) or (first & LAST and last & FIRST))
