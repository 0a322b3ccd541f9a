"""Takes the values of secret variables out of text that comes from outside: replies, answers, errors, log lines.

A gateway quotes the key that it refuses, a service echoes the header it got, a driver names the password. Whatever
the settings name (`${NAME}`, `judge.api_key_env`, `alerts.urls_env`) is looked for as it is, quoted, encoded
(URL, JSON, HTML, base64, hex), split by blanks or quotes, and in longer pieces.

The names are known to the process as soon as settings are read; the values are read from the environment each time.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from ragbench_dagster.credentials import is_named_secret

MASK = "<SECRET>"  # a placeholder of the scrubber: text under test stays readable
# Read by the libraries that talk for us, whether or not the settings name them.
_ALWAYS = (
    "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN", "PGPASSWORD", "OPENAI_API_KEY",
    "RAGBENCH_ALERT_URLS",
)  # fmt: skip
_PIECE = 12  # characters of a key that are a leak by themselves
_BLOCK = 6  # every run of 2 * _BLOCK - 1 characters holds a whole block
_SHORTEST = 4  # characters; shorter values are words of everyday text
# What local servers are given in place of a key.
_DUMMIES = frozenset(
    "none null empty dummy ollama local unused test secret changeme token key lm-studio not-needed not-used no-key "
    "sk-no-key-required anything fake true false".split()
)
_BETWEEN = r"[\s\"'`+,;|\\\u00ad\u200b-\u200f\u2060\ufeff]{0,4}"
_SEPARATORS = re.compile(r"[\s\"'`+,;|\\\u00ad\u200b-\u200f\u2060\ufeff]+")

_names: set[str] = set(_ALWAYS)
_plain_factory: Any = None


def watch(names: Iterable[str]) -> None:
    """Mask the values of these variables from now on, in this process."""
    _names.update(name for name in names if name)


def watched() -> list[str]:
    """The names, sorted: for a worker process to watch the same."""
    return sorted(_names)


def guard_logs() -> None:
    """Mask what any library logs in this process, at whatever level: they log addresses with their queries."""
    global _plain_factory
    if _plain_factory is not None:
        return
    plain = _plain_factory = logging.getLogRecordFactory()

    def masked(*args: Any, **options: Any) -> logging.LogRecord:
        record = plain(*args, **options)
        try:
            said = record.getMessage()
        except Exception:  # a wrong format string is told by logging itself
            return record
        clean = mask(said)
        if clean != said:
            record.msg, record.args = clean, ()
        return record

    logging.setLogRecordFactory(masked)


def mask(text: str) -> str:
    """`text` with every value of a watched variable replaced by `<SECRET>`."""
    found = mask_spans(text)
    if not found:
        return text
    out, at = [], 0
    for start, end in found:
        out += [text[at:start], MASK]
        at = end
    return "".join([*out, text[at:]])


def watched_values() -> tuple[str, ...]:
    """The values that the watched variables hold now."""
    return tuple(value for name in sorted(_names) if (value := os.environ.get(name)))


def mask_spans(text: str, values: tuple[str, ...] | None = None) -> list[tuple[int, int]]:
    """Where the values stand in `text`: (start, end), in order, without overlaps.

    Args:
        values: of `watched_values`, asked once for many texts; None asks now.
    """
    values = watched_values() if values is None else values
    if not values or not text:
        return []
    found = [span for secret in _secrets(values) for span in secret.spans(text)]
    return _merged(found) if found else []


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@dataclass(frozen=True)
class _Secret:
    """One spelling of one value."""

    squeezed: str  # caseless, without what may split it
    pattern: re.Pattern[str]
    blocks: tuple[str, ...]  # of a key: every longer piece of it holds one of them
    value: str

    def spans(self, text: str) -> list[tuple[int, int]]:
        found = []
        if self.squeezed in _squeezed(text):
            found = [match.span() for match in self.pattern.finditer(text)]
        for block in self.blocks:
            at = text.find(block)
            while at >= 0:
                piece = self._piece(text, at, self.value.index(block))
                if piece[1] - piece[0] >= _PIECE:
                    found.append(piece)
                at = text.find(block, at + _BLOCK)
        return found

    def _piece(self, text: str, at: int, place: int) -> tuple[int, int]:
        """How far `text` around `at` agrees with the value around `place`."""
        start, before = at, place
        while start > 0 and before > 0 and text[start - 1] == self.value[before - 1]:
            start, before = start - 1, before - 1
        end, after = at, place
        while end < len(text) and after < len(self.value) and text[end] == self.value[after]:
            end, after = end + 1, after + 1
        return start, end


@lru_cache(maxsize=256)
def _squeezed(text: str) -> str:
    return _SEPARATORS.sub("", text).casefold()


@lru_cache(maxsize=16)
def _secrets(values: tuple[str, ...]) -> tuple[_Secret, ...]:
    made: dict[str, _Secret] = {}
    for value in values:
        for part, is_whole in _parts(value):
            for spelling in _spellings(part):
                if spelling not in made:
                    made[spelling] = _secret(spelling, is_key="://" not in spelling and is_whole)
    return tuple(made.values())


def _secret(spelling: str, is_key: bool) -> _Secret:
    squeezed = _SEPARATORS.sub("", spelling)
    body = _BETWEEN.join(re.escape(c) for c in squeezed)
    # A short value is masked as a word only: `1234` must not eat the years of a text.
    if len(squeezed) < 8:
        body = rf"(?<![A-Za-z0-9]){body}(?![A-Za-z0-9])"
    long = is_key and len(spelling) >= 16
    blocks = tuple(dict.fromkeys(spelling[i : i + _BLOCK] for i in range(0, len(spelling) - _BLOCK + 1, _BLOCK)))
    return _Secret(squeezed.casefold(), re.compile(body, re.IGNORECASE), blocks if long else (), spelling)


def _parts(value: str) -> list[tuple[str, bool]]:
    """The secrets in a variable's value, and whether each is a key: the whole; of URLs what gives access, too."""
    found: list[tuple[str, bool]] = []
    for line in (part.strip() for part in value.splitlines()):
        if not _counts(line):
            continue
        found.append((line, "://" not in line))
        scheme, mark, rest = line.partition("://")
        if not mark:
            continue
        authority, _, tail = rest.partition("/")
        user, at, host = authority.rpartition("@")
        pieces = user.split(":", 1)[1:] if ":" in user else [user] * (scheme in ("http", "https", "json", "jsons"))
        pieces += [
            value
            for name, value in re.findall(r"[?&;]([^=&;?]+)=([^&;#\s]+)", rest)
            if _is_token(value) or is_named_secret(name, value, in_url=True)
        ]
        # apprise puts tokens into host and path: slack://TOKEN_A/TOKEN_B, tgram://bot:TOKEN/
        pieces += [
            p for p in re.split(r"[/?&;:#]", tail + "/" + (host if scheme not in _HOSTED else "")) if _is_token(p)
        ]
        pieces += [unquote(piece) for piece in pieces if "%" in piece]
        found += [(piece, True) for piece in pieces if _counts(piece) and len(piece) >= 6]
        if at and ":" in user:
            found.append((unquote(user), True))
    return list(dict.fromkeys(found))


