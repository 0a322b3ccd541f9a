"""Names that a person announces, in any case and with accents: "my name is ...", "regards, ...", "mr ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.prefilter import Caseless, Facts, holds
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import (
    FIRST,
    FOREIGN,
    FORM,
    KNOWN,
    LAST,
    NAME,
    ORDINARY,
    PLACE,
    PRODUCT,
    STOP,
    WORD,
    Lexicon,
    titled,
)
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

Tokens = list[tuple[int, int, str]]  # start, end, word


def take(text: str, at: int, lex: Lexicon, strong: bool, alone: bool = False) -> int | None:
    """End of the name that begins at `at`, or None.

    `strong`: the words before leave no doubt. `alone`: a single unlisted word is enough.
    """
    limit = 7
    words: Tokens = []
    end = at
    while len(words) < limit:
        match = WORD.match(text, end)
        if match is None:
            break
        words.append((match.start(), match.end(), match[0]))
        gap = GAP.match(text, match.end())
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


def _listed(name: str, lex: Lexicon) -> bool:
    """A listed name, or several words: more than a weak announcement alone."""
    return len(name.split()) > 1 or bool(lex.flags(name) & NAME)


def _listed_word(label: str, lex: Lexicon) -> bool:
    """One of the words is a name and no ordinary one: "luis:" speaks, "Traceback:" does not."""
    bits = [lex.flags(word) for word in label.split()]
    return any(b & NAME and not b & (PRODUCT | PLACE) for b in bits) and not any(b & (ORDINARY | STOP) for b in bits)


def _begins_with_given(text: str, at: int, lex: Lexicon) -> bool:
    word = WORD.match(text, at)
    return word is not None and bool(lex.flags(word[0]) & FIRST)


def _is_given(word: str, first: str, lex: Lexicon) -> bool:
    bits = lex.flags(word)
    return bool(bits & FIRST and not bits & (ORDINARY | STOP)) or bool(
        titled(word) and titled(first) and not bits & ORDINARY and bits & NAME
    )


def _prefix(words: Tokens, lex: Lexicon, strong: bool, alone: bool) -> int:
    """How many of `words` are the name."""
    kept = 0
    for place, (_, _, word) in enumerate(words):
        bits = lex.flags(word)
        if (bits & STOP and not (strong and _last_name_part(words, place, kept))) or (
            bits & PRODUCT and not strong and not _family_follows(words, place, lex)
        ):
            break
        if word.lower() in PARTICLES or len(word) == 1:
            if not _joins(words, place, lex, strong):
                initial = len(word) == 1 and place and word.isupper() and titled(words[0][2])
                return place + 1 if initial and kept == place else kept
        elif not (_begins(words, lex, strong, alone) if place == 0 else _continues(words, place, lex)):
            break
        else:
            kept = place + 1
    return kept


def _last_name_part(words: Tokens, place: int, kept: int) -> bool:
    """A capitalised "An" behind a capitalised name, before a small word or the end: "Nguyễn Văn An and ..."."""
    here = kept == place > 0 and titled(words[place][2]) and titled(words[0][2])
    return here and (place + 1 == len(words) or words[place + 1][2].islower())


def _joins(words: Tokens, place: int, lex: Lexicon, strong: bool) -> bool:
    """A particle ("van") or an initial is part of the name where a name follows it."""
    word, rest = words[place][2], words[place + 1 :]
    if not rest:
        return False
    bits = lex.flags(rest[0][2])
    if place == 0 and (not _named(rest[0][2], bits) if len(word) > 1 else not strong):
        return False
    return rest[0][2].lower() in PARTICLES or not bits & (STOP | ORDINARY) or _capitals(words, place + 1)


def _named(word: str, bits: int) -> bool:
    return bool(bits & NAME) or word.lower() in PARTICLES


def _capitals(words: Tokens, place: int) -> bool:
    """Capitalised as the first word is; a particle may stand first in small letters."""
    first = words[0][2]
    return titled(words[place][2]) and (titled(first) or first.lower() in PARTICLES)


def _begins(words: Tokens, lex: Lexicon, strong: bool, alone: bool) -> bool:
    """The first word is a name: listed or unknown after strong words, with evidence after weak ones."""
    word = words[0][2]
    bits = lex.flags(word)
    if bits & ORDINARY and not bits & FIRST:
        return strong and titled(word) and bool(bits & NAME)
    listed = bits & FIRST or (bits & LAST and not bits & ORDINARY)
    if strong:
        return bool(listed or not bits & KNOWN or titled(word))
    if bits & ORDINARY:  # "i am will", "this is grace": needs a family name after it
        return _family_follows(words, 0, lex)
    if bits & FOREIGN and not bits & FIRST and not titled(word):  # "im monat" is German
        return _family_follows(words, 0, lex)
    return bool(listed) or _plausible(words, lex, alone)


def _continues(words: Tokens, place: int, lex: Lexicon) -> bool:
    """A further word of the name: listed, unknown, or capitalised like the first."""
    word = words[place][2]
    bits = lex.flags(word)
    capitals = _capitals(words, place)
    if bits & ORDINARY and not capitals:
        return bool(bits & LAST) and place == 1 and _closing(words, place, lex)
    return bool(bits & NAME or not bits & KNOWN or capitals)


def _family_follows(words: Tokens, place: int, lex: Lexicon) -> bool:
    """The next word is a family name, or shaped like one, and no ordinary word."""
    if place + 1 >= len(words):
        return False
    word = words[place + 1][2]
    bits = lex.flags(word)
    shaped = FORM.search(word.lower()) or (titled(word) and titled(words[place][2]) and not bits & KNOWN)
    return not bits & (ORDINARY | PRODUCT | STOP) and bool(bits & LAST or shaped)


def _closing(words: Tokens, place: int, lex: Lexicon) -> bool:
    """An ordinary word that is also a family name ends the name only where nothing speaks against it."""
    return place + 1 == len(words) or bool(lex.flags(words[place + 1][2]) & (STOP | ORDINARY))


def _plausible(words: Tokens, lex: Lexicon, alone: bool) -> bool:
    """An unlisted word after a weak announcement: no typo of an adjective, and nothing but a name follows."""
    word = words[0][2]
    bits = lex.flags(word)
    if len(word) < 3 or bits & ORDINARY or (ADJECTIVE.search(word.lower()) and not titled(word)):
        return False
    if len(words) > 1:
        follow = lex.flags(words[1][2])
        if not follow & ORDINARY and (follow & NAME or not follow & KNOWN or titled(words[1][2])):
            return True
        return alone and not bits & KNOWN and words[1][2].lower() in AFTER
    return not bits & KNOWN and (titled(word) or alone)


def announced(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Names after words that announce one."""
    text = facts.text
    for pattern, strong in ((STRONG, True), (WEAK, False)):
        for match in pattern.finditer(facts) if not strong or facts.holds(TRIGGERS) else ():
            if match[0].strip().lower() == "im" and not _begins_with_given(text, match.end(), lex):
                continue  # "im" is German for "in the"
            kin = KIN.match(match[0]) is not None
            end = take(text, match.end(), lex, strong, alone=not strong and kin)
            if end:
                sure = strong or kin or _listed(text[match.end() : end], lex)
                said = Evidence.ANNOUNCED if sure else Evidence.BESIDE
                yield Span(match.end(), end, "PERSON", 0.9, said)
    for match in SIGNED.finditer(facts) if facts.has(SIGNED_WORDS) else ():
        end = take(text, match.end(), lex, strong=False, alone=True)
        if end and AFTER_SIGNED.match(text, end):
            yield Span(match.end(), end, "PERSON", 0.9, Evidence.ANNOUNCED)
    for match in TITLE.finditer(facts) if facts.has(TITLE_WORDS) else ():
        yield from _after_title(text, match, lex)
    if ":" in text:
        for match in SPEAKER.finditer(text):
            speaks = _listed_word(match["n"], lex) or QUOTED.match(text, match.end())
            if speaks and take(text, match.start("n"), lex, strong=False) == match.end("n"):
                yield Span(match.start("n"), match.end("n"), "PERSON", 0.6, Evidence.FORM)
    if "\n" in text and facts.digits >= 3:
        yield from _heads(text, lex)


