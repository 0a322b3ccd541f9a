"""Phone numbers of all regions, by `phonenumbers` and by the words and shapes around them.

A bare run of digits is evidence of nothing: it needs a phone word before it, a plus, or separators as people
write them in a number that some region's plan holds valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from ragbench_dagster.traffic.scrubbing.normalise import LEFT, RIGHT
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

_CANDIDATE = re.compile(
    r"(?<![\d])(?<!\d[.,:/])(?:\+{1,2}|00|\(\+|\()?\d(?:[ ().-]{0,3}\d|/\d|x\d){4,24}"
    r"(?:\s?(?:x|ext\.?|extension|#)\s?\d{1,6})?",
    re.IGNORECASE,
)
_WORD = re.compile(
    LEFT
    + r"(?:phones?|ph|telephones?|tel|mobiles?|mobil|cell|cellphone|fax|call(?:ed|ing)?(?! (?:center|centre))|ring|reach|dial|text|texted|sms"
    r"|whatsapp|signal|telegram|landline|hotline|handy|handynummer|telefon|telefono|teléfono|téléphone|portable"
    r"|móvil|movil|celular|telefone|telefoon|mobiel|puhelin|gsm|appelez|appeler|appelle|rufen|anrufen|anruf"
    r"|erreichbar|unter|melden|llame|llámame|llamar|llamen|chiamare|chiamami|bel|ligue|ligar|desk|office|contact|messages? (?:to|at)|registered"
    r"|number is|num|numéro|número|numero|nummer|my number|his number|her number|their number|our number|callback|call back|helpline|pager|voicemail)"
    + RIGHT
    + r"|电话|電話|手机|手機|携帯|热线|熱線|座机|拨打|전화|휴대폰|핸드폰|연락처|โทร|มือถือ|เบอร์|тел|звон|мобильн|номер|τηλ|κινητό|फ़ोन|फोन|मोबाइल"
    r"|هاتف|جوال|موبايل|טלפון|נייד|điện thoại|sđt",
    re.IGNORECASE,
)
_WORD_AFTER = re.compile(r"(?i)[\s,-]{0,3}(?:office|fax|mobile|cell|home|work)\b")
_GLUED = re.compile(r"[\w]-?\Z|[-./_][\w]?\Z|[$€£]\s?\Z|\d[.,]\Z", re.ASCII)
_UNIT_AFTER = re.compile(r"[-_/]?[A-Za-z]*\d|-[0-9a-f]{4}|[%°$€£]|\s?(?:usd|eur|gbp|kg|km|mb|gb|ms|px)\b")
_FEWEST, _MOST = 6, 18  # digits
_BEFORE, _AFTER = 40, 14  # characters in which a phone word counts
_NOT_BEFORE = re.compile(
    LEFT
    + r"(?:order|invoice|ticket|case|ref|reference|serial|form|account|acct|id|job|cursor|offset|line|page|row|lat|lon|latitude"
    r"|longitude|version|build|error|code|isbn|issn|sku|part|model|article|section|item|port|size|ttl|epoch|timestamp|season|year|zip|amount|total|transaction|tracking)"
    r"(?:\s(?:number|no|id|nr))?[\s.:#=-]{0,3}\Z"
    r"|(?:订单|訂單|单号|單號|工单|发票|快递|注文|請求書|伝票|追跡|주문|송장|운송장|คำสั่งซื้อ|ใบแจ้งหนี้|заказ\w{0,2}|счет|счёт)(?:番号|번호|号码|号|號)?[\s.:#=是は은는-]{0,3}\Z",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d{2}|(?:19|20)\d{2}[./-]\d{1,2}[./-]\d{1,2}|(?:19|20)\d{2}\s?[/-]\s?(?:19|20)\d{2}"
    r"|(?:19|20)\d{2}[-/]?[01]\d[-/]?[0-3]\d(?:[ T-]?\d{2,6})?"
)
# Tried in this order: most numbers are found early, and all regions are tried in the end.
_COMMON = (
    "US", "GB", "DE", "FR", "IN", "AU", "ES", "IT", "BR", "MX", "NL", "SE", "CH", "AT", "BE", "PL", "DK", "NO",
    "FI", "IE", "PT", "CZ", "HU", "GR", "RO", "RU", "UA", "TR", "ZA", "NZ", "JP", "CN", "KR", "IL", "AE", "SG",
)  # fmt: skip


@lru_cache(maxsize=1)
def _regions() -> tuple[str, ...]:
    import phonenumbers

    rest = sorted(set(phonenumbers.SUPPORTED_REGIONS) - set(_COMMON))
    return (*_COMMON, *rest)


@lru_cache(maxsize=20_000)
def valid(number: str, regions: int | None = None) -> bool:
    """`number` (digits, perhaps a leading plus) is valid in some region's plan; `regions`: only the first n."""
    import phonenumbers

    if number.startswith("+"):
        try:
            return phonenumbers.is_valid_number(phonenumbers.parse(number, None))
        except phonenumbers.NumberParseException:
            return False
    for region in _regions()[:regions]:
        try:
            parsed = phonenumbers.parse(number, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number_for_region(parsed, region):
            return True
    return False


def _bare(raw: str) -> str:
    """The digits, with a leading plus; without an extension and a (0)."""
    body = re.split(r"(?i)\s?(?:x|ext\.?|extension|#)\s?(?=\d{1,6}\Z)", raw)[0]
    digits = re.sub(r"\(0\)|\D", "", body)
    return ("+" if raw.lstrip("(").startswith("+") else "") + digits


def phones(facts: Facts) -> Iterator[Span]:
    """Phone numbers. See the module's text for what counts as evidence."""
    text = facts.text
    for match in _CANDIDATE.finditer(text):
        start, end = _edges(match)
        raw = text[start:end]
        number = _bare(raw)
        if not _FEWEST <= len(number.lstrip("+")) <= _MOST or _DATE.fullmatch(raw):
            continue
        before, after = text[max(0, start - _BEFORE) : start], text[end : end + _AFTER]
        if number.startswith("+"):
            named = _WORD.search(before) or re.search(r"[ ()-]", raw)
            if valid(number) or (len(number) >= 9 and named):
                yield Span(start, end, "PHONE_NUMBER")
        elif not _part_of_something(before, after) and (_said(before, after) or _looks_dialled(raw, number)):
            said = Evidence.ANNOUNCED if _said(before, after) else Evidence.SHAPE
            yield Span(start, end, "PHONE_NUMBER", evidence=said)


def _edges(match: re.Match[str]) -> tuple[int, int]:
    """The candidate without a bracket that has no partner, and without separators at its end."""
    start, raw = match.start(), match[0]
    if raw.startswith("(") and ")" not in raw:
        start, raw = start + 1, raw[1:]
    raw = raw.rstrip("( .-")
    while raw.endswith(")") and raw.count(")") > raw.count("("):
        raw = raw[:-1]
    return start, start + len(raw)


def _part_of_something(before: str, after: str) -> bool:
    """Glued to a word, a path, a currency or a unit, or named as another kind of number."""
    glued = _GLUED.search(before) and not re.search(r"\b[A-Za-z]{2,}:?\Z", before)
    other = _NOT_BEFORE.search(before) and not re.search(r"(?i)\b(?:phone|mobile|tel|fax)\b", before)
    return bool(glued or other or _UNIT_AFTER.match(after))


def _said(before: str, after: str) -> bool:
    return bool(_WORD.search(before) or _WORD_AFTER.match(after))


def _looks_dialled(raw: str, number: str) -> bool:
    """Without a word: written in groups as people write numbers, and valid in one of the commonest plans."""
    groups = re.findall(r"\d+", raw)
    lengths = [len(group) for group in groups]
    if len(groups) == 2 and re.fullmatch(r"(?:19|20)\d\d", groups[0]):
        return False  # "invoice 2024-00123"
    if len(groups) < 2 or min(lengths) < 2 or lengths == [3, 2, 4] or len(number) < 9:
        return False
    dotted = re.search(r"\d\.\d", raw) and len(groups) != 3
    return not dotted and not re.search(r"\d/\d", raw) and valid(number, len(_COMMON))


def might_phone(facts: Facts) -> bool:
    return facts.digits >= _FEWEST