_HOSTED = frozenset(("http", "https", "json", "jsons", "xml", "xmls", "postgresql", "mysql", "s3", "gs", "sqlite"))


def _is_token(word: str) -> bool:
    return len(word) >= 8 and any(c.isdigit() for c in word) and any(c.isalpha() for c in word) and "." not in word


def _counts(value: str) -> bool:
    if len(value) < _SHORTEST or value.casefold() in _DUMMIES:
        return False
    # A short plain word is no secret that could be told from the text around it.
    return not (value.isalpha() and len(value) < 8) and not (value.isdigit() and len(value) < 6)


def _spellings(value: str) -> list[str]:
    """The value as it is, quoted and encoded."""
    raw = value.encode("utf-8", "surrogateescape")
    found = [
        value,
        quote(value, safe=""),
        quote_plus(value),
        quote(value),
        json.dumps(value)[1:-1],
        html.escape(value),
        repr(value)[1:-1],
    ]
    if len(raw) >= 8:
        found += [raw.hex(), *_in_base64(raw)]
    return [spelling for spelling in dict.fromkeys(found) if len(spelling) >= _SHORTEST]


def _in_base64(raw: bytes) -> list[str]:
    """What is sure to stand in the base64 of the value, and of any longer text that holds it."""
    found = []
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode("ascii").rstrip("=")
        first = -(-before * 8 // 6)  # digits that the bytes before it share in
        last = (before + len(raw)) * 8 // 6
        core = encoded[first:last]
        if len(core) >= 10:
            found += [core, core.replace("+", "-").replace("/", "_")]
    whole = base64.b64encode(raw).decode("ascii")
    return [whole.rstrip("="), base64.urlsafe_b64encode(raw).decode("ascii").rstrip("="), *found]
