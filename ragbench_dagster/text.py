"""Untrusted text made harmless for a terminal and a CI log."""

from __future__ import annotations

import re
import sys
import unicodedata

# Runners obey lines that begin with `::` and any `##[`; both are broken with a zero-cost, visible mark.
_COMMAND = re.compile(r"(?m)^(\s*)::")
_GROUP = re.compile(r"##\[")
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def safe_terminal(text: str) -> str:
    """`text` without control, format and bidirectional characters, and without workflow commands.

    Every such character (line breaks included) becomes a space, so one value stays one line.
    """
    if text.isascii() and text.isprintable() and "::" not in text and "##[" not in text:
        return text
    flat = "".join(" " if unicodedata.category(c) in _UNSAFE else c for c in text)
    return _GROUP.sub("## [", _COMMAND.sub(r"\1: :", flat))


def notice(line: str) -> None:
    """One line for a person, on stderr, at once: also where that is no terminal."""
    print(safe_terminal(line), file=sys.stderr, flush=True)
