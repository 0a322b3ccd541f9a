"""Postal addresses: anchors that only an address has, grown to the house number, the town and the zip code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.prefilter import Caseless, Facts
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import KNOWN, STOP, Lexicon
from ragbench_dagster.traffic.scrubbing.spans import Span

_LEFT = re.compile(r"(?<![\w.,-])\d{1,6}\s\Z")
_DIGITS = re.compile(r"[0-9]+")
_BEFORE, _AFTER = 200, 140  # characters around a digit in which an address is looked for
_FIRST_NUMBER = re.compile(r"\d")


def streets(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Addresses, each grown from its anchor; neighbours become one."""
    text = facts.text
    merged: list[list[int]] = []
    for start, end in sorted(_grow(text, s, e) for s, e in _anchors(facts, lex)):
        if merged and (start <= merged[-1][1] or re.fullmatch(r"[\s,;.>?]{0,8}", text[merged[-1][1] : start])):
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    for start, end in merged:
        yield Span(start, end, "ADDRESS", 0.8)


def _anchors(facts: Facts, lex: Lexicon) -> Iterator[tuple[int, int]]:
    text = facts.text
    if not facts.skip or "corner" in facts.folded:
        yield from (match.span() for match in CORNER.finditer(text))
    wanted = [pattern for words, pattern in ANCHORS if facts.has(words)]
    checked: list[Caseless] = [ALONE] if facts.has(ALONE_WORDS) else []
    if not facts.skip or any(token.endswith(ENDINGS) for token in facts.tokens):
        checked += [ENDING, BEFORE_ENDING]
    named = [BETWEEN, LOOSE] if facts.has(LOOSE_WORDS) else [BETWEEN]
    said = facts.has(SAID_WORDS)
    for begin, end in _around_digits(text):
        for pattern in (*wanted, TITLED):
            yield from (match.span() for match in pattern.finditer(text, begin, end))
        for caseless in checked:
            for match in caseless.finditer(facts, begin, end):
                if not lex.flags(match["w"]) & KNOWN:
                    yield match.span()
        for pattern in named:
            for match in pattern.finditer(text, begin, end):
                if _street_name(match["w"], lex):
                    yield match.span()
        for match in SAID.finditer(facts, begin, end) if said else ():
            piece = _said(text, match.end())
            if piece:
                yield piece


def _around_digits(text: str) -> list[tuple[int, int]]:
    """The stretches of `text` in which an address can be: all have a digit, and none is long."""
    stretches: list[tuple[int, int]] = []
    for match in _DIGITS.finditer(text):
        begin, end = match.start() - _BEFORE, match.end() + _AFTER
        if stretches and begin <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((_space(text, begin), end))
    return [(max(0, begin), end) for begin, end in stretches]


def _space(text: str, at: int) -> int:
    """The last space before `at`, so that no word is cut."""
    return max(text.rfind(" ", 0, at), 0) if at > 0 else 0


def _street_name(words: str, lex: Lexicon) -> bool:
    """The words between two numbers: one of them is in no dictionary, none is a function word."""
    bits = [lex.flags(word) for word in re.findall(r"[^\W\d_]+", words)]
    return not any(b & STOP for b in bits) and any(not b & KNOWN for b in bits)


def _said(text: str, at: int) -> tuple[int, int] | None:
    """What is said to be an address: up to the end of the sentence, with a number in it."""
    piece = text[at : at + 120]
    stop = STOPS.search(piece)
    piece = piece[: stop.start()] if stop else piece
    for cut in CUT.finditer(piece):
        if _FIRST_NUMBER.search(piece[: cut.start()]):
            piece = piece[: cut.start()]
            break
    line = re.match(r"[^\d\n]{1,60}\n\s*(?=\d)", piece)  # a name stands above the street
    if line:
        at, piece = at + line.end(), piece[line.end() :]
    piece = piece.rstrip(" \t\n\r,.;:!?\"')")
    if not _FIRST_NUMBER.search(piece) or not re.search(r"[^\W\d_]{3}", piece) or "@" in piece or "://" in piece:
        return None
    return at + len(piece) - len(piece.lstrip()), at + len(piece)


