"""Payment cards, IBANs and US social security numbers: shape, check digit, and the words around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.normalise import LEFT, RIGHT
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.spans import Span

# Check digits. Sources: ISO/IEC 7812-1 (Luhn), ISO 13616 (IBAN, mod 97).

# Length of an IBAN by country (SWIFT's IBAN registry).
IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27,
    "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28,
    "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23,
    "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21,
    "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28,
    "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22,
    "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25,
    "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip


def luhn(digits: str) -> bool:
    """The Luhn check over a string of ASCII digits."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = ord(digit) - 48
        if place % 2:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return total % 10 == 0


def mod97(iban: str) -> bool:
    """True when the letters and digits of `iban` (no separators) leave 1 modulo 97."""
    moved = iban[4:] + iban[:4]
    try:
        return int("".join(str(int(ch, 36)) for ch in moved)) % 97 == 1
    except ValueError:
        return False


# Payment cards, IBANs and US social security numbers: shape, check digit, and the words around them.

# A card is one run, or grouped as it is embossed; a part of a longer identifier (UUID, file name) is none.
_CARD = re.compile(
    r"(?<![\w.,+-])(?<![\w][-_/.=])(?:"
    r"\d{12,19}"
    r"|\d{4}(?P<s>[ .-])\d{4}(?P=s)\d{4}(?P=s)\d{1,4}(?:(?P=s)\d{1,3})?"
    r"|\d{4}(?P<t>[ .-])\d{6}(?P=t)\d{4,5}"
    r"|\d{6}(?P<u>[ .-])\d{6,13}"
    r")(?![\w]|[-.,][\w])",
    re.ASCII,
)
_CARD_GLUED = re.compile(r"(?<=[:=#(\"'])\d{12,19}(?!\d)", re.ASCII)
_CARD_WORD = re.compile(
    LEFT + r"(?:cards?|credit|debit|visa|master ?card|maestro|amex|american express|discover|diners|jcb|cc|pan"
    r"|cvv|karte|kreditkarte|carte|tarjeta|carta|cart[aã]o|kaart|kortti|kort|karta|kartı)"
    + RIGHT
    + r"|卡|カード|카드|บัตร|карт|κάρτ|بطاقة|כרטיס|कार्ड|thẻ",
    re.IGNORECASE,
)
_NEAR = 60  # characters before or after in which a card word counts


def _network(digits: str) -> bool:
    """A prefix and length that some network issues (ISO/IEC 7812 ranges in use)."""
    n, two, four = len(digits), int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        return n in (13, 16, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720 or 2200 <= four <= 2205:
        return n == 16
    if two in (34, 37):
        return n == 15
    if two in (36, 38, 39) or 3000 <= four <= 3059 or four == 3095:
        return 14 <= n <= 19
    if two == 35:
        return 16 <= n <= 19
    if four in (1800, 2131):
        return n == 15
    if two in (50, 56, 57, 58) or digits[0] == "6":
        return 12 <= n <= 19 if two in (50, 56, 57, 58, 61, 63, 67, 69) else 15 <= n <= 19 or n == 12
    if two == 81 or four == 9792:
        return n == 16
    return False


def _card_word_near(text: str, start: int, end: int) -> bool:
    return _CARD_WORD.search(text[max(0, start - _NEAR) : end + _NEAR]) is not None


def cards(facts: Facts) -> Iterator[Span]:
    """Cards: an issued prefix with Luhn; next to a card word also without Luhn (typos leak as well)."""
    text = facts.text
    for pattern in (_CARD, _CARD_GLUED):
        for match in pattern.finditer(text):
            digits = re.sub(r"\D", "", match[0])
            if not 12 <= len(digits) <= 19 or len(set(digits)) == 1:
                continue
            issued, grouped = _network(digits), len(digits) != len(match[0])
            near = (issued or grouped or luhn(digits)) and _card_word_near(text, match.start(), match.end())
            if (issued and luhn(digits) and len(digits) >= 13) or near:
                yield Span(match.start(), match.end(), "CREDIT_CARD")


def might_card(facts: Facts) -> bool:
    return facts.digits >= 12


_IBAN_WORD = re.compile(LEFT + "iban" + RIGHT, re.IGNORECASE)
_ALNUM = re.compile(r"[A-Za-z0-9]")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,44}")


def ibans(facts: Facts) -> Iterator[Span]:
    """IBANs: the length of the country and mod 97 = 1, whatever follows."""
    text = facts.text
    for match in _IBAN.finditer(text):
        country = match[0][:2].upper()
        wanted = IBAN_LENGTHS.get(country)
        if wanted is None:
            continue
        taken, end = [], match.start()
        for ch in match[0]:
            end += 1
            if ch not in " -":
                taken.append(ch)
                if len(taken) == wanted:
                    break
        code = "".join(taken).upper()
        if len(code) == wanted and mod97(code) and not _ALNUM.match(text, end):
            yield Span(match.start(), end, "IBAN_CODE")
        elif _IBAN_WORD.search(text[max(0, match.start() - 30) : match.start()]):
            # A mistyped IBAN right after the word is as personal as a right one.
            run = re.match(
                r"(?a)[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b", text[match.start() :]
            )
            if run:
                yield Span(match.start(), match.start() + run.end(), "IBAN_CODE")


def might_iban(facts: Facts) -> bool:
    return facts.digits >= 2


_SSN = re.compile(r"(?<![\w.+-])(\d{3})(-)(\d{2})-(\d{4})(?![\w]|[-.]\d)", re.ASCII)
_SSN_LOOSE = re.compile(r"(?<![\w.+-])(\d{3})[ .-]?(\d{2})[ .-]?(\d{4})(?![\w]|[-.]\d)", re.ASCII)
_SSN_WORD = re.compile(
    LEFT
    + r"(?:ssn|ssns|social[ _-]?security(?:[ _-]?(?:number|no|num))?|social sec|sozialversicherung|itin|tax(?:payer)? id|tin)"
    + RIGHT,
    re.IGNORECASE,
)


def ssns(facts: Facts) -> Iterator[Span]:
    """US social security numbers (areas that can be issued), and any such shape after the words for it."""
    text = facts.text
    for match in _SSN.finditer(text):
        area, group, serial = match[1], match[3], match[4]
        if group == "00" or serial == "0000" or area in ("000", "666"):
            continue
        if area[0] == "9":
            if "50" <= group <= "65" or "70" <= group <= "88" or "90" <= group <= "92" or group >= "94":
                yield Span(match.start(), match.end(), "US_ITIN")
        else:
            yield Span(match.start(), match.end(), "US_SSN")
    if _SSN_WORD.search(text):
        for match in _SSN_LOOSE.finditer(text):
            if _SSN_WORD.search(text[max(0, match.start() - 50) : match.end() + 20]):
                yield Span(match.start(), match.end(), "US_ITIN" if match[1][0] == "9" else "US_SSN")


def might_ssn(facts: Facts) -> bool:
    return facts.digits >= 9
