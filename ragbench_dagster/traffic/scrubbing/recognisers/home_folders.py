"""The account's name in the path of a home folder: often a first and a last name. The rest of the path stays.

Spellings: Windows with either slash, doubled in JSON or source code, drives of WSL, Cygwin and Git Bash, shares
(UNC), `file://`, percent-encoded, POSIX homes, mail spools and removable media, and paths joined by dashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.prefilter import Facts, holds
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import NAME, ORDINARY, Lexicon, word_list
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

_SEP = r"(?:[\\/]{1,4}|%5[Cc]|%2[Ff])"
_NAME_CH = r"(?:[^\W_]|[_.'-]|%20|%C[23]%[0-9A-Fa-f]{2}|[+@$](?=[\w]))"
_NAME = rf"(?P<n>[^\W_](?:{_NAME_CH}){{0,63}})"
# A second and third word only where a separator follows at once: "C:\Users\Jane Roe\Documents".
_SPACED = rf"(?P<s>[^\W_](?:{_NAME_CH}){{0,31}}(?:[ +][^\W\d_](?:[\w.'-]){{0,31}}){{1,3}})(?=[\\/]{{1,4}}[^\s\\/])"
_USERS = (
    r"(?:Users|Documents(?: |%20|\+)and(?: |%20|\+)Settings|Benutzer|Utilisateurs|Usuarios|Usu[aá]rios|Utenti"
    r"|Gebruikers|U[zż]ytkownicy|Användare|Brugere|Brukere|Пользователи)"
)
_DRIVE = r"(?:(?<![A-Za-z0-9])[A-Za-z](?::|%3[Aa])|(?<![A-Za-z0-9._~-])/(?:mnt|cygdrive)/[A-Za-z]|(?<![\w./~-])/[a-z](?=/Users/)|file:/{2,3}[A-Za-z](?::|%3[Aa]|\|))"
_SHARE = r"(?<![\\\w:])\\{2,4}(?:\?\\{1,2}(?:UNC\\{1,2})?)?[A-Za-z0-9._$-]{1,63}(?:\\{1,2}[A-Za-z0-9._$-]{1,40})?"
_WINDOWS = re.compile(
    rf"(?:{_DRIVE}|{_SHARE}){_SEP}(?:{_USERS}|home\$?|homes|users?\$|profiles?\$?|userdata\$?){_SEP}(?:{_SPACED}|{_NAME})",
    re.IGNORECASE,
)
# Not "example.com/home/x" and not "docs/home/x": the root, or one of the roots that homes are mounted under.
_ROOT = (
    r"(?:(?<![A-Za-z0-9._~%/)\]}-])(?:file:(?://(?:localhost)?)?|smb://[\w.-]{1,63}|[\w.-]{1,63}:(?=/))?"
    r"(?:/(?:export|usr|var|net|nfs|srv|System/Volumes/Data|mnt/[\w.-]{1,30}|Volumes/[\w .-]{1,30}|private/var))?)"
)
_POSIX = re.compile(
    rf"{_ROOT}/(?:home|Users|var/(?:spool/)?mail|var/spool/cron/crontabs|run/media|media)/(?:{_SPACED}|{_NAME})"
)
_ENCODED = re.compile(rf"(?<![A-Za-z0-9%])(?:file%3A(?:%2F){{2,3}})?%2F(?:home|Users)%2F{_NAME}", re.IGNORECASE)
_DASHED = re.compile(r"(?<![A-Za-z0-9-])-(?:home|Users)-(?P<n>[A-Za-z0-9]{2,40})-(?=[A-Za-z0-9])")
_TILDE = re.compile(r"(?<![\w/~.-])~(?P<n>[a-z][a-z0-9_-]{1,31})/(?=[\w.])")
_FILE = re.compile(
    r"(?i)\.(?:html?|php|jsp|aspx?|[jt]sx?|css|py|rb|go|json|xml|ya?ml|txt|md|log|csv|png|jpe?g|gif|svg|ico|pdf|zip|sh|bat|exe|ini|cfg|conf)\Z"
)
_NOBODY = word_list("accounts")


def home_folders(facts: Facts, lex: Lexicon) -> Iterator[Span]:
    """Names of accounts in paths."""
    text = facts.text
    for pattern in (_WINDOWS, _POSIX, _ENCODED, _DASHED, _TILDE):
        for match in pattern.finditer(text):
            groups = match.groupdict()
            part = "s" if groups.get("s") else "n"
            start, end = match.span(part)
            end -= len(match[part]) - len(match[part].rstrip(".'"))
            if _somebody(text[start:end], text[end : end + 1], lex):
                yield Span(start, end, "PERSON", 0.9, Evidence.ANNOUNCED)


def _somebody(name: str, after: str, lex: Lexicon) -> bool:
    """No folder of the system, no file, and no everyday word that is no name ("/home/dashboard")."""
    plain = name.replace("%20", " ").replace("+", " ").lower()
    if plain in _NOBODY or (_FILE.search(name) and after not in ("/", "\\")):
        return False
    if not any(ch.isalpha() for ch in plain):
        return len(plain) > 5 and plain.isdigit()  # a staff number
    bits = lex.flags(plain)
    return bool(bits & NAME) or not bits & ORDINARY


def might_home(facts: Facts) -> bool:
    """A separator, plain or encoded, right before one of the folders, or a home's short form."""
    return holds(facts.text, _SIGNS) and _HINT.search(facts.text) is not None


_SIGNS = ("/", "\\", "~", "%", "-")  # what every hint begins with


_HINT = re.compile(
    rf"(?:[\\/-]|%5c|%2f)(?:{_USERS}|home|profile|userdata|user|var/(?:spool/)?(?:mail|cron)|run/media|media)|~[a-z]",
    re.IGNORECASE,
)
