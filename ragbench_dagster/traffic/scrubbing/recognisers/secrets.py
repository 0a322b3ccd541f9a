"""Secrets: provider keys by their prefixes, tokens, private keys, passwords and PINs by the words before them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ragbench_dagster.traffic.scrubbing.normalise import LEFT, RIGHT, UNSPACED
from ragbench_dagster.traffic.scrubbing.prefilter import Caseless, Facts, holds
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

# literal that must be in the text -> the key's shape. Prefixes as the providers document them.
_PREFIXED: tuple[tuple[str, str], ...] = (
    ("AKIA", r"\bAKIA[0-9A-Z]{12,20}\b"),
    ("ASIA", r"\bASIA[0-9A-Z]{16}\b"),
    ("gh", r"\bgh[oprsu]_[A-Za-z0-9]{16,255}\b"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,255}\b"),
    ("glpat-", r"\bgl(?:pat|ptt|dt|rt|cbt|ft|soat)-[A-Za-z0-9_.-]{16,255}"),
    ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    ("xapp-", r"\bxapp-[A-Za-z0-9-]{10,255}"),
    ("hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{10,255}"),
    ("sk", r"\bsk-(?:proj-|ant-|or-|svcacct-|admin-|live-|test-)?[A-Za-z0-9_-]{16,255}"),
    ("k_", r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,255}\b"),
    ("_", r"\b[a-z][a-z0-9]{1,15}_(?:live|test|prod|dev|sandbox|secret|api|key|pat|token|sk|pk|rk)_[A-Za-z0-9]{12,255}\b"),
    ("whsec_", r"\bwhsec_[A-Za-z0-9+/=]{16,255}"),
    ("AIza", r"\bAIza[0-9A-Za-z_-]{30,45}"),
    ("ya29.", r"\bya29\.[0-9A-Za-z_-]{20,500}"),
    ("GOCSPX-", r"\bGOCSPX-[0-9A-Za-z_-]{20,40}"),
    ("AccountKey=", r"AccountKey=[A-Za-z0-9+/=]{40,120}"),
    ("SharedAccess", r"SharedAccess(?:Key|Signature)=[^\s;\"']{20,300}"),
    ("SG.", r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    ("key-", r"\bkey-[0-9a-f]{32}\b"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{30,40}\b"),
    ("pypi-", r"\bpypi-[A-Za-z0-9_-]{40,255}"),
    ("hf_", r"\bhf_[A-Za-z0-9]{20,50}\b"),
    ("dapi", r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
    ("_v1_", r"\bdo[opr]_v1_[0-9a-f]{40,70}\b"),
    ("shp", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b"),
    ("sq0", r"\bsq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,50}"),
    ("hvs.", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,200}"),
    ("lin_", r"\blin_(?:api|oauth)_[A-Za-z0-9]{30,50}\b"),
    ("secret_", r"\bsecret_[A-Za-z0-9]{40,50}\b"),
    ("ntn_", r"\bntn_[A-Za-z0-9]{40,50}\b"),
    ("gl", r"\bgl(?:c|sa)_[A-Za-z0-9_+/=-]{30,255}"),
    ("nfp_", r"\bnfp_[A-Za-z0-9]{30,50}\b"),
    ("sbp_", r"\bsbp_[0-9a-f]{40}\b"),
    ("ATATT", r"\bATATT[A-Za-z0-9_=-]{50,300}"),
    ("NRAK-", r"\bNRAK-[A-Z0-9]{27}\b"),
    ("PMAK-", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b"),
    ("figd_", r"\bfigd_[A-Za-z0-9_-]{30,60}"),
    ("gsk_", r"\bgsk_[A-Za-z0-9]{40,60}\b"),
    ("r8_", r"\br8_[A-Za-z0-9]{35,45}\b"),
    ("pplx-", r"\bpplx-[A-Za-z0-9]{40,60}\b"),
    ("xai-", r"\bxai-[A-Za-z0-9]{40,100}\b"),
    (":AA", r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,34}"),
    ("SK", r"\b(?:SK|AC)[0-9a-f]{32}\b"),
    ("AC", r"\bAC[0-9a-f]{32}\b"),
    ("PRIVATE KEY", r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,8000}?(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\Z)"),
    ("AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{40,80}"),
    ("eyJ", r"\beyJ[A-Za-z0-9_-]{5,4000}\.[A-Za-z0-9_-]{5,8000}(?:\.[A-Za-z0-9_-]{0,4000})?"),
)  # fmt: skip
_RULES = tuple((literal, re.compile(pattern, re.ASCII)) for literal, pattern in _PREFIXED)

# A value ends where a script without spaces begins: "token abc123不行".
_VALUE = rf"[^\s\"'`<>,;{UNSPACED}]"
_AUTHORIZATION = re.compile(
    r"\b(?:bearer|basic|token|apikey|digest)\s{1,3}(?P<v>[A-Za-z0-9_.~+/=-]{16,8000})", re.IGNORECASE | re.ASCII
)
_FOREIGN_WORD = (
    "密码|密碼|口令|密钥|パスワード|暗証番号|비밀번호|รหัสผ่าน|пароль|κωδικός|पासवर्ड|كلمة المرور|סיסמה|mật khẩu"
)
_NAMED = Caseless(
    rf"(?:{LEFT}"
    r"(?:[\w-]{0,40}?(?:api[ _-]?key|access[ _-]?key|secret[ _-]?key|private[ _-]?key|client[ _-]?secret"
    r"|(?:access|auth|refresh|session|bearer|id|api)[ _-]?token|secret|token|pass?w(?:or|ro|r)d?s?|pw|passwort|passwd|passphrase|pwd"
    r"|passcode|contrase(?:ñ|n)a|mot de passe|senha|wachtwoord|credentials?))"
    rf"{RIGHT}|{_FOREIGN_WORD})"
    r"(?P<sep>[\"']?\s{0,3}(?:=>|:=|=|:|\bis\b:?|\bwas\b|\bist\b|\best\b|\bes\b|->|是|为|為|は|은|는|คือ)\s{0,3})"
    rf"(?:(?P<q>[\"'`])(?P<quoted>[^\"'`\n]{{3,200}})(?P=q)|(?P<v>{_VALUE}{{4,500}}))",
)
# The words and the value without anything in between, or with a few words and "is".
# "key COVID-19 measures", "token ERC-20", "key ISO-27001": a name of a thing, not of a secret.
_THING = re.compile(
    r"(?:[A-Za-z.+]+|\d{1,4})(?:[-_.](?:[A-Za-z.+]+\d{0,2}[A-Za-z]?|\d{1,5}[A-Za-z]?))*\d{0,4}(?:'s|’s)?"
)
_BESIDE = re.compile(
    LEFT
    + r"(?:pass?w(?:or|ro|r)d?s?|pw|passwort|passwd|passphrase|pwd|passcode|api[ _-]?keys?|secret(?:[ _-]?key)?|client[ _-]?secret|access[ _-]?(?:key|token)|token|key|credentials?)"
    + RIGHT
    + r"(?:\s(?:for|of|to|on|in)\s[^.?!\n]{1,40}?\s(?:is|was)\s|\s{1,2})"
    rf"(?P<v>{_VALUE}{{8,500}})",
    re.IGNORECASE,
)
# A long token of mixed letters and digits that no hash, UUID or identifier is.
_RANDOM = re.compile(r"(?<![\w/.@#:=&%+-])[A-Za-z0-9_+/-]{24,512}={0,2}(?![\w/.@+-]*[\w])", re.ASCII)
_NUMBERED = re.compile(
    LEFT + r"(?:pin(?: ?(?:code|number))?|cvv2?|cvc2?|csc|otp|one[- ]time (?:code|password)|passcode|security code"
    r"|verification code|2fa code|sms code)"
    + RIGHT
    + r"(?:\s{0,2}(?:=|:|is|was|are)?\s{0,2}|\s+i (?:got|received) (?:is|was)\s+)"
    r"(?P<v>\d[\d -]{1,8}\d)(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)
# A session's key: behind the names that frameworks give its cookie or field, or with the prefix that says so.
_SESSION = Caseless(
    rf"{LEFT}(?:[\w.-]{{0,30}}?(?:session[ _-]?(?:id|key)|sess[ _-]?id|jsessionid|phpsessid|aspsessionid\w{{0,8}}"
    r"|asp\.net_sessionid|connect\.sid|csrf(?:token)?|xsrf(?:-token)?)|sid|session)"
    rf"(?:[\"']?\s{{0,2}}(?:=>|:=|=|:|\bis\b)\s{{0,2}}[\"']?|\s)(?P<v>[A-Za-z0-9%._~+/=-]{{12,500}})",
)
_SESSION_PREFIX = re.compile(
    r"(?<![A-Za-z0-9])(?:sess|session|sid|tok|token|rt|at|auth|jti|csrf|nonce)[_-](?P<v>[A-Za-z0-9]{16,255})(?![A-Za-z0-9])",
    re.IGNORECASE | re.ASCII,
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SESSION_WORDS = ("sess", "sid", "srf", "tok", "rt_", "rt-", "at_", "at-", "auth", "jti", "nonce")
_NAMED_WORDS = (
    "key", "secret", "token", "pas", "pw", "contrase", "senha", "wachtwoord", "credential",
    *(word.casefold() for word in _FOREIGN_WORD.split("|")),
)  # fmt: skip
_NUMBER_WORDS = ("pin", "cv", "csc", "otp", "code", "one")
_AUTH_WORDS = ("bearer", "basic", "token", "apikey", "digest")


def _looks_secret(value: str, separator: str) -> bool:
    """A value that no ordinary word is: digits or symbols mixed in, or a capital inside."""
    core = value.strip(".,;:!?()[]{}")
    if len(core) < 4 or (core.startswith(("$", "%")) and core[1:].strip("{}()%").isidentifier()):
        return False  # a variable's name
    letters, digits = sum(c.isalpha() for c in core), sum(c.isdigit() for c in core)
    symbols = len(core) - letters - digits
    inner = any(c.isupper() for c in core[1:]) and any(c.islower() for c in core)
    if letters and digits:
        return len(core) >= 5
    if symbols and letters and not re.fullmatch(r"[A-Za-z]+(?:['/_-][A-Za-z]+)*", core):
        return len(core) >= 6
    if inner:
        return len(core) >= 8
    return bool(
        digits and not letters and len(core) >= 4 and ("=" in separator or ":" in separator or "is" in separator)
    )


def _mixed(value: str) -> bool:
    """Letters with digits, and a capital or a symbol too: no word, no number, no file name."""
    letters = any(c.isalpha() for c in value)
    digits = sum(c.isdigit() for c in value)
    other = any(not c.isalnum() and c not in "._-/" for c in value) or any(c.isupper() for c in value[1:])
    return letters and digits >= 1 and other and not re.fullmatch(r"[\w./-]*\.[a-z]{1,5}", value)


def _random(value: str) -> bool:
    """Capitals, small letters and digits mixed as in a random token; hexadecimal and words in a row are not."""
    core = [c for c in value if c.isalnum()]
    upper, lower, digits = (sum(test(c) for c in core) for test in (str.isupper, str.islower, str.isdigit))
    changes = sum(a.isdigit() != b.isdigit() or a.isupper() != b.isupper() for a, b in pairwise(core))
    mixed = min(upper, lower, digits) >= 2 and upper + lower >= 8 and changes * 4 >= len(core)
    return mixed and len(re.findall(r"[0-9]+", value)) >= 3 and value.count("/") <= 3


def secrets(facts: Facts) -> Iterator[Span]:
    """API keys, tokens, JWTs, private keys; passwords and PINs after the words for them."""
    text, folded = facts.text, facts.folded
    for literal, pattern in _RULES:
        if literal in text:
            for match in pattern.finditer(text):
                yield Span(match.start(), match.end(), "SECRET")
    if holds(folded, _AUTH_WORDS):
        for match in _AUTHORIZATION.finditer(text):
            value = match["v"]
            if re.search(r"\d", value) or len(value) >= 24:
                yield Span(match.start("v"), match.end("v"), "SECRET", evidence=Evidence.ANNOUNCED)
    if holds(folded, _NAMED_WORDS):
        for match in _NAMED.finditer(facts):
            if match["quoted"] is not None:
                if not match["quoted"].isspace():
                    yield Span(match.start("quoted"), match.end("quoted"), "SECRET", evidence=Evidence.ANNOUNCED)
            elif _looks_secret(text[slice(*match.span("v"))], match["sep"]):
                value = match["v"].rstrip(".,;:?)]}")
                yield Span(match.start("v"), match.start("v") + len(value), "SECRET", evidence=Evidence.ANNOUNCED)
        for match in _BESIDE.finditer(text):
            value = match["v"].rstrip(".,;:?)]}")
            if _mixed(value) and not _THING.fullmatch(value):
                yield Span(match.start("v"), match.start("v") + len(value), "SECRET", evidence=Evidence.BESIDE)
    if facts.digit and holds(folded, _SESSION_WORDS):
        yield from _sessions(facts)
    if facts.digit:
        for match in _RANDOM.finditer(text):
            if _random(match[0]):
                yield Span(match.start(), match.end(), "SECRET")
    if facts.digit and holds(folded, _NUMBER_WORDS):
        for match in _NUMBERED.finditer(text):
            yield Span(match.start("v"), match.end("v"), "SECRET", evidence=Evidence.ANNOUNCED)


def _sessions(facts: Facts) -> Iterator[Span]:
    """Keys of sessions: what stands behind their names, and what their prefixes announce."""
    text = facts.text
    for match in _SESSION.finditer(facts):
        value = text[slice(*match.span("v"))].rstrip(".,")
        if _UUID.fullmatch(value):  # names a session in a ticket or a trace; whoever has it cannot use it
            continue
        if sum(c.isdigit() for c in value) >= 3 and any(c.isalpha() for c in value) and not _THING.fullmatch(value):
            yield Span(match.start("v"), match.start("v") + len(value), "SECRET", evidence=Evidence.ANNOUNCED)
    for match in _SESSION_PREFIX.finditer(text):
        value = match["v"]
        if sum(c.isdigit() for c in value) >= 3 and any(c.isalpha() for c in value):
            yield Span(match.start(), match.end(), "SECRET")


def might_secret(facts: Facts) -> bool:
    text, folded = facts.text, facts.folded
    return (
        facts.digit
        or holds(folded, _NAMED_WORDS)
        or holds(folded, _AUTH_WORDS)
        or holds(text, (lit for lit, _ in _RULES))
    )
