"""Words, stems and sentences, for the built-in retriever and the embedded judge. No model, no data files.

English is stemmed lightly; other alphabetic languages are split into words and left as they are; scripts without
spaces (Han, Kana, Thai, ...) are split into single characters, so that overlap still means something.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(
    rf"<[A-Z][A-Z_]*(?:_\d+)?>"  # a placeholder of the scrubber
    rf"|[{_UNSPACED}]"
    rf"|\d+(?:[.,:]\d+)*"  # 1,000  10.5  10:30
    rf"|[^\W\d_{_UNSPACED}](?:[^\W_{_UNSPACED}]|['\u2019\-](?=[^\W\d_]))*(?:\+\+|\#)?",
    re.UNICODE,
)

# Function words, and what every question or answer says. Negations are not here: they carry the meaning.
_FUNCTION_WORDS = """
    a about above across after again against all also although am among an and any are around as at be because
    been before being below between both but by came can could did do does doing done down during each either else
    ever every few for from further get gets getting give given go goes going got had has have having he her here hers
    herself him himself his how however i if in into is it its itself just let like made make makes many may me
    might mine more most much must my myself of off on once one only onto or other our ours ourselves out over own
    per please quite rather really said same say see shall she should since so some such than that the their theirs
    them themselves then there these they this those though through to too toward towards under until up upon us use
    used using very via was we were what whatever when where whether which while who whoever whom whose why will
    with would yes yet you your yours yourself i'm i've i'd i'll you're you've you'd you'll it's that's there's
    here's what's we're we've they're he's she's let's
"""
STOPWORDS = frozenset(_FUNCTION_WORDS.split())


def fold(text: str) -> str:
    """`text` in Unicode NFKC, lower case, typographic apostrophes made plain."""
    return unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'").replace("\u2018", "'")


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """A light English stem of a lower-case word: plural, -ed, -ing, -ly and possessive endings.

    Weaker than Porter's (1980) on purpose: it must not make two meanings one.
    """
    if word.endswith(("'s", "s'")):
        word = word[:-2]
    if len(word) < 4 or not word.isascii() or word[0] in "<0123456789":
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ingly", "edly", "ing", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            base = word[: -len(ending)]
            if not re.search("[aeiouy]", base):
                break
            if ending != "ly" and len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz":
                base = base[:-1]
            word = base
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    elif word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word


def words(text: str) -> list[str]:
    """The words of `text`, folded, in order."""
    return [token.lower() for token in WORD.findall(plain_unicode(text))]


def plain_unicode(text: str) -> str:
    """`text` in NFKC with plain apostrophes; case is kept, so that placeholders can still be told."""
    return unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'")


def content_stems(text: str) -> list[str]:
    """Stems of the words of `text` that are no function words, in order, with repeats."""
    return [stem(word) for word in words(text) if word not in STOPWORDS]


_BREAK = re.compile(
    r"([.!?\u2026])[\"'\u201d)\]*]*\s+"  # may end a sentence
    r"|(?<=[\u3002\uff01\uff1f])"  # always does
    r"|\n\s*\n|\n\s*(?=[-*\u2022\u25cf]\s|\d{1,2}[.)]\s)"  # a blank line, a list item
)
_ABBREVIATIONS = frozenset(["eg", "e.g", "ie", "i.e", "etc", "vs", "dr", "mr", "mrs", "ms", "st", "approx", "fig"])
_LAST_WORD = re.compile(r"[\w.]*\Z")


def sentences(text: str) -> list[str]:
    """`text` cut into sentences and list items, trimmed; line breaks inside a sentence become spaces.

    A full stop after an initial, an abbreviation or "No" before a number ends nothing; nor does one after a short
    word before a small letter.
    """
    parts: list[str] = []
    begin = 0
    for match in _BREAK.finditer(text):
        if match[1] and not _ends(text, match):
            continue
        parts.append(text[begin : match.end()])
        begin = match.end()
    parts.append(text[begin:])
    return [flat for part in parts if (flat := " ".join(part.split()))]


def _ends(text: str, match: re.Match[str]) -> bool:
    before = _LAST_WORD.search(text, max(0, match.start() - 12), match.start())
    word = before[0] if before else ""
    after = text[match.end() : match.end() + 1]
    if match[1] == ".":
        if word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper()):
            return False
        if word.lower() == "no" and after.isdigit():
            return False
    return not after.islower() or len(word) > 2
