"""An independent look at what was written: simple patterns and checksums, none of the recognisers' code.

It is kept apart on purpose: a fault in a recogniser must not hide itself. It finds only what is certain.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable

_PATTERNS = {
    "EMAIL_ADDRESS": re.compile(r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24}"),
    "CREDIT_CARD": re.compile(r"(?<![A-Za-z0-9_.-])[3-6]\d{3}(?:[ -]?\d{4}){3}(?![A-Za-z0-9_.-])|(?<![A-Za-z0-9_.-])3[47]\d{2}[ -]?\d{6}[ -]?\d{5}(?![A-Za-z0-9_.-])"),
    "IBAN_CODE": re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]){11,30}"),
    "US_SSN": re.compile(r"(?<![A-Za-z0-9_-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![A-Za-z0-9_-])"),
    "IP_ADDRESS": re.compile(r"(?<![A-Za-z0-9_.-])(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9_.-])"),
    "PHONE_NUMBER": re.compile(r"(?<![A-Za-z0-9_+])\+\d{1,3}[ (.-]{0,2}\d(?:[ ().-]{0,2}\d){7,12}(?!\d)|(?<![A-Za-z0-9_(])\(\d{3}\) ?\d{3}-\d{4}(?!\d)"),
    "URL": re.compile(r"https?://[^\s<>\"]{0,300}[?&#](?:[a-z_-]*(?:token|key|sig|secret|password|auth|session))=[^\s<>\"&]+", re.IGNORECASE),
}  # fmt: skip


_VERSION = re.compile(
    r"(?ia)(?:\bv|\bver|\bversion|\bdriver|\brelease|\bbuild|\bfirmware|\bassembly|版本|版|バージョン|버전|เวอร์ชัน|верси\S{1,2}|phiên bản)[\s.:=是は은는]*$|\bv?\d+(?:\.\d+){2,3}[\s,]*(?:to|and|or|from)?\s*v?$"
)


def _luhn_sum(number: str) -> int:
    doubled = {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: 1, 6: 3, 7: 5, 8: 7, 9: 9}
    values = [int(c) for c in number][::-1]
    return sum(values[0::2]) + sum(doubled[v] for v in values[1::2])


def _iban_holds(raw: str, following: str) -> bool:
    """A part of `raw` from its beginning, up to where no letter or digit follows, leaves 1 modulo 97."""
    rest, length = raw + following[:1], len(raw.replace(" ", ""))
    for end in range(len(raw), 14, -1):
        if rest[end : end + 1].isascii() and rest[end : end + 1].isalnum():
            continue
        code = raw[:end].replace(" ", "")
        turned = code[4:] + code[:4]
        left = 0
        for ch in turned:
            left = (left * (10 if ch.isdigit() else 100) + int(ch, 36)) % 97
        if left == 1 and 15 <= len(code) <= length and code[2:4] not in ("00", "01", "99"):
            return True
    return False


def _certain(type_: str, value: str, before: str, following: str) -> bool:
    if type_ == "CREDIT_CARD":
        digits = re.sub(r"\D", "", value)
        return _luhn_sum(digits) % 10 == 0 and len(set(digits)) > 1
    if type_ == "IBAN_CODE":
        return _iban_holds(value, following)
    if type_ == "IP_ADDRESS":
        # A dotted quad right after a version word is a version; so is one after another version.
        if _VERSION.search(before):
            return False
        try:
            address = ipaddress.IPv4Address(value)
        except ValueError:
            return False
        return not (address.is_loopback or address.is_unspecified or value == "255.255.255.255")
    return True


def residual(texts: Iterable[str]) -> dict[str, int]:
    """How many certain findings of each type remain in `texts` that were scrubbed; empty when clean.

    Only counts are returned: what was found is personal data.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        for type_, pattern in _PATTERNS.items():
            for match in pattern.finditer(text):
                before = text[max(0, match.start() - 32) : match.start()]
                if _certain(type_, match[0], before, text[match.end() : match.end() + 1]):
                    counts[type_] += 1
    return dict(sorted(counts.items()))