def _grow(text: str, start: int, end: int) -> tuple[int, int]:
    """Over the house number to the left, and over town and country to a zip code at the right."""
    if UNITS.match(text, start):
        street = BEFORE_UNIT.search(text[max(0, start - 80) : start])
        if street:
            start -= len(street[0])
        after = AFTER_UNIT.match(text, end)
        if after:
            end = after.end()
    left = _LEFT.search(text[max(0, start - 8) : start])
    if left:
        start -= len(left[0])
    window = text[end : end + 90]
    stop = STOPS.search(window)
    if stop:
        window = window[: stop.start()]
    match = ZIP.search(window)
    while match:
        gap = UNITS.sub(" ", window[: match.start()])
        if not re.search(r"[\d@<:=]", gap) and len(gap.split()) <= 12:
            town = TOWN.match(text, end + match.end()) if re.fullmatch(r"[\s,]{1,4}", gap) else None
            return start, town.end() if town else end + match.end()
        match = ZIP.search(window, match.end()) if UNITS.search(window[: match.end()]) else None
    return start, end


def might_street(facts: Facts) -> bool:
    """Every address has a number, but for the corner of two streets."""
    return facts.digit or "corner" in facts.folded


# The shapes of addresses: units, street words of many languages, zip codes, and words that announce one.
#
# All repetitions are bounded, so that no text makes a pattern slow.

W = r"[^\W\d_]{1,30}(?:['’.-][^\W\d_]{1,30}){0,3}\.?"  # a word, also "St." and "O'Connell"
N = r"\d{1,6}[a-zA-Z]?(?:[/-]\d{1,4})?"  # a house number

_BOX = r"p\.?\s?o\.?\s?box|post\s?box|postbox|postfach|postboks|apartado|bo[iî]te\spostale|psc"
UNIT = rf"(?:\b(?:apt|apartment|suite|ste|unit|flat|room|floor|{_BOX}|cmr|bldg)\b\.?|\bbox\b)\s{{0,2}}#?\s?\d{{1,6}}[a-z]?\b"
_SURE_UNIT = rf"(?:\b(?:apt|apartment|{_BOX})\b\.?|(?<!office )(?<!product )(?<!test )(?<!creative )\bsuite\b)\s{{0,2}}#?\s?\d{{1,6}}[a-z]?\b"
_MILITARY = (
    rf"\b(?:psc|cmr|unit)\s\d{{1,5}},?\sbox\s\d{{1,5}}(?:\s{{1,3}}(?:apo|fpo|dpo)\s(?:aa|ae|ap)\s\d{{5}})?"
    rf"|(?:\bus(?:ns|s|cgc|nv|ss|nh)\s{W}(?:\s{W})?\s{{1,3}})?\b(?:apo|fpo|dpo)\s(?:aa|ae|ap)\s\d{{5}}"
)
# Street words that are no everyday words after a number; the others need capitals (TITLED).
_SURE = r"street|road|rd|avenue|ave|boulevard|blvd|lane|ln|terrace|crescent|highway|hwy|parkway|pkwy|esplanade|turnpike|str\.|st\."
# Left out: words that name technical things ("2 Kafka Stream", "3 Java Path").
_EVERYDAY = (
    r"st|close|court|ct|circle|cir|drive|dr|way|place|pl|plaza|square|sq|trail|trl|row|walk|mews|grove|gardens?"
    r"|hill|hills|heights|ridge|rise|crossing|causeway|quay|wharf|bridge|mall|forges?|rapids|village|vista"
    r"|valley|islands?|springs?|meadows?|manor|mills?|burgs?|coves?|creek|glens?|haven|isle|knolls?|lakes?"
    r"|mountains?|orchard|parks?|pines?|shoals?|shores?|spurs?|summit|viaduct|alley|bay|bend|chase|cliffs?"
    r"|corner|dale|estate|falls|ford|forest|green|harbor|hollow|inlet|lodge|motorway|oval|parade|passage|pike"
    r"|prairie|ranch|ville|crest|expressway|freeway|radial|brook|camp|fort|skyway|throughway|stravenue|beach"
    r"|bottom|bluff|burg|canyon|estates|ferry|garden"
)
_NOT_STREET = (
    r"(?!(?:the|on|of|in|at|to|my|your|is|are|and|or|for|a|an|by|with|from|more|next|minutes?|hours?|miles?|cars?|times?|days?|weeks?|months?"
    r"|years?|km|gb|tb|mb|people|percent|dollars?|euros?|pounds?|points?|i|it|was|were|has|have|had|that|this|per|down|up|off|about|than)\b)"
)
_COMPASS = r"(?:[NSEW]\.?\s|[NS][EW]\s|North\s|South\s|East\s|West\s)?"
_PREFIX = (
    r"\b(?:rue|avenue|av|boulevard|bd|chemin|impasse|allée|quai|viale|piazza|piazzetta|piazzale|corso|vicolo|calle|c/|avenida|avda"
    r"|carretera|ctra|camino|camiño|paseo|praza|rúa|rua|travessa|praça|estrada|ul|ulica|ulice|aleja|trg|nám|námestí|náměstí|ulitsa|odos"
    r"|strada|bulevardul|soseaua|jalan|bygget|heilige)\b\.?"
)
# Also everyday words or single letters: the street's name must be in no dictionary.
_LOOSE_PREFIX = r"\b(?:place|route|via|largo|plaza|r|al|os|plac|pl|jl|c\.|cam|urb|lugar|casal|quinta)\b\.?"
_FRENCH = r"rue|avenue|boulevard|chemin|impasse|allée|place|quai|route|rúa|rua|via|viale|calle|piazza"
_ENDINGS = (
    r"(?:stra(?:ß|ss)e|str\.?|gasse|weg|allee|platz|ring|damm|ufer|brücke|gatan|vägen|gränd|gården|torget|veien|vegen|vei|veg|bakken|gata|gate"
    r"|gade|gaden|vej|vænget|stien|tie|katu|kuja|polku|raitti|laan|straat|steenweg|plein|dreef|kade|singel|gracht|lei|baan|utca|körút|sétány"
    r"|tér|köz|dülő|tänav|maantee|iela|gatvė|stígur|vegur|vegi|braut|tún|hlíð|hóli|skeið|stræti|stræde|gatu|götu|grunni)"
)
_ALONE = r"straße|strasse|weg|allee|platz|gate|gata|vei|veg|laan|plein|tie"
_HUNGARIAN = r"\b(?:utca|u\.|út|útja|tér|tere|rkp\.|krt\.|körút|sétány|köz|sor)\s\d{1,4}\.?"


