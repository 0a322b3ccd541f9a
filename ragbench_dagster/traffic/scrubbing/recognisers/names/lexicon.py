"""Which words are names, ordinary words, places or products. Lists come from packages, read once a process.

Names: the US census lists (package `names`) and Faker's lists of all locales. Ordinary words: words of Webster's
second (`english-words`) and their inflections that are frequent enough (`wordfreq`): without the floor, rare
dictionary words would shadow names; without the dictionary, frequent names would count as words.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path

FIRST, LAST, ORDINARY, KNOWN, PRODUCT, PLACE, STOP, COMMON, FOREIGN, DICTIONARY = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512
NAME = FIRST | LAST

_LATIN = str.maketrans({"ø": "o", "ł": "l", "ß": "ss", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
_SUFFIXES = (
    ("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("ed", "e"), ("d", ""), ("ied", "y"), ("ing", ""), ("ing", "e"),
    ("er", ""), ("er", "e"), ("ers", ""), ("ers", "e"), ("est", ""), ("ly", ""), ("'s", ""), ("able", ""), ("ness", ""),
)  # fmt: skip
_CONTRACTED = re.compile(r"(?:n't|'(?:s|ve|ll|d|re|m))\Z")
# British spellings by their American ones, and what stands before a word of its own in learned compounds.
_BRITISH = (("tre", "ter"), ("our", "or"), ("ours", "ors"), ("ise", "ize"), ("ises", "izes"), ("ised", "ized"), ("isation", "ization"), ("yse", "yze"), ("ogue", "og"), ("ence", "ense"), ("aemia", "emia"))  # fmt: skip
_PREFIXES = (
    "anti", "astro", "audio", "auto", "bio", "cardio", "co", "counter", "cyber", "de", "dis", "eco", "electro", "geo", "hydro", "hyper", "immuno",
    "infra", "inter", "macro", "mega", "meta", "micro", "mis", "mono", "multi", "nano", "neuro", "non", "over", "para", "photo", "poly", "post",
    "pre", "pro", "pseudo", "psycho", "quasi", "radio", "re", "semi", "sub", "super", "tele", "thermo", "trans", "ultra", "un", "under", "video",
)  # fmt: skip
_LEARNED = re.compile(
    r"(?:nummer|kennzeichen|ausweis|quine|virus|viruses|viral|cycline|mycin|acae|aceae|acea|itis|osis|oses|aemia|emia|ology|ologies|ographic|iasis|ectomy|navir|vir|statin|cillin"
    r"|phylline|zoate|amide|oxide|idine|azole|olol|sartan|coccus|bacter|bacteria|bacterium)\Z"
)
# Questions come in these too: their frequent words are known, and the most frequent are ordinary words.
_LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "sv", "da", "pl")
_FUNCTION_WORDS = 300
_COMMON_SHARE = 0.02  # percent of the men or women of the census
_MEMO_LIMIT = 200_000


def key_of(word: str) -> str:
    """Caseless and without accents: how words are looked up."""
    if word.isascii():
        return word.lower()
    flat = unicodedata.normalize("NFD", word.casefold().translate(_LATIN))
    return "".join(ch for ch in flat if not unicodedata.combining(ch)).translate(_LATIN)


def word_list(name: str) -> frozenset[str]:
    """A list of the `lists` folder beside this module: one word or phrase a line, # starts a comment."""
    text = resources.files(__package__).joinpath("lists", f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.split("#")[0].strip() for line in text.split("\n"))
    return frozenset(key_of(line) for line in lines if line)


