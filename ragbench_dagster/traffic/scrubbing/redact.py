"""Makes a provider's message fit to be shown and kept: one short line, no secrets, no personal data, no text under test."""

from __future__ import annotations

import re

from ragbench_dagster.masking import MASK, mask

_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key|tok)[-_][\w*.-]{4,}"  # keys, also half masked: sk-ab***yz
    r"|\bBearer\s+\S+"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"  # JSON web tokens
    r"|\b[A-Za-z0-9_-]{28,}\b"  # long opaque words: keys, request ids
)
_URL = re.compile(r"https?://\S+")
_READ = 2000  # characters of a message
_WINDOW = 24  # characters; a shared run of so many is an echo of the prompt


def redact(message: str, prompt: str = "", limit: int = 160) -> str:
    """`message` in one line of at most `limit` characters, keys masked; "" of an echo of `prompt`."""
    # Values of variables first: what follows would cut them to pieces that nobody knows again.
    line = mask(message[:_READ]).replace(MASK, "[...]")
    line = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    line = _SECRET.sub("[...]", _URL.sub("[url]", line))
    from ragbench_dagster.traffic.scrubbing import latest_scrubber  # loads recognisers

    line = latest_scrubber().plain(line)
    if prompt and _echoes(line, prompt):
        return "(a message that quotes the prompt)"
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _echoes(line: str, prompt: str) -> bool:
    flat = " ".join(prompt.split())
    if len(line) < _WINDOW:
        return False
    return any(line[i : i + _WINDOW] in flat for i in range(0, len(line) - _WINDOW + 1, 4))
