"""What may stand right beside an identifier: the edges of its own alphabet, and the scripts without spaces.

To a regular expression an ideograph is a letter, so `\\b`, `\\w` and `isalnum` see no edge between 号 and 4111. An
identifier of ASCII letters and digits ends where these end (patterns with `re.ASCII`); a name ends where its
script ends, and in a script that is written without spaces nothing shows where a word ends.
"""

from __future__ import annotations

import re

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
