"""The text as recognisers see it: look-alike characters folded, invisible ones removed, offsets kept.

People paste numbers with non-breaking spaces, full-width digits and direction marks in between. Recognisers
work on the view; their spans are mapped back to the input text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cached_property

from ragbench_dagster.traffic.scrubbing.spans import Span

# Zero-width and direction marks, soft hyphen, variation selectors: they draw nothing.
_INVISIBLE = {
    0x00AD, 0x034F, 0x061C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10), 0xFEFF,
}  # fmt: skip
_DASHES = dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2212, 0xFE58, 0xFE63, 0xFF0D], "-")
_QUOTES = {0x2018: "'", 0x2019: "'", 0x02BC: "'", 0xFF07: "'"}


@dataclass(frozen=True)
class View:
    """`text` for recognisers; `origin[i]` is the place of `text[i]` in the input (None: the same)."""

    text: str
    origin: tuple[int, ...] | None = None
    length: int = 0  # of the input text

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        assert self.origin is not None
        return (*self.origin[1:], self.length)

    def back(self, span: Span) -> Span:
        """`span` of the view as a span of the input text, with all invisible characters inside it."""
        if self.origin is None or span.end <= span.start:
            return span
        return replace(span, start=self.origin[span.start], end=self._ends[span.end - 1])


def view_of(text: str) -> View:
    """The view of `text`; plain text costs one scan and no copy."""
    if text.isascii():
        return View(text, None, len(text))
    special = [ch for ch in set(text) if _special(ch)]
    if not special:
        return View(text, None, len(text))
    if not any(ord(ch) in _INVISIBLE or unicodedata.combining(ch) for ch in special):
        return View(text.translate({ord(ch): _fold(ch) for ch in special}), None, len(text))
    out: list[str] = []
    origin: list[int] = []
    for at, ch in enumerate(text):
        code = ord(ch)
        if code < 128:
            out.append(ch)
        elif code in _INVISIBLE:
            continue
        elif unicodedata.combining(ch) and out:
            joined = unicodedata.normalize("NFC", out[-1] + ch)
            if len(joined) == 1:
                out[-1] = joined
                continue
            out.append(ch)
        else:
            out.append(_fold(ch))
        origin.append(at)
    return View("".join(out), tuple(origin), len(text))


def _special(ch: str) -> bool:
    code = ord(ch)
    if code < 128:
        return False
    return code in _INVISIBLE or bool(unicodedata.combining(ch)) or _fold(ch) != ch


def _fold(ch: str) -> str:
    """One character for one: spaces, dashes, quotes, full-width forms and foreign digits as ASCII."""
    code = ord(ch)
    if code in _DASHES:
        return _DASHES[code]
    if code in _QUOTES:
        return _QUOTES[code]
    kind = unicodedata.category(ch)
    if kind == "Zs":
        return " "
    if kind == "Nd":
        return str(unicodedata.digit(ch))
    if 0xFF01 <= code <= 0xFF5E:
        return chr(code - 0xFEE0)
    return ch


# What may stand right beside an identifier: the edges of its own alphabet, and the scripts without spaces.
#
# To a regular expression an ideograph is a letter, so `\b`, `\w` and `isalnum` see no edge between 号 and 4111. An
# identifier of ASCII letters and digits ends where these end (patterns with `re.ASCII`); a name ends where its
# script ends, and in a script that is written without spaces nothing shows where a word ends.

# Thai, Lao, Tibetan, Burmese, Hangul, Khmer, kana and ideographs: for use inside a character class. Korean has
# spaces, but its particles are glued to the word before.
UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\uff61-\uffdc\U00020000-\U0003ffff"
)
LATIN = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"  # letters only; for use inside a character class
_GLUES = rf"[^\W{UNSPACED}]"  # a letter or digit of a script with spaces
# Edges of the words around an identifier ("card", "tel"): as `\b`, but a letter without spaces is none of theirs.
LEFT, RIGHT = f"(?<!{_GLUES})", f"(?!{_GLUES})"
_UNSPACED = re.compile(f"[{UNSPACED}]")


def bounded(body: str, value: str) -> str:
    """The pattern `body`, which matches spellings of `value`, with edges that fit the first and last character."""
    return f"{'' if _free(value[:1]) else LEFT}{body}{'' if _free(value[-1:]) else RIGHT}"


def any_of(values: list[str]) -> str:
    """One of `values`, each with its edges; those with the same edges share them, for speed."""
    groups: dict[tuple[bool, bool], list[str]] = {}
    for value in values:
        groups.setdefault((_free(value[:1]), _free(value[-1:])), []).append(re.escape(value))
    return "|".join(
        f"{'' if first else LEFT}(?:{'|'.join(bodies)}){'' if last else RIGHT}"
        for (first, last), bodies in groups.items()
    )


def _free(ch: str) -> bool:
    return not (ch.isalnum() or ch == "_") or _UNSPACED.match(ch) is not None


def blanked(text: str) -> str:
    """`text` with every letter of a script without spaces as a space, for patterns whose edges are not ours."""
    return text if text.isascii() else _UNSPACED.sub(" ", text)
