"""Names that a person announces, in any case and with accents: "my name is ...", "regards, ...", "mr ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.lexicon import (
    FIRST,
    FOREIGN,
    KNOWN,
    LAST,
    NAME,
    ORDINARY,
    PRODUCT,
    STOP,
    Lexicon,
)
from ragbench_dagster.traffic.scrubbing.spans import Span

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_GAP = re.compile(r"[ \t]{1,3}(?=[^\W\d_])|\.[ \t]{0,2}(?=[^\W\d_])")
PARTICLES = frozenset(
    "van von der den de del della di da dos das du la le el al bin binti ibn ben abu ten ter te zu zum af av san st mac mc o d".split()
)

# What follows is a name, unless it is an ordinary word that is no name.
_STRONG = re.compile(
    r"(?:\b(?:my|his|her|their|our|the|full|legal|first|last|middle|maiden|family|given|sur|user|nick|account|customer|client|patient"
    r"|contact|holder'?s?|owner'?s?|husband'?s?|wife'?s?|son'?s?|daughter'?s?|boss'?s?|friend'?s?|partner'?s?|kid'?s?|child'?s?|[a-z]{2,15}'s)?"
    r"\s?names?(?:'s|\sis(?:\snow)?|\swas|\sare|\sshould\sbe|\s?:|\s?=)|\bcall\sme|\bthey\scall\sme|\bi\sgo\sby|\bname'?s"
    r"|\bi\sam\scalled|\bi\\?'?m\scalled|\bknown\sas|\bunder\s(?:the\s)?names?(?:\sof)?|\bin\sthe\snames?\sof|\bnamed|\bsigned(?:\sby)?"
    r"|\bme\sllamo|\bmi\snombre\ses|\bse\sllama|\bje\sm'?\s?appelle|\bmon\snom\sest|\bil\ss'appelle|\belle\ss'appelle|\bich\shei(?:ß|ss)e"
    r"|\bmein\sname\sist|\bmi\schiamo|\bil\smio\snome\s[eè]|\bmeu\snome\s[eé]|\b(?:eu\s)?me\schamo|\bmijn\snaam\sis|\bik\sheet"
    r"|\bjag\sheter|\bmitt\snamn\s[aä]r|\bjeg\shedder|\bjeg\sheter|\bmit\snavn\ser|\bnazywam\ssi[eę]|\bmam\sna\simi[eę]|\bjmenuji\sse"
    r"|\bnimeni\son|\bminun\snimeni\son|\ba\snevem|\bad[ıi]m|\bmenya\szovut)[\s:,\"']{0,4}",
    re.IGNORECASE,
)
# What follows may be a name: it must be listed, or look like one.
_WEAK = re.compile(
    r"(?:\b(?:i\sam|i\\?'?m|this\sis|it'?s|it\sis|here\sis|ich\sbin|je\ssuis|c'est|yo\ssoy|soy|sono|io\ssono|eu\ssou|sou|ik\sben|jag\s[aä]r|jeg\ser"
    r"|dear|hi|hello|hey|hallo|hola|bonjour|ciao|good\s(?:morning|afternoon|evening)|attn:?|attention:?|from:|to:|cc:|user:|customer:|client:|agent:|patient:|employee:"
    r"|signed:?|contact:?|ask\sfor|speak\s(?:to|with)|talk\sto|met\swith|spoke\s(?:to|with)|follow\sup\swith"
    r"|my\s(?:wife|husband|spouse|partner|son|daughter|kid|child|brother|sister|mother|mom|mum|father|dad|friend|boss|manager|colleague|coworker|doctor"
    r"|girlfriend|boyfriend|fianc[eé]e?|assistant|landlord|tenant|teacher|uncle|aunt|cousin|niece|nephew|grandmother|grandfather|supervisor|lawyer|neighbou?r)(?:\sis|,)?"
    r"))[\s:,\"']{1,3}",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    r"(?:\b(?:(?:kind|best|warm|many|with)\s)?regards|\bsincerely(?:\syours)?|\byours\s(?:truly|sincerely|faithfully)|\bcheers|\bthanks(?:\sa\slot|\sin\sadvance|\sso\smuch|\sagain)?"
    r"|\bthank\syou(?:\svery\smuch|\sin\sadvance|\sso\smuch)?|\bthx|\brespectfully|\bbest(?:\swishes)?|\bsaludos|\bcordialement|\bmfg|\bgr(?:ü|ue)(?:ß|ss)en?|\bgroeten|\bhilsen|\bcordiali\ssaluti)"
    r"\s{0,2}[,.!:;–-]*\s{1,3}",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"\b(?P<t>mr|mrs|ms|miss|mister|dr|prof|professor|doctor|sir|madam|mme|mlle|monsieur|madame|m\.|herr|frau|se[nñ]ora?|sr|sra|signora?|sig|dhr|mevr|pan[ií]?|fru|rev|reverend|capt|captain|sgt|lt)\b\.?\s{1,2}",
    re.IGNORECASE,
)
_KIN = re.compile(r"my\s", re.IGNORECASE)
# One who speaks in a transcript: `luis: "..."` at the beginning of a line.
_SPEAKER = re.compile(
    r"(?:^|(?<=[\n>]))[ \t]{0,3}(?P<n>[^\W\d_]{2,30}(?:[ \t][^\W\d_]{1,30}){0,2})[ \t]?:(?=[ \t]*[\\\"“'‘A-Z])",
    re.MULTILINE,
)
# Alone on its line above an address: `> Esat Jeknić`.
_HEAD = re.compile(
    r"^[ \t>?*•-]{0,8}(?P<n>[^\W\d_]{2,30}(?:[ \t]+(?:[^\W\d_]\.?|[^\W\d_][^\W\d_'’.-]{1,30})){1,3})[ \t]*$",
    re.MULTILINE,
)
_SPEAKING = re.compile(r"\s(?:speaking|calling|writing|here)\b", re.IGNORECASE)
_ADDRESSED = re.compile(r"(?i)\b(?:apt|suite|box|unit|phone|mobile|e-?mail|address|fax)\b|\d{4,}")
_FIRM_WORD = re.compile(
    r"(?i)\b(?:inc|ltd|llc|corp|group|partners|associates|agency|systems|solutions|software|research|services|consulting|technologies"
    r"|insurance|international|foundation|bank|club|data|media|labs?|network|institute|company|co)\b"
)
_TRIGGERS = (
    "name", "call", "i go by", "named", "signed", "llam", "nombre", "appelle", "nom ", "hei", "chia", "nome", "cham", "naam", "heet", "heter", "namn",
    "hedder", "navn", "nazywam", "imi", "jmenuji", "nimeni", "nevem", "adim", "zovut", "known as",
)  # fmt: skip

# What follows a lone unlisted name after "my wife" or "i'm".
_AFTER = frozenset(
    "is was has had can cannot can't could did does will would wants needs and who said told asked tried to from here speaking".split()
)
_ADJECTIVE = re.compile(r"(?:ed|ing|ly|able|ible|ful|less|ous|ive|ish|ated|tion|ment|ness|ist|er|ers|ent|ant|ic|al)$")


def _titled(word: str) -> bool:
    return word[0].isupper() and not word.isupper()


def take(text: str, at: int, lex: Lexicon, strong: bool, alone: bool = False) -> int | None:
    """End of the name that begins at `at`, or None.

    `strong`: the words before leave no doubt. `alone`: a single unlisted word is enough.
    """
    limit = 5
    words: list[tuple[int, int, str]] = []
    end = at
    while len(words) < limit:
        match = WORD.match(text, end)
        if match is None:
            break
        words.append((match.start(), match.end(), match[0]))
        gap = _GAP.match(text, match.end())
        if gap is None or (gap[0][0] == "." and len(match[0]) > 2):
            break
        end = gap.end()
    kept = _prefix(words, lex, strong, alone)
    if not kept:
        return None
    last = words[kept - 1][1]
    after = re.match(r",[ \t]{1,2}", text[last : last + 3])
    if kept == 1 and after:  # "Surname, Given"
        given = WORD.match(text, last + after.end())
        if given and _is_given(given[0], words[0][2], lex):
            return given.end()
    return last


def _begins_with_given(text: str, at: int, lex: Lexicon) -> bool:
    word = WORD.match(text, at)
    return word is not None and bool(lex.flags(word[0]) & FIRST)


def _is_given(word: str, first: str, lex: Lexicon) -> bool:
    bits = lex.flags(word)
    return bool(bits & FIRST and not bits & (ORDINARY | STOP)) or bool(
        _titled(word) and _titled(first) and not bits & ORDINARY and bits & NAME
    )


def _prefix(words: list[tuple[int, int, str]], lex: Lexicon, strong: bool, alone: bool) -> int:
    """How many of `words` are the name."""
    if not words:
        return 0
    kept = 0
    evidence = strong
    first_titled = _titled(words[0][2])
    for place, (_, _, word) in enumerate(words):
        bits = lex.flags(word)
        lower = word.lower()
        if bits & STOP or bits & PRODUCT and not strong:
            break
        particle = lower in PARTICLES
        initial = len(word) == 1
        if particle or initial:
            if place == 0 and initial and not strong:
                break
            if place == 0 and particle and not (len(words) > 1 and lex.flags(words[1][2]) & NAME):
                break
            rest = words[place + 1 :]
            if not rest or lex.flags(rest[0][2]) & (STOP | ORDINARY) and not (first_titled and _titled(rest[0][2])):
                if initial and place and word.isupper() and first_titled:
                    kept = place + 1
                break
            continue
        if place == 0:
            listed = bits & FIRST or (bits & LAST and not bits & ORDINARY)
            unknown = not bits & KNOWN
            if bits & ORDINARY and not bits & FIRST and not (strong and first_titled and bits & NAME):
                break
            if not strong:
                if bits & ORDINARY:  # "i am will" / "this is grace": needs a family name after it
                    follow = lex.flags(words[1][2]) if len(words) > 1 else 0
                    if not (follow & LAST and not follow & ORDINARY):
                        break
                elif not listed and not _plausible(words, lex, alone):
                    break
                elif bits & FOREIGN and not bits & FIRST and not first_titled:  # "im monat" is German
                    break
                evidence = True
            elif not (listed or unknown or first_titled):
                break
            kept = 1
            continue
        ordinary = bits & ORDINARY
        if (
            ordinary
            and not (first_titled and _titled(word))
            and not (bits & LAST and place == 1 and _closing(words, place, lex))
        ):
            break
        if not (bits & NAME or not bits & KNOWN or (first_titled and _titled(word))):
            break
        kept = place + 1
    return kept if evidence else 0


def _closing(words: list[tuple[int, int, str]], place: int, lex: Lexicon) -> bool:
    """An ordinary word that is also a family name ends the name only where nothing speaks against it."""
    return place + 1 == len(words) or bool(lex.flags(words[place + 1][2]) & (STOP | ORDINARY))


def _plausible(words: list[tuple[int, int, str]], lex: Lexicon, alone: bool) -> bool:
    """An unlisted word after a weak announcement: no typo of an adjective, and nothing but a name follows."""
    word = words[0][2]
    bits = lex.flags(word)
    if len(word) < 3 or bits & ORDINARY or (_ADJECTIVE.search(word.lower()) and not _titled(word)):
        return False
    if len(words) > 1:
        follow = lex.flags(words[1][2])
        if not follow & ORDINARY and (follow & NAME or not follow & KNOWN or _titled(words[1][2])):
            return True
        return alone and not bits & KNOWN and words[1][2].lower() in _AFTER
    return not bits & KNOWN and (_titled(word) or alone)


def announced(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Names after words that announce one."""
    text = facts.text
    for pattern, strong in ((_STRONG, True), (_WEAK, False)):
        for match in pattern.finditer(text):
            if match[0].strip().lower() == "im" and not _begins_with_given(text, match.end(), lex):
                continue  # "im" is German for "in the"
            end = take(text, match.end(), lex, strong, alone=not strong and _KIN.match(match[0]) is not None)
            if end:
                yield Span(match.end(), end, "PERSON", 0.9)
    for match in _SIGNED.finditer(text):
        end = take(text, match.end(), lex, strong=False, alone=True)
        if end and re.match(r"[\s.,!]*(?:\n|\Z|[^\w\s])", text[end:]):
            yield Span(match.end(), end, "PERSON", 0.9)
    for match in _TITLE.finditer(text):
        yield from _after_title(text, match, lex)
    if ":" in text:
        for match in _SPEAKER.finditer(text):
            if take(text, match.start("n"), lex, strong=False) == match.end("n"):
                yield Span(match.start("n"), match.end("n"), "PERSON", 0.6)
    if "\n" in text and facts.digits >= 3:
        yield from _heads(text, lex)


