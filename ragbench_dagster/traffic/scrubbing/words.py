"""Words with their classes, and the shapes of words that name rules share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.lexicon import FOREIGN, KNOWN, NAME, Lexicon

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
