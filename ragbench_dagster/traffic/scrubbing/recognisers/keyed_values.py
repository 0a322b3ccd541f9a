"""Payloads pasted into a question: names and dates of birth under the keys that programmers give them.

JSON (escaped or not), XML tags and attributes, YAML, query strings, CSV-like rows, code. A key announces its value
as "my last name is" does, in camelCase, snake_case, kebab-case and many languages. Other values stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.prefilter import Facts, holds
from ragbench_dagster.traffic.scrubbing.recognisers.births import DATE
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import (
    NAME,
    ORDINARY,
    PRODUCT,
    STOP,
    WORD,
    Lexicon,
    key_of,
    titled,
    word_list,
)
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

_ESC = r"\\{0,7}"
_QUOTE = rf"{_ESC}(?:[\"'`]|&quot;|&#34;|%22)"
_LT, _GT = r"(?:<|&lt;|\\u003[cC])", r"(?:>|&gt;|\\u003[eE])"
# A key, what ties it to its value, and the value: quoted, or up to a separator.
_KEY = r"(?P<key>[^\W\d_](?:[^\W_]|[_.-](?=\w)){0,39})"
_PAIR = re.compile(
    rf"(?<![^\W_]){_KEY}(?:\[\])?{_QUOTE}?\s{{0,4}}(?::=|=>|[:=]|%3[AaDd])\s{{0,4}}"
    rf"(?:\[\s{{0,4}})?(?=(?:{_QUOTE}(?P<q>[^\"'`\\\n<>{{}}\[\]&%]{{1,80}}|(?:[^\"`\\\n<>{{}}\[\]&]|%20){{1,80}}?)(?={_QUOTE})"
    r"|(?P<v>[^\s\"'`\\,;&|<>{}\[\]():=]{1,60}(?:[ ][^\s\"'`\\,;&|<>{}\[\]():=]{1,30}){0,4})))"
)
_TAG = re.compile(
    rf"{_LT}(?:[A-Za-z][\w-]{{0,30}}:)?(?P<key>[^\W\d_][\w.-]{{1,39}})(?:\s[^<>\n]{{0,120}})?{_GT}(?:<!\[CDATA\[)?\s{{0,4}}"
    r"(?P<v>[^<>&\]\n]{1,80}?)\s{0,4}(?:\]\]>)?(?=<|&lt;|\\u003)"
)
_DATE = re.compile(
    rf"(?:{DATE})(?:[T ][\d:.+Z-]{{0,30}})?|-?\d{{5,13}}|\d{{4}}-\d{{2}}|\d{{1,2}}[ .]\w{{3,12}}\.?[ .]\d{{4}}",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[^\w]|_|(?<=[a-z\d])(?=[A-Z])")
# What belongs to somebody or something before the key proper: billingLastName, customer.first_name, user[lastName].
_OWNERS = (
    "user customer client patient contact billing shipping bill ship account holder owner member employee person payer payee recipient sender"
    " beneficiary guest student parent father mother spouse child emergency primary secondary applicant insured cardholder card author driver"
    " passenger traveler traveller kunden kunde cliente client usuario utente klant kunde patienten the my new old legal real official birth"
).split()
_NAMES, _BIRTHS = word_list("name_keys"), word_list("birth_keys")
_PLAIN = frozenset(
    {
        "name",
        "names",
        "nom",
        "nome",
        "nombre",
        "naam",
        "navn",
        "namn",
        "ad",
        "nume",
        "jmeno",
        "имя",
        "ім'я",
        "नाम",
        "ชื่อ",
    }
)
_NO_VALUE = frozenset(
    "null none nil true false string str text varchar varchar2 nvarchar char character required optional undefined nan na n/a empty missing invalid"
    " unknown value int integer number numeric date datetime timestamp field column type object array list any void default blank yes no test"
    " foo bar baz placeholder todo tbd xxx example sample redacted masked hidden deleted removed anonymous error ok not the a an is was are".split()
)
_WORDS_MAX = 6


def keyed_values(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Names and dates of birth that stand under a key for them."""
    text = facts.text
    for pattern in (_PAIR, _TAG):
        for match in pattern.finditer(text):
            kind = _kind(match["key"])
            if kind is None:
                continue
            group = "v" if match["v"] is not None else "q"
            start, end = _trimmed(text, *match.span(group))
            value = text[start:end]
            if kind == "birth":
                found = _DATE.match(text, start)
                if found:
                    yield Span(start, found.end(), "DATE_OF_BIRTH", 0.9, Evidence.ANNOUNCED)
            else:
                length = _name(value, kind, group == "q" or pattern is _TAG, lex)
                if length:
                    yield Span(start, start + length, "PERSON", 0.9, Evidence.ANNOUNCED)