def _heads(text: str, lex: Lexicon) -> Iterator[Span]:
    """Names above an address: the first line of the text or of a quoted block, or a line that is a listed name."""
    for place, match in enumerate(_HEAD.finditer(text)):
        if place > 3:
            return
        if not _ADDRESSED.search(text, match.end()):
            return
        words = [(m.start(), m.end(), m[0]) for m in WORD.finditer(match["n"])]
        bits = [lex.flags(w) for _, _, w in words]
        if any(b & (STOP | PRODUCT) for b in bits) or _FIRM_WORD.search(match["n"]):
            continue
        listed = sum(1 for b in bits if b & NAME and not b & ORDINARY)
        rare = sum(1 for b in bits if not b & KNOWN and not b & NAME)
        if (place == 0 and listed + rare == len([w for w in words if len(w[2]) > 1])) or (
            listed >= 2 and bits[0] & FIRST
        ):
            yield Span(match.start("n"), match.end("n"), "PERSON", 0.5)


def _after_title(text: str, match: re.Match[str], lex: Lexicon) -> Iterator[Span]:
    word = WORD.match(text, match.end())
    if word is None:
        return
    bits = lex.flags(word[0])
    title_cased = match["t"][0].isupper()
    ordinary = bits & (ORDINARY | STOP)
    if ordinary and not (_titled(word[0]) and title_cased and not bits & STOP):
        following = WORD.match(text, word.end() + 1)
        follow = lex.flags(following[0]) if following else ORDINARY
        if bits & STOP or not bits & NAME or follow & ORDINARY or not follow & NAME:
            return
    if (
        not ordinary
        and not _titled(word[0])
        and not bits & NAME
        and match["t"].lower() in ("miss", "m.", "sir", "madam", "sr", "sig", "pan", "lt", "captain", "doctor")
    ):
        return
    end = take(text, match.end(), lex, strong=True)
    if end is None and _titled(word[0]):
        end = word.end()
    if end:
        yield Span(match.end(), end, "PERSON", 0.85)


def might_announce(facts: Facts) -> bool:
    """Every announcement begins with one of these words; the test is a superset."""
    folded = facts.folded
    return (
        any(word in folded for word in _TRIGGERS)
        or ":" in facts.text
        or ("\n" in facts.text and facts.digits >= 3)
        or _ANY.search(facts.text) is not None
    )


_ANY = re.compile(
    "|".join(p.pattern for p in (_WEAK, _SIGNED)).replace("?P<t>", "?:") + "|" + _TITLE.pattern, re.IGNORECASE
)
