"""E-mail addresses, URLs, IP and MAC addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ragbench_dagster.traffic.scrubbing.normalise import LATIN, LEFT, RIGHT, UNSPACED
from ragbench_dagster.traffic.scrubbing.prefilter import Facts, holds
from ragbench_dagster.traffic.scrubbing.spans import Span

# Everything right of the at sign; the local part is taken by looking back, so no run is scanned twice. A label is
# of one script: after a Latin domain a letter of another script belongs to the sentence.
_IDN_ENDINGS = "中国|中國|公司|网络|網絡|网址|网站|香港|台灣|台湾|澳門|新加坡|集团|在线|中文网|商城|商店|公益|政务|信息|移动|世界|みんな|コム|ストア|한국|삼성|닷컴|닷넷|ไทย|ລາວ"
_OTHER = rf"[^\W\d_{LATIN}{UNSPACED}]"
_DOMAIN = re.compile(
    rf"(?:@|%40)((?:[{LATIN}0-9-]{{1,63}}\.){{1,8}}(?:xn--[a-z0-9-]{{2,59}}|[{LATIN}]{{2,24}})"
    rf"|(?:[\w-]{{1,63}}\.){{1,8}}(?:{_OTHER}{{2,24}}|{_IDN_ENDINGS}|[{LATIN}]{{2,24}}))",
    re.IGNORECASE,
)
_SIGNS = r".+%&~!#$'*?^{|}-"
_LOCAL = re.compile(rf"[{LATIN}0-9_{_SIGNS}]{{1,64}}\Z|[^\W{LATIN}{UNSPACED}]{{1,64}}\Z|[{UNSPACED}]{{1,64}}\Z")
_COPULA = re.compile(r".*[是为為はを:：은는คือ]", re.DOTALL)


def emails(facts: Facts) -> Iterator[Span]:
    """E-mail addresses, also percent-encoded; those in disguise belong to `network`."""
    text = facts.text
    for match in _DOMAIN.finditer(text):
        before = text[max(0, match.start() - 64) : match.start()]
        local = _LOCAL.search(before)
        if local is None:
            continue
        name = _COPULA.sub("", local[0]) if _UNSPACED.match(local[0]) else local[0].lstrip(".%&~!#$'*?^{|}-")
        if name and re.search(r"\w", name):
            yield Span(match.start() - len(name), match.end(), "EMAIL_ADDRESS")


def might_email(facts: Facts) -> bool:
    return facts.at


_UNSPACED = re.compile(f"[{UNSPACED}]")
# A letter of a script without spaces belongs to the sentence, unless the host itself is written in it.
_PART = rf"[^\s<>\"`{{}}|\\^\u0000{UNSPACED}]"
_URL = re.compile(
    rf"(?:https?|ftps?|wss?)://(?:{_PART}+|[\w.-]{{1,100}}\.(?:{_IDN_ENDINGS}|{_OTHER}{{2,24}}|[a-z]{{2,24}}){_PART}*)",
    re.IGNORECASE,
)
# Any scheme with `user:password@`: the credentials are the secret.
_USERINFO = re.compile(
    rf"[a-z][a-z0-9+.-]{{0,20}}://[^\s/@:<>\"]{{0,100}}:[^\s/@<>\"]{{1,200}}@{_PART}+", re.IGNORECASE
)
# A bare domain is no personal data, but one with a token is.
_BARE_TOKEN = re.compile(
    r"(?<![\w@/.-])(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24}(?::\d{1,5})?(?:/[^\s<>\"`?]{0,500})?"
    r"\?[^\s<>\"`]{0,1000}?\b(?:token|key|apikey|sig|signature|password|passwd|pwd|auth|code|session|secret"
    rf"|email|mail|user|uid|phone)={_PART}+",
    re.IGNORECASE | re.ASCII,
)
_IDENTIFYING = re.compile(
    r"(?:[?&;#](?:[\w.-]*(?:token|key|sig|signature|password|passwd|pwd|auth|code|session|sid|secret|email|mail"
    r"|user|uid|account|customer|phone|name|id))=[^&\s]+)"
    r"|//[^/\s]*@|@|%40|/~|/(?:u|user|users|profile|profiles|account|accounts|customer|customers|member|members"
    r"|people|in|reset|invite|verify|unsubscribe)/[^/\s?#]+"
    r"|[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|[A-Za-z0-9_-]{24,}|\d{6,}",
    re.IGNORECASE,
)
_TAIL = ".,;:!?'*_~"


def _url_end(url: str) -> int:
    """Length of `url` without punctuation that belongs to the sentence around it."""
    end = len(url)
    while end:
        last = url[end - 1]
        if last in _TAIL or (last in ")]" and url.count(last, 0, end) > url.count("(["[last == "]"], 0, end)):
            end -= 1
        else:
            break
    return end


def urls(facts: Facts, only_identifying: bool = False) -> Iterator[Span]:
    """URLs: every one with a scheme and a host, or only those with tokens or identifying parts."""
    text = facts.text
    if facts.scheme:
        for match in _URL.finditer(text):
            url = match[0][: _url_end(match[0])]
            host = url.split("://", 1)[1]
            if not host or host[0] in "/?#" or not re.match(r"[\w\[@]", host):
                continue
            if not only_identifying or _IDENTIFYING.search(url.split("://", 1)[1]):
                yield Span(match.start(), match.start() + len(url), "URL")
        for match in _USERINFO.finditer(text):
            yield Span(match.start(), match.start() + _url_end(match[0]), "URL")
    if "?" in text and "=" in text:
        for match in _BARE_TOKEN.finditer(text):
            yield Span(match.start(), match.start() + _url_end(match[0]), "URL")


def might_url(facts: Facts) -> bool:
    return facts.scheme or ("?" in facts.text and "=" in facts.text)


_QUAD = re.compile(r"(?<![\d.])(?<!\d[,:])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?!\d|\.\w|-\w|_)", re.ASCII)
_VERSION = re.compile(
    rf"(?:{LEFT}"
    r"(?:version|versions|ver|v|release|releases|rev|revision|build|firmware|fw|driver|drivers|assembly"
    r"|package|sdk|library|update|upgrade|patch|kernel|bios|app|plugin|runtime)"
    rf"{RIGHT}"
    r"[\s.:=#_-]{0,3}"
    r"(?:(?:is|to|from|number|no)\b[\s.:#]{0,2})?"
    rf"|{LEFT}v"
    r"|(?:版本|版|固件|バージョン|ファームウェア|버전|펌웨어|เวอร์ชัน|верси[яиюей]{1,2}|έκδοση|संस्करण|الإصدار|إصدار|גרסה|phiên bản)[\s.:号是は은는]{0,3})\Z",
    re.IGNORECASE,
)
_ADDRESS_WORD = re.compile(
    rf"(?i){LEFT}"
    r"(?:ip|ips|ipv4|address|addresses|host|hosts|server|gateway|dns|ping|subnet|cidr|node)\b[\s:=]{0,3}(?:is\s)?\Z"
)
_BETWEEN_VERSIONS = re.compile(
    r"\A[\s,]*(?:to|and|or|vs\.?|versus|from|than|->|=>|-|through|until|or later)?[\s,]*(?:v|version)?[\s.]*\Z",
    re.IGNORECASE,
)


# Loopback, "any" and broadcast: everyone's, so nobody's.
_NOBODY = re.compile(r"127(?:\.\d{1,3}){3}|0\.0\.0\.0|255(?:\.255){3}")


def _quads(text: str) -> Iterator[Span]:
    previous_version_end: int | None = None
    for match in _QUAD.finditer(text):
        host = match[0].split("/")[0]
        if any(int(part) > 255 for part in host.split(".")) or _NOBODY.fullmatch(host):
            continue
        before = text[max(0, match.start() - 24) : match.start()]
        beside = previous_version_end is not None and _BETWEEN_VERSIONS.match(
            text[previous_version_end : match.start()]
        )
        if "/" not in match[0] and not _ADDRESS_WORD.search(before) and (_VERSION.search(before) or beside):
            previous_version_end = match.end()
            continue
        yield Span(match.start(), match.end(), "IP_ADDRESS")


_V6 = re.compile(
    r"(?<![\w:.])[0-9A-Fa-f:]{2,39}(?:\d{1,3}(?:\.\d{1,3}){3})?(?:%[\w.-]{1,15})?(?:/\d{1,3})?(?![\w:])", re.ASCII
)


def addresses(facts: Facts) -> Iterator[Span]:
    """IPv4 (a dotted quad that is no version number) and IPv6 addresses."""
    text = facts.text
    if text.count(".") >= 3:
        yield from _quads(text)
    if text.count(":") >= 2:
        for match in _V6.finditer(text):
            core = (
                match[0].split("/")[0].split("%")[0].rstrip(":")
                if "::" not in match[0]
                else match[0].split("/")[0].split("%")[0]
            )
            if core.count(":") < 2 or not re.search(r"\d", core) or len(core.strip(":")) < 2:
                continue
            try:
                ipaddress.IPv6Address(core)
            except ValueError:
                continue
            yield Span(match.start(), match.end(), "IP_ADDRESS")


def might_address(facts: Facts) -> bool:
    return facts.digit and (facts.text.count(".") >= 3 or facts.text.count(":") >= 2)


_MAC = re.compile(
    r"(?<![\w:-])(?:[0-9A-Fa-f]{2}(?:(?P<s>[:-])[0-9A-Fa-f]{2})(?:(?P=s)[0-9A-Fa-f]{2}){4}|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![\w]|[:-][0-9A-Fa-f])",
    re.ASCII,
)


def macs(facts: Facts) -> Iterator[Span]:
    """MAC addresses with colons, dashes or Cisco's dots."""
    for match in _MAC.finditer(facts.text):
        if re.search(r"\d", match[0]):
            yield Span(match.start(), match.end(), "MAC_ADDRESS")


