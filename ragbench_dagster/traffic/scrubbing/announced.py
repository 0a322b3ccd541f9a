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
    PRODUCT,
    STOP,
    Lexicon,
)
from ragbench_dagster.traffic.scrubbing.spans import Span
from ragbench_dagster.traffic.scrubbing.words import WORD, titled


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


def _begins_with_given(text: str, at: int, lex: Lexicon) -> bool:
    word = WORD.match(text, at)
    return word is not None and bool(lex.flags(word[0]) & FIRST)


def _is_given(word: str, first: str, lex: Lexicon) -> bool:
    bits = lex.flags(word)
    return bool(bits & FIRST and not bits & (ORDINARY | STOP)) or bool(
        titled(word) and titled(first) and not bits & ORDINARY and bits & NAME
    )


def _prefix(words: list[tuple[int, int, str]], lex: Lexicon, strong: bool, alone: bool) -> int:
    """How many of `words` are the name."""
    if not words:
        return 0
    kept = 0
    evidence = strong
    first_titled = titled(words[0][2])
    for place, (_, _, word) in enumerate(words):
        bits = lex.flags(word)
        lower = word.lower()
        if bits & STOP or (bits & PRODUCT and not strong):
            break
        particle = lower in say.PARTICLES
        initial = len(word) == 1
        if particle or initial:
            if place == 0 and initial and not strong:
                break
            if place == 0 and particle and not (len(words) > 1 and lex.flags(words[1][2]) & NAME):
                break
            rest = words[place + 1 :]
            if not rest or (lex.flags(rest[0][2]) & (STOP | ORDINARY) and not (first_titled and titled(rest[0][2]))):
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
                elif (not listed and not _plausible(words, lex, alone)) or (
                    bits & FOREIGN and not bits & FIRST and not first_titled
                ):
                    break
                evidence = True
            elif not (listed or unknown or first_titled):
                break
            kept = 1
            continue
        ordinary = bits & ORDINARY
        if (
            ordinary
            and not (first_titled and titled(word))
            and not (bits & LAST and place == 1 and _closing(words, place, lex))
        ):
            break
        if not (bits & NAME or not bits & KNOWN or (first_titled and titled(word))):
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
            end = take(text, match.end(), lex, strong, alone=not strong and say.KIN.match(match[0]) is not None)
            if end:
                yield Span(match.end(), end, "PERSON", 0.9)
    for match in say.SIGNED.finditer(text):
        end = take(text, match.end(), lex, strong=False, alone=True)
        if end and re.match(r"[\s.,!]*(?:\n|\Z|[^\w\s])", text[end:]):
            yield Span(match.end(), end, "PERSON", 0.9)
    for match in say.TITLE.finditer(text):
        yield from _after_title(text, match, lex)
    if ":" in text:
        for match in say.SPEAKER.finditer(text):
            if take(text, match.start("n"), lex, strong=False) == match.end("n"):
                yield Span(match.start("n"), match.end("n"), "PERSON", 0.6)
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
        yield Span(match.end(), end, "PERSON", 0.85)


def might_announce(facts: Facts) -> bool:
    """Every announcement begins with one of these words; the test is a superset."""
    folded = facts.folded
    return (
        any(word in folded for word in say.TRIGGERS)
        or ":" in facts.text
        or ("\n" in facts.text and facts.digits >= 3)
        or say.ANY.search(facts.text) is not None
    )