def _kind(key: str) -> str | None:
    """ "name" for the keys of a person's names, "plain" for those that name all things, "birth", or None."""
    parts = [key_of(part) for part in _PARTS.split(key) if part]
    for at in range(len(parts)):
        joined = "".join(parts[at:])
        if at and parts[at - 1] not in _OWNERS:
            return None
        if joined in _BIRTHS:
            return "birth"
        if joined in _NAMES:
            return "name"
        if joined in _PLAIN:
            return "name" if at else "plain"
    return None


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in " \t\"'":
        start += 1
    while start < end and text[end - 1] in " \t\"'.!?":
        end -= 1
    return start, end


def _name(value: str, kind: str, quoted: bool, lex: Lexicon) -> int:
    """How much of `value` is a name; 0: none of it. What follows an unquoted value in the sentence is not."""
    if re.search(r"[\d$%@/:*#]", value.replace("%20", " ").replace("%C3%", " ")) and not re.fullmatch(
        r"[\w%+.'-]+", value
    ):
        return 0
    words = [(m.end(), m[0], lex.flags(m[0])) for m in WORD.finditer(value.replace("+", " "))]
    if not words:
        return len(value) if any(ch.isalpha() for ch in value) and not value.isascii() else 0
    first, bits = words[0][1], words[0][2]
    if len(words) > _WORDS_MAX or any(w.lower() in _NO_VALUE for _, w, _ in words):
        return 0
    if kind == "plain" and not (bits & NAME and (titled(first) or not bits & ORDINARY) and not bits & PRODUCT):
        return 0
    if quoted:
        return 0 if any(b & STOP and not titled(w) and len(w) > 3 for _, w, b in words) else len(value)
    if bits & (STOP | ORDINARY) and not bits & NAME and not titled(first):
        return 0
    end = words[0][0]
    for stop, word, flags in words[1:]:
        if not titled(word) and (flags & (ORDINARY | STOP) or titled(first)) and len(word) > 3:
            break
        if flags & STOP and not titled(word):
            break
        end = stop
    rest = re.match(r"(?:%20|%C[3-9]%|[\w%'+-])*", value[end:])
    return end + (rest.end() if rest else 0)


def might_keyed(facts: Facts) -> bool:
    """A sign that ties a key to a value, and a piece of one of the keys."""
    text = facts.text
    if not ("=" in text or ":" in text or ">" in text or "&gt;" in text or "%3" in text or "\\u003" in text):
        return False
    folded = facts.folded
    return not folded.isascii() or holds(folded, _STEMS)


_STEMS = (
    "name", "nom", "naam", "navn", "namn", "naz", "nume", "nume", "dob", "d.o.b", "birth", "bday", "born", "geb", "nai", "nac", "nas", "nat", "fod", "fød",
    "syn", "uro", "naro", "szul", "dog", "dogum", "ape", "cogn", "cogno", "sobre", "imie", "jmen", "prij", "vez", "ker", "soy", "isim", "ad", "sukunimi", "nimi", "kunya", "lahir", "tengah", "sinh", "hoten", "hovaten",
)  # fmt: skip