def might_mac(facts: Facts) -> bool:
    text = facts.text
    return facts.digit and (text.count(":") >= 5 or text.count("-") >= 5 or text.count(".") >= 2)


# Addresses written so that machines do not find them: (at), [.], &#64;, "dot", hxxp. Who reads can still write.
#
# The disguises are taken off on a copy, the recognisers of `network` look at it, and their findings are mapped
# back. Half-hidden forms (only the at sign, only one dot) are the commonest. What holds no disguise is left to
# the recognisers themselves, and a disguise that leads to no address is left alone: "list[.]" is code.

_OPEN, _CLOSE = r"[\[({<]", r"[\])}>]"
_AT_WORD = r"at|a\.t\.|arroba|arobase|chiocciola|klammeraffe|ät|zavin[aá][cč]|собака|@|&#0*64;|&#x0*40;|&commat;"
_DOT_WORD = r"dot|punkt|punto|point|ponto|punt|kropka|tečka|точка|d0t|\.|&#0*46;|&#x0*2e;|&period;"
# What the disguise stands for -> its spellings. Brackets may have spaces around and inside.
_BRACKETED = re.compile(
    rf"(?P<at>\s?{_OPEN}\s?(?:{_AT_WORD})\s?{_CLOSE}\s?|&#0*64;|&#x0*40;|&commat;|\s?_at_\s?)"
    rf"|(?P<dot>\s?{_OPEN}\s?(?:{_DOT_WORD})\s?{_CLOSE}\s?|&#0*46;|&#x0*2e;|&period;|\\\.|\s?_dot_\s?)"
    r"|(?P<scheme>\bh(?:xx|\*\*|__|XX|tt)ps?(?=(?:\[:\]|:)(?://|\[//\])|\[://\]))|(?P<colon>\[:\]|\[://\]|(?<=:)\[//\])",
    re.IGNORECASE,
)
_TLD = (
    r"(?:com|org|net|edu|gov|mil|int|info|biz|name|io|co|me|tv|app|dev|ai|eu|de|at|ch|uk|ie|fr|es|pt|it|nl|be|lu|dk|se|no|fi|is|pl|cz"
    r"|sk|hu|ro|bg|gr|hr|si|rs|ua|ru|tr|il|in|cn|jp|kr|tw|hk|sg|my|th|vn|id|ph|au|nz|za|ng|ke|eg|br|ar|mx|cl|ca|us|example|test)"
)
_LABEL = r"[A-Za-z0-9][A-Za-z0-9_+-]{0,62}"
_SAID_DOT = r"\s(?:dot|punkt|punto|point|ponto)\s"
_DOT = rf"(?:\s?{_OPEN}\s?(?:{_DOT_WORD})\s?{_CLOSE}\s?|&#0*46;|&#x0*2e;|&period;|{_SAID_DOT}|[.])"
_AT = (
    rf"(?:\s?{_OPEN}\s?(?:{_AT_WORD})\s?{_CLOSE}\s?|&#0*64;|&#x0*40;|&commat;|\s(?:at|arroba|chiocciola|ät)\s|\s?@\s?)"
)
# Mixtures of words, brackets and plain signs: every part of the host is tied by a dot or what stands for it.
_WORDS = re.compile(
    rf"(?<![\w@.])(?P<local>{_LABEL}(?:(?:{_DOT}|\s(?:underscore|dash|hyphen|minus|plus)\s){_LABEL}){{0,4}})"
    rf"(?P<at>{_AT})(?P<host>{_LABEL}(?:{_DOT}{_LABEL}){{0,3}}{_DOT}{_TLD})(?![\w@])",
    re.IGNORECASE,
)
_FOREIGN_DOT = re.compile(r"\s(?:punkt|punto|point|ponto)\s", re.IGNORECASE)
_DRESSED = re.compile(r"[\s\[({<&]")
_MAIL_WORD = re.compile(
    r"(?i)\b(?:e-?mails?|mails?|mailbox|address|adresse|correo|courriel|write to|reach|contact)\b[^.!?\n]{0,24}\Z"
)
# Words before "at" that make the host a place: "log in at example dot com".
_VERBS = frozenset(
    "look looking find found visit visiting shop sign log login logging order ordering buy bought us me you it him her them here there is are"
    " was available meet meeting work working stay hosted host runs running page site website be online posted book booking register registered"
    " registering check checking read available listed click download see product products and or only team service started support people"
    " in on up out off over now today back again that this".split()
)