class Lexicon:
    """Answers `flags(word)` from all lists; the answers are remembered."""

    def __init__(self) -> None:
        self._first, self._last, self._common = _names()
        self._ordinary, self._known, self._foreign = _words()
        self._ordinary = (self._ordinary - self._common_names() - word_list("given")) | word_list("words")
        self._product, self._place, self._stop = word_list("products"), word_list("places"), word_list("stop")
        self._dictionary, self._frequent = _dictionary(), _frequent()
        self._memo: dict[str, int] = {}

    def _common_names(self) -> frozenset[str]:
        """Common given names that only another language's word list would make ordinary words."""
        english = _english()
        return frozenset(name for name in self._common if name not in english)

    def flags(self, word: str) -> int:
        """The classes of `word` as bits; a hyphenated or apostrophed word has those of its parts too."""
        found = self._memo.get(word)
        if found is None:
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            found = self._memo[word] = self._classify(key_of(word))
        return found

    def _classify(self, key: str) -> int:
        key = _CONTRACTED.sub("", key)
        bits = self._single(key)
        if ("-" in key or "'" in key) and not bits & NAME:
            parts = [p for p in re.split(r"[-']", key) if p]
            each = [self._single(p) for p in parts if len(p) > 1]
            if each and (
                (each[0] & FIRST and not each[0] & ORDINARY) or all(b & NAME and not b & ORDINARY for b in each)
            ):
                bits |= NAME
            if each and all(b & ORDINARY for b in each):
                bits |= ORDINARY | KNOWN
        return bits

    def _single(self, key: str) -> int:
        bits = 0
        if key in self._first:
            bits |= FIRST
        if key in self._common:
            bits |= COMMON
        if key in self._last:
            bits |= LAST
        if key in self._ordinary:
            bits |= ORDINARY | KNOWN
        if key in self._known:
            bits |= KNOWN
        if bits & NAME:
            if key in self._dictionary and key not in self._frequent:
                bits |= DICTIONARY
        elif self._is_word(key):
            bits |= KNOWN | DICTIONARY
        if key in self._foreign:
            bits |= FOREIGN
        if key in self._product:
            bits |= PRODUCT
        if key in self._place:
            bits |= PLACE
        if key in self._stop:
            bits |= STOP | ORDINARY
        return bits

    def _is_word(self, key: str) -> bool:
        """A word of the dictionary, an inflection, a British spelling, a learned word or a compound of such words."""
        dictionary = self._dictionary
        if key in dictionary:
            return True
        if not 5 <= len(key) <= _LONGEST or not key.isascii():
            return False
        if _stem_in(key, dictionary) or (len(key) > 7 and _LEARNED.search(key)):
            return True
        if any(key.endswith(end) and key[: -len(end)] + other in dictionary for end, other in _BRITISH):
            return True
        if any(key.startswith(p) and len(key) - len(p) > 4 and key[len(p) :] in self._ordinary for p in _PREFIXES):
            return True
        # no compound is longer, and every cut of a word of 100 kB would take minutes
        return 6 < len(key) <= _LONGEST and any(
            self._half(key[:at]) and self._half(key[at:]) for at in range(3, len(key) - 3)
        )

    def _half(self, part: str) -> bool:
        return part in self._ordinary and (part in self._dictionary or len(part) > 4 or part in _SHORT)


_LONGEST = 60  # letters of a word
_SHORT = frozenset({"aus", "info", "tech", "med", "app"})  # first halves of made-up names of services


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The one lexicon of this process."""
    return Lexicon()


def _names() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """(given names, family names, given names of at least _COMMON_SHARE percent of the census)."""
    import names

    first: set[str] = set()
    last: set[str] = set()
    common: set[str] = set()
    folder = Path(names.__file__).parent
    for part, kept in (("male.first", first), ("female.first", first), ("all.last", last)):
        for line in (folder / f"dist.{part}").read_text(encoding="ascii").split("\n"):
            if line.strip():
                name, share = line.split()[:2]
                kept.add(name.lower())
                if kept is first and float(share) >= _COMMON_SHARE:
                    common.add(name.lower())
    package = importlib.import_module("faker.providers.person")
    for module in pkgutil.iter_modules(package.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for attribute, values in vars(provider).items():
            into = first if attribute.startswith("first_name") else last if attribute.startswith("last_name") else None
            if into is None or isinstance(values, str) or not hasattr(values, "__iter__"):
                continue
            for value in values:
                if isinstance(value, str):
                    into.update(key_of(p) for p in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", value) if len(p) > 1)
    return frozenset(first), frozenset(last), frozenset(common)


@lru_cache(maxsize=1)
def _frequent() -> frozenset[str]:
    """The frequent words of English, names among them."""
    import wordfreq

    return frozenset(wordfreq.get_frequency_dict("en", wordlist="small"))


@lru_cache(maxsize=1)
def _dictionary() -> frozenset[str]:
    """Webster's second without its proper names, however rare the word."""
    from english_words import get_english_words_set

    return frozenset(w for w in get_english_words_set(["web2"]) if w.islower())