def _heads(text: str, lex: Lexicon) -> Iterator[Span]:
    """Names above an address: the first line of the text or of a quoted block, or a line that is a listed name."""
    for place, match in enumerate(HEAD.finditer(text)):
        if place > 3:
            return
        if not ADDRESSED.search(text, match.end()):
            return
        words = [(m.start(), m.end(), m[0]) for m in WORD.finditer(match["n"])]
        bits = [lex.flags(w) for _, _, w in words]
        if any(b & (STOP | PRODUCT) for b in bits) or FIRM_WORD.search(match["n"]):
            continue
        listed = sum(1 for b in bits if b & NAME and not b & ORDINARY)
        rare = sum(1 for b in bits if not b & KNOWN and not b & NAME)
        shown = listed > 0 or titled(words[0][2])
        if (place == 0 and shown and listed + rare == len([w for w in words if len(w[2]) > 1])) or (
            listed >= 2 and bits[0] & FIRST
        ):
            yield Span(match.start("n"), match.end("n"), "PERSON", 0.5, Evidence.FORM)


def _after_title(text: str, match: re.Match[str], lex: Lexicon) -> Iterator[Span]:
    word = WORD.match(text, match.end())
    if word is None:
        return
    bits = lex.flags(word[0])
    title_cased = text[match.start("t")].isupper()
    ordinary = bits & (ORDINARY | STOP) if word[0].lower() not in PARTICLES else 0
    if ordinary and not (titled(word[0]) and title_cased and not bits & STOP):
        following = WORD.match(text, word.end() + 1)
        follow = lex.flags(following[0]) if following else ORDINARY
        if bits & STOP or not bits & NAME or follow & ORDINARY or not follow & NAME:
            return
    if (
        not ordinary
        and not titled(word[0])
        and not bits & NAME
        and match["t"].lower() in ("miss", "m.", "sir", "madam", "sr", "sig", "pan", "lt", "captain", "doctor")
    ):
        return
    end = take(text, match.end(), lex, strong=True)
    if end is None and titled(word[0]):
        end = word.end()
    if end:
        yield Span(match.end(), end, "PERSON", 0.85, Evidence.ANNOUNCED)