def disguised(facts: Facts, finders: Iterable[Callable[[Facts], Iterable[Span]]]) -> Iterator[Span]:
    """Addresses that show once their disguises are off; each holds at least one of them."""
    text = facts.text
    plain, origin, changed = _undressed(text)
    if changed:
        bare = Facts(plain, facts.skip)
        for find in finders:
            for span in find(bare):
                if any(span.start <= at < span.end for at in changed):
                    start, end = origin[span.start], origin[span.end]
                    yield replace(span, start=start, end=end - (len(text[start:end]) - len(text[start:end].rstrip())))
    yield from _spelled(text)


def _undressed(text: str) -> tuple[str, list[int], list[int]]:
    """(the text without disguises, where each of its characters was, the places of those that were put in)."""
    out: list[str] = []
    origin: list[int] = []
    changed: list[int] = []
    at = 0
    for match in _BRACKETED.finditer(text):
        out.extend(text[at : match.start()])
        origin.extend(range(at, match.start()))
        kind = match.lastgroup
        if kind == "scheme":
            shown = "https" if match[0][-1] in "sS" else "http"
        else:
            shown = {"at": "@", "dot": "."}.get(kind or "", match[0].strip("[]"))
        if match[0].lower() not in ("http", "https"):
            changed.extend(range(len(out), len(out) + len(shown)))
        out.extend(shown)
        origin.extend([match.start()] * len(shown))
        at = match.end()
    if not changed:
        return text, [], []
    out.extend(text[at:])
    origin.extend(range(at, len(text) + 1))
    return "".join(out), origin, changed


