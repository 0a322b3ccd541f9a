"""Names that a person announces, in any case and with accents: "my name is ...", "regards, ...", "mr ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing import announce_patterns as say
from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.lexicon import (
    FIRST,
    FOREIGN,
    KNOWN,
    LAST,
    NAME,
    ORDINARY,
    PLACE,
    PRODUCT,
    STOP,
    Lexicon,
)
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span
from ragbench_dagster.traffic.scrubbing.words import FORM, WORD, titled

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
        gap = say.GAP.match(text, match.end())
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
        if word.lower() in say.PARTICLES or len(word) == 1:
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
    return rest[0][2].lower() in say.PARTICLES or not bits & (STOP | ORDINARY) or _capitals(words, place + 1)


def _named(word: str, bits: int) -> bool:
    return bool(bits & NAME) or word.lower() in say.PARTICLES


def _capitals(words: Tokens, place: int) -> bool:
    """Capitalised as the first word is; a particle may stand first in small letters."""
    first = words[0][2]
    return titled(words[place][2]) and (titled(first) or first.lower() in say.PARTICLES)


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
    if len(word) < 3 or bits & ORDINARY or (say.ADJECTIVE.search(word.lower()) and not titled(word)):
        return False
    if len(words) > 1:
        follow = lex.flags(words[1][2])
        if not follow & ORDINARY and (follow & NAME or not follow & KNOWN or titled(words[1][2])):
            return True
        return alone and not bits & KNOWN and words[1][2].lower() in say.AFTER
    return not bits & KNOWN and (titled(word) or alone)


def announced(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Names after words that announce one."""
    text = facts.text
    for pattern, strong in ((say.STRONG, True), (say.WEAK, False)):
        for match in pattern.finditer(text):
            if match[0].strip().lower() == "im" and not _begins_with_given(text, match.end(), lex):
                continue  # "im" is German for "in the"
            kin = say.KIN.match(match[0]) is not None
            end = take(text, match.end(), lex, strong, alone=not strong and kin)
            if end:
                sure = strong or kin or _listed(text[match.end() : end], lex)
                said = Evidence.ANNOUNCED if sure else Evidence.BESIDE
                yield Span(match.end(), end, "PERSON", 0.9, said)
    for match in say.SIGNED.finditer(text):
        end = take(text, match.end(), lex, strong=False, alone=True)
        if end and say.AFTER_SIGNED.match(text, end):
            yield Span(match.end(), end, "PERSON", 0.9, Evidence.ANNOUNCED)
    for match in say.TITLE.finditer(text):
        yield from _after_title(text, match, lex)
    if ":" in text:
        for match in say.SPEAKER.finditer(text):
            speaks = _listed_word(match["n"], lex) or say.QUOTED.match(text, match.end())
            if speaks and take(text, match.start("n"), lex, strong=False) == match.end("n"):
                yield Span(match.start("n"), match.end("n"), "PERSON", 0.6, Evidence.FORM)
    if "\n" in text and facts.digits >= 3:
        yield from _heads(text, lex)


def _heads(text: str, lex: Lexicon) -> Iterator[Span]:
    """Names above an address: the first line of the text or of a quoted block, or a line that is a listed name."""
    for place, match in enumerate(say.HEAD.finditer(text)):
        if place > 3:
            return
        if not say.ADDRESSED.search(text, match.end()):
            return
        words = [(m.start(), m.end(), m[0]) for m in WORD.finditer(match["n"])]
        bits = [lex.flags(w) for _, _, w in words]
        if any(b & (STOP | PRODUCT) for b in bits) or say.FIRM_WORD.search(match["n"]):
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
    title_cased = match["t"][0].isupper()
    ordinary = bits & (ORDINARY | STOP) if word[0].lower() not in say.PARTICLES else 0
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
        any(word in folded for word in say.TRIGGERS)
        or ":" in facts.text
        or ("\n" in facts.text and facts.digits >= 3)
        or say.ANY.search(facts.text) is not None
    )