def _c(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def _words(alternatives: str) -> frozenset[str]:
    """The folded words that a list of alternatives begins with; "hills?" gives both."""
    found: set[str] = set()
    for part in alternatives.removeprefix(r"\b(?:").removesuffix(r")\b\.?").split("|"):
        word = re.sub(r"\\.|\W", "", part.removesuffix("s?")).casefold()
        found |= {word, word + "s"} if part.endswith("s?") else {word}
    return frozenset(found)


ALWAYS: frozenset[str] = frozenset()
# (words of which one must be in the text, none: always; the pattern)
ANCHORS: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (frozenset({"psc", "cmr", "unit", "apo", "fpo", "dpo"}), _c(_MILITARY)),
    (
        frozenset("apt apartment box pobox postbox postfach postboks apartado postale psc suite".split()),
        _c(_SURE_UNIT),
    ),
    (
        _words(_SURE),
        _c(
            rf"\b{N},?\s{_COMPASS}(?:\d{{1,3}}(?:st|nd|rd|th)|{_NOT_STREET}{W})(?:\s{_NOT_STREET}{W}){{0,3}}?\s(?:{_SURE})(?!\w)\.?"
        ),
    ),
    (_words(_PREFIX), _c(rf"(?:\b{N}\s)?{_PREFIX}\s(?:{W}\s){{0,5}}?{W},?\s{N}\b")),
    (_words(_FRENCH), _c(rf"\b{N},?\s(?:{_FRENCH})\s{W}(?:\s{W}){{0,4}}")),
    (_words("utca|u|út|útja|tér|tere|rkp|krt|körút|sétány|köz|sor"), _c(rf"(?:{W}\s){{1,4}}{_HUNGARIAN}")),
)
CORNER = _c(rf"\bthe\scorner\sof\s(?:{N})?[^\n?!]{{3,70}}?\sand\s{W}(?:\s{W}){{0,3}}")
# A word with a street ending and a number; the word itself must be in no dictionary ("monitoring 5").
ENDING = Caseless(rf"\b(?P<w>[^\W\d_]{{2,40}}{_ENDINGS})\s{N}\b\.?")
BEFORE_ENDING = Caseless(rf"\b{N}\s(?P<w>[^\W\d_]{{2,40}}{_ENDINGS})(?!\w)")
ENDINGS = tuple(
    sorted({"strasse", *_words(_ENDINGS.removeprefix("(?:stra(?:ß|ss)e|").removesuffix(")").replace(r"\.?", ""))})
)
LOOSE_WORDS = _words(_LOOSE_PREFIX)
LOOSE = _c(rf"(?:\b{N}\s)?{_LOOSE_PREFIX}\s(?P<w>(?:{W}\s){{0,5}}?{W}),?\s{N}\b")
ALONE_WORDS = _words(_ALONE)
ALONE = Caseless(rf"\b(?P<w>{W})\s(?:{_ALONE})\s{N}\b")
TITLED = _c(
    rf"(?<![\w.-])(?!(?:1[6-9]|20)\d\d\s)\d{{1,6}}[a-zA-Z]?,?\x20(?:[NSEW]\.?\x20|(?:North|South|East|West)\x20)?(?:[A-ZÀ-ÖØ-Þ][\w.'’-]{{0,30}}\x20){{1,4}}(?i:{_EVERYDAY})\b\.?",
    0,
)
# A name between two numbers, as some forms write it: "65 Bodbysund 61".
BETWEEN = _c(
    r"(?:^|(?<=[,>?]\s)|(?<=[\n>])|(?<=\n\s)|(?<=\bat\s))\d{1,6}\s(?P<w>[^\W\d_][\w.'’-]{1,30}(?:\s[^\W\d_][\w.'’-]{0,30}){0,4})\s\d{1,5}[a-zA-Z]?\.?"
    r"(?=\s*(?:[,\n]|$|\s(?:apt|suite|ste)\b))",
    re.IGNORECASE | re.MULTILINE,
)
SAID = Caseless(
    r"\b(?:(?:my|his|her|their|our|billing|shipping|home|mailing|postal|delivery|street|new|old|current|work|office|full)\s)?address\b"
    r"(?:\s(?:of|for)\s[^.\n?!]{1,60}?)?\s?(?:(?:is(?:\snow)?|was|to|with)\b|:|=|changed\sto|should\sbe|\s(?=\d{1,5}\s[^\W\d_]))\s{0,3}"
    r"|\b(?:i|we|he|she|they)\s(?:now\s|currently\s)?(?:live|lives|living|reside|resides|stay|moved|moving)\s(?:at|on|in|to)\s"
    r"|\b(?:i'm|we're)\sliving\s(?:at|on)\s"
    r"|\b(?:office|store|shop|branch|house|home|restaurant|clinic|school|building|warehouse|hotel)\s(?:is|are)\s(?:located\s|situated\s)?(?:at|on)\s"
    r"|\blocated\sat\s"
    r"|\b(?:ship|send|deliver|mail|post|forward|delivered|delivery|shipped|sent)\s(?:it|this|them|my\s\w{1,20}|the\s\w{1,20}|that|a\s\w{1,20})?\s?(?:to|at)\s(?=\d{1,6}[a-z]?,?\s)(?!\d+\s?(?:degrees?|percent|[°%]|[cf]\b|[ap]\.?m\b|o'clock|kg|lbs?|items?|units?|people))"
    r"|\bwohne\s(?:in|an)\s(?:der|dem)?\s?|\bvivo\sen\s|\bj'habite\s(?:au|à)?\s?|\babito\s(?:in|a)\s|\bmoro\s(?:na|no|em)\s|\bik\swoon\s(?:op|in|aan)\s"
)
SAID_WORDS = frozenset(
    "address live lives living reside resides stay moved moving located office store shop branch house home restaurant clinic school building"
    " warehouse hotel ship send deliver mail post forward delivered delivery shipped sent wohne vivo habite abito moro woon".split()
)
ZIP = _c(
    r"\b(?:\d{5}(?:-\d{4})?|[A-Z]\d[A-Z]\s?\d[A-Z]\d|[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}|\d{4}\s?[A-Z]{2}|\d{3}\s\d{2}|\d{2}-\d{3}|\d{5}-\d{3})\b"
)
TOWN = re.compile(r"\s[A-ZÀ-ÖØ-Þ][\w'’-]{1,30}(?:\s(?:am|an der|im|bei|sur|en)\s[A-ZÀ-ÖØ-Þ][\w'’-]{1,30})?")
UNITS = _c(UNIT)
# What stands beside a unit: the street, with the house number before or after it, or both.
BEFORE_UNIT = _c(rf"(?<![\w.,-])\d{{1,6}}[a-z]?,?\s(?:{W}\s){{1,4}}?(?:{W}|\d{{1,5}}\.?)[\s,]{{0,3}}\Z")
AFTER_UNIT = _c(rf"[\s,]{{1,3}}\d{{1,6}}\s(?:{W}\s){{1,4}}?\d{{1,5}}[a-z]?\b")
STOPS = _c(
    r"\b(?:for|this|that|but|please|because|so|can|could|what|when|how|is|it|i|my|thanks?|call|phone|mobile|tel|fax|email|e-mail|we|you)\b"
    r"|(?<=\w)[.?!]\s|\n\s*\n\s*\n"
)
CUT = _c(r"\b(?:and|or|the|then|where)\b")
