"""Addresses written so that machines do not find them: (at), [.], &#64;, "dot", hxxp. Who reads can still write.

The disguises are taken off on a copy, the recognisers of `network` look at it, and their findings are mapped
back. Half-hidden forms (only the at sign, only one dot) are the commonest. What holds no disguise is left to
the recognisers themselves, and a disguise that leads to no address is left alone: "list[.]" is code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ragbench_dagster.traffic.scrubbing.facts import Facts
from ragbench_dagster.traffic.scrubbing.spans import Span

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
    if _SIGNS.search(folded) and _TRACE.search(folded):
        return True
    if " at " in folded and "." in folded and _HOST.search(folded):
        return True
    return any(word in folded for word in _SAID_DOTS) and any(word in folded for word in _SAID_AT)


_SAID_AT = (" at ", " arroba ", " chiocciola ", " ät ", "@")
_SIGNS = re.compile(r"[\[({<@&\\*_]|hxxp|h__p")
_HOST = re.compile(rf"\s(?:at|arroba|chiocciola|ät)\s[a-z0-9][\w+.-]*\.{_TLD}(?![\w@])")