def _spelled(text: str) -> Iterator[Span]:
    """E-mail addresses spelled with words, brackets or spaces."""
    for match in _WORDS.finditer(text):
        local, at, host = match["local"], match["at"].strip().lower(), match["host"]
        if at == "at" and _FOREIGN_DOT.search(local + host):
            continue  # "at this point in" is English
        if not re.search(r"[A-Za-z]", local) or re.split(r"[^\w]", local.lower())[-1] in _VERBS:
            continue
        if at == "@" and not _DRESSED.search(local + host):
            # Spaces beside the sign: "cc @example.com" is a handle.
            before, after = match["at"][0] != "@", match["at"][-1] != "@"
            shown = after if not before else re.search(r"[._\d]", local)
            hidden = (before or after) and shown
        elif at.isalpha() and not _DRESSED.search(host):
            hidden = _MAIL_WORD.search(text[max(0, match.start() - 40) : match.start()])
        else:
            hidden = True
        if hidden:
            yield Span(match.start(), match.end(), "EMAIL_ADDRESS")


# What a disguise looks like at least, folded.
_TRACES = (
    "[.]", "(.)", "{.}", "<.>", "[at", "(at", "{at", "<at", "[ at", "( at", "[@", "(@", "{@", "<@", "[ @", "( @", "[dot", "(dot", "{dot",
    "<dot", "[ dot", "( dot", "hxxp", "h**p", "h__p", "[:", "[//", "&#", "&commat", "&period", "\\.", "_at_", "_dot_", "[ . ]", "( . )",
    "[ .", "[punkt", "(punkt", "[punto", "(punto", "[point", "(point", "[arroba", "(arroba", "(ät", "[ät", "[точка", "(точка", "[собака",
    "(собака", "[kropka", "(kropka",
)  # fmt: skip
_TRACE = re.compile("|".join(map(re.escape, _TRACES)) + r"|@ | @")
_SAID_DOTS = (" dot ", " punkt ", " punto ", " point ", " ponto ")


def might_disguise(facts: Facts) -> bool:
    """A trace of a disguise, or words for at and dot; the test is a superset."""
    folded = facts.folded
    if _DISGUISE_SIGNS.search(folded) and _TRACE.search(folded):
        return True
    if " at " in folded and "." in folded and _HOST.search(folded):
        return True
    return holds(folded, _SAID_DOTS) and holds(folded, _SAID_AT)


_SAID_AT = (" at ", " arroba ", " chiocciola ", " ät ", "@")
_DISGUISE_SIGNS = re.compile(r"[\[({<@&\\*_]|hxxp|h__p")
_HOST = re.compile(rf"\s(?:at|arroba|chiocciola|ät)\s[a-z0-9][\w+.-]*\.{_TLD}(?![\w@])")