def might_announce(facts: Facts) -> bool:
    """Every announcement begins with one of these words; the test is a superset."""
    folded = facts.folded
    return (
        holds(folded, TRIGGERS)
        or ":" in facts.text
        or ("\n" in facts.text and facts.digits >= 3)
        or facts.has(SIGNED_WORDS)
        or facts.has(TITLE_WORDS)
        or any(True for _ in WEAK.finditer(facts))
    )


# The words that announce a name, in several languages. All repetitions are bounded.

GAP = re.compile(r"[ \t]{1,3}(?=[^\W\d_])|\.[ \t]{0,2}(?=[^\W\d_])")
PARTICLES = frozenset(
    "van von der den de del della di da dos das du la le el al bin binti ibn ben abu ten ter te zu zum af av san st mac mc o d".split()
)

# What follows is a name, unless it is an ordinary word that is no name.
STRONG = Caseless(
    r"(?:\b(?:my|his|her|their|our|the|full|legal|first|last|middle|maiden|family|given|sur|user|nick|account|customer|client|patient"
    r"|contact|holder'?s?|owner'?s?|husband'?s?|wife'?s?|son'?s?|daughter'?s?|boss'?s?|friend'?s?|partner'?s?|kid'?s?|child'?s?|[a-z]{2,15}'s)?"
    r"\s?names?(?:'s|\sis(?:\snow)?|\swas|\sare|\sshould\sbe|\s?:|\s?=)|\bcall\sme|\bthey\scall\sme|\bi\sgo\sby|\b(?:my|his|her|our|their)\snames(?=\s[^\W\d_])|\bname's"
    r"|\bi\sam\scalled|\bi\\?'?m\scalled|\bunder\s(?:the\s)?names?(?:\sof)?|\bin\sthe\snames?\sof|\bnamed|\bsigned(?:\sby)?"
    r"|\bme\sllamo|\bmi\snombre\ses|\bse\sllama|\bje\sm'?\s?appelle|\bmon\snom\sest|\bil\ss'appelle|\belle\ss'appelle|\bich\shei(?:ß|ss)e"
    r"|\bmein\sname\sist|\bmi\schiamo|\bil\smio\snome\s[eè]|\bmeu\snome\s[eé]|\b(?:eu\s)?me\schamo|\bmijn\snaam\sis|\bik\sheet"
    r"|\bjag\sheter|\bmitt\snamn\s[aä]r|\bjeg\shedder|\bjeg\sheter|\bmit\snavn\ser|\bnazywam\ssi[eę]|\bmam\sna\simi[eę]|\bjmenuji\sse"
    r"|\bnimeni\son|\bminun\snimeni\son|\ba\snevem|\bad[ıi]m|\bmenya\szovut)[\s:,\"']{0,4}",
)
# What follows may be a name: it must be listed, or look like one.
WEAK = Caseless(
    r"(?:\b(?:known\sas|i\sam|i\\?'?m|this\sis|it'?s|it\sis|here\sis|ich\sbin|je\ssuis|c'est|yo\ssoy|soy|sono|io\ssono|eu\ssou|sou|ik\sben|jag\s[aä]r|jeg\ser"
    r"|dear|hi|hello|hey|hallo|hola|bonjour|ciao|good\s(?:morning|afternoon|evening)|attn:?|attention:?|from:|to:|cc:|user:|customer:|client:|agent:|patient:|employee:"
    r"|signed:?|contact:?|on\sbehalf\sof|(?:writing|calling|asking|emailing|enquiring|inquiring)\sfor|greetings\sfrom|ask\sfor|speak\s(?:to|with)|talk\sto|met\swith|spoke\s(?:to|with)|follow\sup\swith"
    r"|my\s(?:wife|husband|spouse|partner|son|daughter|kid|child|brother|sister|mother|mom|mum|father|dad|friend|boss|manager|colleague|coworker|doctor"
    r"|girlfriend|boyfriend|fianc[eé]e?|assistant|landlord|tenant|teacher|uncle|aunt|cousin|niece|nephew|grandmother|grandfather|supervisor|lawyer|neighbou?r)(?:\sis|,)?"
    r"))[\s:,\"']{1,3}",
)
SIGNED = Caseless(
    r"(?:\b(?:(?:kind|best|warm|many|with)\s)?regards|\bsincerely(?:\syours)?|\byours\s(?:truly|sincerely|faithfully)|\bcheers|\bthanks(?:\sa\slot|\sin\sadvance|\sso\smuch|\sagain)?"
    r"|\bthank\syou(?:\svery\smuch|\sin\sadvance|\sso\smuch)?|\bthx|\brespectfully|\bbest(?:\swishes)?|\bsaludos|\bcordialement|\bmfg|\bgr(?:ü|ue)(?:ß|ss)e?n?|\bgroeten|\bhilsen|\bcordiali\ssaluti)"
    r"\s{0,2}[,.!:;–-]*\s{1,3}",
)
# What may stand after the name of one who signs: nothing, or where to reach them.
AFTER_SIGNED = re.compile(
    r"[\s.,!]*(?:\n|\Z|[^\w\s]|\d|(?:tel|phone|mobile|cell|e-?mail|mail|fax|from|at|call|contact)\b)", re.IGNORECASE
)
TITLE = Caseless(
    r"\b(?P<t>mr|mrs|ms|miss|mister|dr|prof|professor|doctor|sir|madam|mme|mlle|monsieur|madame|m\.|herr|frau|se[nñ]ora?|sr|sra|signora?|sig|dhr|mevr|pan[ií]?|fru|rev|reverend|capt|captain|sgt|lt)\b\.?\s{1,2}",
)
KIN = re.compile(r"my\s", re.IGNORECASE)
# One who speaks in a transcript: `luis: "..."` at the beginning of a line.
SPEAKER = re.compile(
    r"(?:^|(?<=[\n>]))[ \t]{0,3}(?P<n>[^\W\d_]{2,30}(?:[ \t][^\W\d_]{1,30}){0,2})[ \t]?:(?=[ \t]*[\\\"“'‘A-Z])",
    re.MULTILINE,
)
QUOTED = re.compile(r"[ \t]*\\?[\"“'‘]")
# Alone on its line above an address: `> Esat Jeknić`.
HEAD = re.compile(
    r"^[ \t>?*•-]{0,8}(?P<n>[^\W\d_]{2,30}(?:[ \t]+(?:[^\W\d_]\.?|[^\W\d_][^\W\d_'’.-]{1,30})){1,3})[ \t]*$",
    re.MULTILINE,
)
ADDRESSED = re.compile(r"(?i)\b(?:apt|suite|box|unit|phone|mobile|e-?mail|address|fax)\b|\d{4,}")
FIRM_WORD = re.compile(
    r"(?i)\b(?:inc|ltd|llc|corp|group|partners|associates|agency|systems|solutions|software|research|services|consulting|technologies"
    r"|insurance|international|foundation|bank|club|data|media|labs?|network|institute|company|co)\b"
)
TRIGGERS = (
    "name", "call", "go", "named", "signed", "llam", "nombre", "appelle", "nom", "hei", "chia", "nome", "cham", "naam", "heet", "heter", "namn",
    "hedder", "navn", "nazywam", "imi", "jmenuji", "nimeni", "nevem", "adim", "zovut", "known",
)  # fmt: skip

# What follows a lone unlisted name after "my wife" or "i'm".
AFTER = frozenset(
    "is was has had can cannot can't could did does will would wants needs and who said told asked tried to from here speaking".split()
)
ADJECTIVE = re.compile(r"(?:ed|ing|ly|able|ible|ful|less|ous|ive|ish|ated|tion|ment|ness|ist|er|ers|ent|ant|ic|al)$")
# Words, folded, of which every match of SIGNED and of TITLE holds one.
SIGNED_WORDS = frozenset(
    "regards sincerely yours cheers thanks thank thx respectfully best saludos cordialement mfg groeten hilsen cordiali"
    " grüss grüsse grüssen grüssn gruess gruesse gruessen gruessn".split()
)
TITLE_WORDS = frozenset(
    "mr mrs ms miss mister dr prof professor doctor sir madam mme mlle monsieur madame m herr frau senor senora señor señora"
    " sr sra signor signora sig dhr mevr pan pani paní fru rev reverend capt captain sgt lt".split()
)