@lru_cache(maxsize=1)
def _english() -> frozenset[str]:
    """English words that are frequent: the dictionary's, and inflections of them."""
    dictionary = _dictionary()
    return frozenset(w for w in _frequent() if w in dictionary or _stem_in(w, dictionary))


def _words() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """(ordinary words, words that an English list knows, words that are frequent in another language)."""
    import wordfreq

    ordinary = set(_english())
    known = set(_dictionary())
    known.update(_frequent())
    other: set[str] = set()
    for language in _LANGUAGES:
        foreign = wordfreq.get_frequency_dict(language, wordlist="small")
        other.update(key_of(word) for word in foreign)
        often = sorted(foreign, key=lambda w: (-foreign[w], w))[:_FUNCTION_WORDS]
        ordinary.update(key_of(word) for word in often if len(word) > 1)
    return frozenset(ordinary), frozenset(known), frozenset(other)


def _stem_in(word: str, dictionary: frozenset[str]) -> bool:
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 2:
            stem = word[: len(word) - len(suffix)]
            if stem + instead in dictionary:
                return True
            if (
                len(stem) > 3
                and stem[-1] == stem[-2]
                and stem[:-1] in dictionary
                and suffix in ("ed", "ing", "er", "ers")
            ):
                return True
    return False


# Words with their classes, and the shapes of words that name rules share.

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
Words = list[tuple[int, int, str, int]]  # start, end, word, flags

FIRM = re.compile(
    r"[ ,]*(?:&|and\s+Sons|Inc|Ltd|LLC|LLP|Corp|Co|GmbH|AG|PLC|Group|Partners|Associates|Bros|Brothers|Holdings|Bank|Hotel|Steakhouse|Street|University|College|Hospital|App)\b"
)
# Endings of family names; Nordic, Slavic, Baltic, Armenian, Georgian, German.
FORM = re.compile(
    r"(?:[^s]sson|ss?en|[ds]ottir|nen|berg|str[oö]m|qvist|lund|ov|ova|ev|eva|ovi[cć]|evi[cć]|i[cć]|sk[iy]|ska|enko|chuk|shvili|dze|yan|mann|stein|oglu)(?:'s)?\Z"
)
# April, May, June and Wednesday are people only with a family name beside them.
CALENDAR = frozenset(
    "january february march april may june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter easter christmas".split()
)
NAME_CASE = re.compile(r"(?:Mc|Mac|De|Di|Da|La|Le|Van|O'|D')?[^\W\d_][^\WA-ZÀ-ÖØ-Þ\d_]+(?:[-'][^\W\d_]+)*")


def titled(word: str) -> bool:
    """Begins with a capital and is not all capitals, a possessive aside."""
    if word[-2:] in ("'s", "’s"):
        word = word[:-2]
    return len(word) > 1 and word[0].isupper() and not word.isupper()


def stem(word: tuple[int, int, str, int]) -> int:
    """Where the word ends without a possessive."""
    return word[1] - 2 if word[2].endswith(("'s", "’s")) else word[1]


def classified(text: str, lex: Lexicon) -> Iterator[tuple[str, int]]:
    """The words of a text with their flags."""
    flags = lex.flags
    return ((word, flags(word)) for word in WORD.findall(text))


def is_foreign(words: Words) -> bool:
    """A third of the words are another language's: an English model and English rules say little here."""
    foreign = sum(1 for w in words if w[3] & FOREIGN and not w[3] & KNOWN and not (w[3] & NAME and w[2][0].isupper()))
    return foreign > 0 and foreign * 4 >= len(words)
