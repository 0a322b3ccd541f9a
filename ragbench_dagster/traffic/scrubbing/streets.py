"""Postal addresses: anchors that only an address has, grown to the house number, the town and the zip code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.spans import Span

_W = r"[^\W\d_]{1,30}(?:['’.-][^\W\d_]{1,30}){0,3}\.?"  # a word, also "St." and "O'Connell"; bounded
_N = r"\d{1,6}[a-zA-Z]?(?:[/-]\d{1,4})?"
_UNIT = (
    r"(?:\b(?:apt|apartment|suite|ste|unit|flat|room|floor|p\.?\s?o\.?\s?box|post\s?box|postbox|postfach|postboks|apartado|bo[iî]te\spostale|psc|cmr|bldg)\b\.?"
    r"|\bbox\b)\s{0,2}#?\s?\d{1,6}[a-z]?\b"
)
_STRONG_UNIT = (
    r"(?:\b(?:apt|apartment|p\.?\s?o\.?\s?box|post\s?box|postbox|postfach|postboks|apartado|psc)\b\.?|(?<!office )(?<!product )(?<!test )\bsuite\b)"
    r"\s{0,2}#?\s?\d{1,6}[a-z]?\b"
)
_MILITARY = (
    r"\b(?:psc|cmr|unit)\s\d{1,5},?\s(?:box)\s\d{1,5}(?:\s{1,3}(?:apo|fpo|dpo)\s(?:aa|ae|ap)\s\d{5})?|(?:\bus(?:ns|s|cgc|nv|ss|nh)\s"
    + _W
    + r"(?:\s"
    + _W
    + r")?\s{1,3})?\b(?:apo|fpo|dpo)\s(?:aa|ae|ap)\s\d{5}"
)
_TYPES = (
    r"(?:street|st|road|rd|avenue|ave|boulevard|blvd|lane|ln|terrace|crescent|cres|highway|hwy|parkway|pkwy|esplanade|turnpike|expressway|freeway"
    r"|alley|close|court|ct|circle|cir|drive|dr|way|place|pl|plaza|square|sq|trail|trl|path|row|walk|mews|grove|gardens|gate|hill|heights|ridge|rise|loop|crossing|causeway|quay|wharf|bridge|mall|forge|forges|rapids|station|junction|village|ville|vista|view|valley|island|islands|springs|meadows|manor|mills|burgs?|coves?|creek|fields|glens?|haven|isle|knolls?|lakes?|landing|locks?|mountains?|orchard|park|pines?|points?|ports?|ramp|rest|roads|shoals?|shores?|skyway|spurs?|stravenue|stream|summit|throughway|trace|track|tunnel|union|viaduct|well|wells)"
)
_SURE_TYPES = (
    r"(?:street|road|rd|avenue|ave|boulevard|blvd|lane|ln|terrace|crescent|highway|hwy|parkway|pkwy|esplanade|turnpike)"
)
_NOT_STREET = r"(?!(?:the|on|of|in|at|to|my|your|is|are|and|or|for|a|an|by|with|from|more|next|minutes?|hours?|miles?|cars?|times?|days?|weeks?|months?|years?|km|gb|tb|mb|people|percent|dollars?|euros?|pounds?|points?)\b)"
_ENGLISH = rf"\b{_N},?\s(?:[NSEW]\.?\s|[NS][EW]\s|North\s|South\s|East\s|West\s)?(?:\d{{1,3}}(?:st|nd|rd|th)|{_NOT_STREET}{_W})(?:\s{_NOT_STREET}{_W}){{0,3}}?\s"
_PREFIX = r"\b(?:rue|avenue|av|boulevard|bd|chemin|impasse|allée|place|quai|route|via|viale|piazza|piazzetta|piazzale|corso|vicolo|largo|calle|c/|avenida|avda|carretera|ctra|camino|camiño|paseo|plaza|praza|rúa|rua|r|travessa|praça|estrada|ul|ulica|ulice|aleja|al|os|plac|pl|trg|nám|námestí|náměstí|ulitsa|odos|strada|bulevardul|soseaua|jalan|jl|c\.|cam|urb)\b\.?"
_ENDINGS = r"(?:stra(?:ß|ss)e|str\.?|gasse|weg|allee|platz|ring|damm|ufer|brücke|gatan|vägen|gränd|gården|torget|veien|vegen|vei|veg|bakken|gata|gate|gade|gaden|vej|vænget|stien|tie|katu|kuja|polku|raitti|laan|straat|steenweg|plein|dreef|kade|singel|gracht|lei|baan|utca|körút|sétány|sor|tér|köz|dülő|tänav|maantee|iela|gatvė|gata|stígur|vegur|braut|tún|hlíð|hóli|skeið|straeti|stræti)"
_OWN = r"\b(?:utca|u\.|út|útja|tér|tere|rkp\.|krt\.|körút|sétány|köz|sor)\s\d{1,4}\.?"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_ANCHORS = (
    _compile(_MILITARY),
    _compile(_STRONG_UNIT),
    _compile(_ENGLISH + _SURE_TYPES + r"\b\.?"),
    _compile(rf"(?:\b{_N}\s)?{_PREFIX}\s(?:{_W}\s){{0,5}}?{_W},?\s{_N}\b"),
    _compile(
        rf"\b{_N},?\s(?:rue|avenue|boulevard|chemin|impasse|allée|place|quai|route|rúa|rua|via|viale|calle)\s{_W}(?:\s{_W}){{0,4}}"
    ),
    _compile(rf"\b(?:{_W}\s)?[^\W\d_]{{2,40}}{_ENDINGS}\s{_N}\b\.?"),
    _compile(rf"\b(?:{_W}\s){{1,3}}(?:straße|strasse|weg|allee|platz|gate|gata|vei|veg|laan|plein|tie)\s{_N}\b"),
    _compile(rf"(?:{_W}\s){{1,4}}{_OWN}"),
    _compile(rf"\bthe\scorner\sof\s{_N}?[^.\n?!]{{3,60}}?\sand\s{_W}(?:\s{_W}){{0,3}}"),
)
# Capitals decide where the street word is an everyday word ("5 minute drive", "3 hard drive").
_TITLED = re.compile(
    rf"\b\d{{1,6}}[a-zA-Z]?,?\s(?:[NSEW]\.?\s|(?:North|South|East|West)\s)?(?:[A-ZÀ-ÖØ-Þ][\w.'’-]{{1,30}}\s){{1,4}}(?i:{_TYPES})\b\.?"
)
# A name between two numbers, as some forms write it: "65 Bodbysund 61".
_BETWEEN = re.compile(
    r"(?:^|(?<=[\s,>?]))\d{1,6}\s(?:[^\W\d_][\w.'’-]{1,30}\s){1,5}\d{1,5}[a-zA-Z]?\.?(?=\s*(?:[,\n]|$|\s(?:apt|suite|ste)\b))",
    re.IGNORECASE | re.MULTILINE,
)
_SAID = re.compile(
    r"\b(?:(?:my|his|her|their|our|billing|shipping|home|mailing|postal|delivery|street|new|old|current|work|office|full)\s)?address(?:\s(?:of|for)\s[^.\n?!]{1,60}?)?\s?(?:is(?:\snow)?|was|to|with|:|=|changed\sto|should\sbe)\s{0,3}"
    r"|\b(?:i|we|he|she|they)\s(?:now\s|currently\s)?(?:live|lives|living|reside|resides|stay|moved|moving)\s(?:at|on|in|to)\s|\b(?:i'm|we're)\sliving\s(?:at|on)\s"
    r"|\b(?:office|store|shop|branch|house|home|restaurant|clinic|school|building|warehouse|hotel)\s(?:is|are)\s(?:located\s|situated\s)?(?:at|on)\s|\blocated\sat\s"
    r"|\b(?:ship|send|deliver|mail|post|forward|deliver(?:ed|y)?|shipped|sent)\s(?:it|this|them|my\s\w+|the\s\w+|that|a\s\w+)?\s?(?:to|at)\s(?=\d)"
    r"|\bwohne\s(?:in|an)\s(?:der|dem)?\s?|\bvivo\sen\s|\bj'habite\s(?:au|à)?\s?|\babito\s(?:in|a)\s|\bmoro\s(?:na|no|em)\s|\bik\swoon\s(?:op|in|aan)\s",
    re.IGNORECASE,
)
_ZIP = re.compile(
    r"\b(?:\d{5}(?:-\d{4})?|[A-Z]\d[A-Z]\s?\d[A-Z]\d|[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}|\d{4}\s?[A-Z]{2}|\d{3}\s\d{2}|\d{2}-\d{3}|\d{5}-\d{3})\b",
    re.IGNORECASE,
)
_UNITS = re.compile(_UNIT, re.IGNORECASE)
_STOPS = re.compile(
    r"\b(?:for|this|that|and|but|please|because|so|can|could|what|when|how|is|it|i|my|the|thanks?|call|phone|mobile|tel|fax|email|e-mail|we|you)\b|[.?!]\s|\n\s*\n\s*\n",
    re.IGNORECASE,
)


def streets(facts: Facts) -> Iterator[Span]:
    """Addresses, each grown from its anchor; neighbours become one."""
    text = facts.text
    found = [(m.start(), m.end()) for pattern in (*_ANCHORS, _TITLED, _BETWEEN) for m in pattern.finditer(text)]
    for match in _SAID.finditer(text):
        piece = _said(text, match.end())
        if piece:
            found.append(piece)
    merged: list[list[int]] = []
    for start, end in sorted(_grow(text, s, e) for s, e in found):
        if merged and (start <= merged[-1][1] or re.fullmatch(r"[\s,;.]{0,6}", text[merged[-1][1] : start])):
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    for start, end in merged:
        yield Span(start, end, "ADDRESS", 0.8)


def _said(text: str, at: int) -> tuple[int, int] | None:
    """What is said to be an address: up to the end of the sentence, with a number in it."""
    piece = text[at : at + 120]
    stop = _STOPS.search(piece)
    piece = piece[: stop.start()] if stop else piece
    piece = piece.rstrip(" \t\n\r,.;:!?\"')")
    if not re.search(r"\d", piece) or not re.search(r"[^\W\d_]{3}", piece) or "@" in piece or "://" in piece:
        return None
    return at + len(piece) - len(piece.lstrip()), at + len(piece)


def _grow(text: str, start: int, end: int) -> tuple[int, int]:
    """Over the house number to the left, and over town and country to a zip code at the right."""
    left = re.search(r"(?<![\w.,-])\d{1,6}\s\Z", text[max(0, start - 8) : start])
    if left:
        start -= len(left[0])
    window = text[end : end + 90]
    stop = _STOPS.search(window)
    if stop:
        window = window[: stop.start()]
    best = end
    for match in _ZIP.finditer(window):
        gap = _UNITS.sub(" ", window[: match.start()])
        if not re.search(r"[\d@<>:=]", gap) and len(gap.split()) <= 10:
            best = end + match.end()
        break
    return start, best


def might_street(facts: Facts) -> bool:
    return facts.digit or "corner of" in facts.folded
