"""Settings that may need a secret: addresses and headers. The secret itself stands in a variable, `${NAME}`.

    api_base: "https://gateway.example/v1?api-key=${GATEWAY_KEY}"
    headers:  {Authorization: "Bearer ${MY_TOKEN}"}

A secret that is written out is refused. What is printed, stored, hashed and compared is the form without it. How
values of variables are taken out of text from outside belongs in `masking`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from ragbench_dagster.errors import UserError

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
HIDDEN = "***"
USER_IN_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*@")

# A URL anywhere in a text: scheme, user and password, the rest. fsspec chains them with `::`.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[^/?#\s]*)@)?(?P<rest>[^\s]*)")
_PARAMETER = re.compile(r"(?P<mark>[?&;#])(?P<name>[^=&;#?\s]+)=(?P<value>[^&;#\s]*)")
# Before the `@` stands an account or a container, not a password: az://container@account, github://org:repo@branch
_NAMES_ONLY = frozenset(("az", "abfs", "abfss", "adl", "wasb", "wasbs", "github", "git"))
# Names of parameters, headers and keys whose value is a secret, whatever it looks like.
_STRONG = re.compile(
    r"pass(?:w(?:or)?d|phrase)?s?|pwd|secrets?|api-?key|access-?key|secret-?key|private-?key|account-?key|client-?secret"
    r"|authorization|cookie|credentials?|subscription-key|ssl-?password|connection-string|access-?token|auth-?token"
    r"|api-?token|bearer-?token|refresh-?token"
)
# Names that say it only beside a value that looks like one: `eos_token: "</s>"`, `key: title`.
_WEAK = re.compile(r"key|token|auth|code|sig|signature|session|sas|jwt|bearer|session-?key|session-?token")
_SCHEME_WORD = re.compile(r"(?:bearer|basic|token|apikey|api-key|key|digest)?\s*", re.IGNORECASE)
_NO_SECRET = frozenset(("", "none", "null", "true", "false", "no", "yes", "0", "1", "on", "off", "anonymous"))
# Shapes of keys that providers document, and of tokens that carry their own data.
_KEY_SHAPE = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{16,}|(?:sk|pk|rk)_(?:live|test)_\w{8,}|gh[oprsu]_\w{16,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|gsk_\w{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|SG\.[\w-]{16,}\.[\w-]{16,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*)"
)
# `host=h user=u password=...`, `Server=...;Pwd=...;`: connection strings that hold a password
_IN_CONNECTION = re.compile(
    r"(?:^|[\s;])(?P<name>pass(?:w(?:or)?d|phrase)?|pwd|secret|account-?key|shared-?access-?key)\s*=\s*(?P<value>[^\s;]+)",
    re.IGNORECASE,
)
_OPAQUE = re.compile(r"[A-Za-z0-9_+/=.~-]{16,}")


class Concealed:
    """A text of the settings that may name variables; it prints, stores, hashes and compares without secrets.

    `reveal` gives the text with the variables' values, for the one call that needs it.
    """

    __slots__ = ("_shown", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._shown = without_secrets(text)

    def reveal(self, key: str) -> str:
        """The text with each ${NAME} replaced by that variable.

        Args:
            key: of the settings, for the error.

        Raises:
            UserError: a variable is not set; the line names it.
        """
        return expand(self._text, key)

    @property
    def variables(self) -> list[str]:
        """The variables that it names."""
        return VARIABLE.findall(self._text)

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return repr(self._shown)

    def __eq__(self, other: object) -> bool:
        return self._shown == (other._shown if isinstance(other, Concealed) else other)

    def __hash__(self) -> int:
        return hash(self._shown)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._shown,)

    @classmethod
    def _made(cls, value: Any) -> Concealed:
        if isinstance(value, Concealed):
            return value
        if not isinstance(value, str):
            raise ValueError("must be text")
        for fault in literal_secrets(value):
            raise ValueError(fault)
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._made, serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        )


def expand(text: str, key: str) -> str:
    """`text` with each ${NAME} replaced by that environment variable.

    Raises:
        UserError: the variable is not set; the line names it.
    """

    def of(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if not found:
            raise UserError(f"{key}: the environment variable {match[1]} is not set; set it and run again")
        return found

    return VARIABLE.sub(of, text)


def expand_all(value: Any, key: str) -> Any:
    """`value` with the variables in every text of it replaced; other values as they are."""
    if isinstance(value, str):
        return expand(value, key)
    if isinstance(value, Concealed):
        return value.reveal(key)
    if isinstance(value, Mapping):
        return {name: expand_all(inner, f"{key}.{name}") for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [expand_all(inner, key) for inner in value]
    return value


def variables_of(value: Any) -> set[str]:
    """Every variable that a setting, or anything inside it, names."""
    if isinstance(value, str):
        return set(VARIABLE.findall(value))
    if isinstance(value, Concealed):
        return set(value.variables)
    if isinstance(value, Mapping):
        return {name for inner in value.values() for name in variables_of(inner)}
    if isinstance(value, list | tuple):
        return {name for inner in value for name in variables_of(inner)}
    return set()


def without_secrets(text: str) -> str:
    """`text` with every secret that is written out replaced by `***`; names of variables stay."""

    def url(match: re.Match[str]) -> str:
        user, rest = match["user"], _PARAMETER.sub(parameter, match["rest"])
        if user is not None and not _is_harmless_user(match["scheme"], user):
            user = user if _is_variables(user) else HIDDEN
        return f"{match['scheme']}://" + ("" if user is None else f"{user}@") + rest

    def parameter(match: re.Match[str]) -> str:
        value = match["value"]
        hidden = is_named_secret(match["name"], value, in_url=True) or looks_secret(value)
        return f"{match['mark']}{match['name']}={HIDDEN if hidden else value}"

    return _KEY_SHAPE.sub(HIDDEN, _URL.sub(url, text))


def literal_secrets(text: str, suggested: str = "NAME") -> Iterator[str]:
    """What is wrong with a text that holds a secret itself: one line each, which names the variable to use.

    Args:
        text: an address, a header or any other text of the settings.
        suggested: begins the variable's name in the line.
    """
    for match in _URL.finditer(text):
        user = match["user"]
        if user is not None and not _is_harmless_user(match["scheme"], user) and not _is_variables(user):
            name = _variable(suggested, "password")
            yield f"holds a user or password; write USER:${{{name}}}@ in its place and set the variable {name}"
        for found in _PARAMETER.finditer(match["rest"]):
            if is_named_secret(found["name"], found["value"], in_url=True) or looks_secret(found["value"]):
                name = _variable(suggested, found["name"])
                yield (
                    f"holds a secret ({found['name'][:40]}); write {found['name'][:40]}=${{{name}}} in its place "
                    f"and set the variable {name}"
                )
    for found in _IN_CONNECTION.finditer(text):
        if not _is_variables(found["value"]) and "://" not in text:
            name = _variable(suggested, "password")
            yield (f"holds a password; write {found['name'][:40]}=${{{name}}} in its place and set the variable {name}")
    if _KEY_SHAPE.search(text):
        name = _variable(suggested, "key")
        yield f"holds a key; write ${{{name}}} in its place and set the variable {name}"


def secrets_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every secret that is written out in the settings: `KEY: what is wrong and which variable to use`."""
    if isinstance(value, Mapping):
        named = value.get("path") if isinstance(value.get("path"), str) else None
        for name, inner in value.items():
            # In {api_key: {const: ...}} and {x: {path: auth.api_key, const: ...}} the constant is the key.
            at = (*path, str(name))
            if name == "const" and isinstance(inner, str):
                names = [path[-1] if path else "", (named or "").rsplit(".", 1)[-1]]
                yield from _named_secrets(names, inner, at)
            yield from secrets_in(inner, at)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from secrets_in(inner, path)
    elif isinstance(value, str):
        found = [*literal_secrets(value, suggestion(path))]
        if path[-1:] == ("api_base",) and USER_IN_URL.match(value):
            found = ["a chat API takes no user:password@; put the key's variable into api_key_env"]
        yield from (f"{'.'.join(path)}: {line}" for line in found)
        if not found and path and path[-1] != "const":
            yield from _named_secrets([path[-1]], value, path, in_header="headers" in path)


def _named_secrets(names: list[str], value: str, path: tuple[str, ...], in_header: bool = False) -> Iterator[str]:
    """A text that is a secret because of its name: a header's, a parameter's."""
    if any(name and is_named_secret(name, value) for name in names) or (in_header and looks_secret(value)):
        variable = suggestion(path)
        word = re.match(r"(?:bearer|basic|token|apikey|api-key|key)\s+", value, re.IGNORECASE)
        instead = f"{word[0] if word else ''}${{{variable}}}"
        yield f"{'.'.join(path)}: holds a secret; write {instead} in its place and set the variable {variable}"


def suggestion(path: tuple[str, ...]) -> str:
    """A name for the variable of the setting at `path`: systems.prod.headers.X-Api-Key -> PROD_X_API_KEY."""
    dull = (
        "systems",
        "headers",
        "params",
        "request",
        "const",
        "url",
        "api_base",
        "mlflow_uri",
        "source",
        "tracking",
        "extra",
    )
    words = [name for name in path if name not in dull or (name == "tracking" and path[-1] != "mlflow_uri")]
    if path[-1:] == ("mlflow_uri",):
        words = ["mlflow"]
    return re.sub(r"[^A-Z0-9]+", "_", "_".join(words).upper()).strip("_") or "NAME"


def _variable(begin: str, name: str) -> str:
    end = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    found = begin if begin.endswith(end) or begin == "NAME" else f"{begin}_{end}"
    return found[:64]


def looks_secret(value: str) -> bool:
    """True of a long word of mixed letters and digits, as no host, version, path or date is."""
    if not value or VARIABLE.search(value):
        return False
    if _KEY_SHAPE.search(value):
        return True
    word = value.rsplit(" ", 1)[-1]
    if not _OPAQUE.fullmatch(word) or word.count("/") > 3:
        return False
    core = re.sub(r"[^A-Za-z0-9]", "", word)
    digits = sum(c.isdigit() for c in core)
    letters = len(core) - digits
    if re.fullmatch(r"[0-9a-fA-F]{24,}", core):
        return bool(digits and letters)
    changes = sum(a.isdigit() != b.isdigit() or a.isupper() != b.isupper() for a, b in pairwise(core))
    return digits >= 2 and letters >= 6 and len(core) >= 16 and changes * 4 >= len(core)


def is_named_secret(name: str, value: str, in_url: bool = False) -> bool:
    """Whether the value under this name is a secret that is written out."""
    rest = VARIABLE.sub("", value)
    if rest.strip().casefold() in _NO_SECRET or (rest != value and _SCHEME_WORD.fullmatch(rest)):
        return False
    flat = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.\s]+", "-", name).casefold().strip("-")
    if flat.endswith(("-env", "-file", "-path", "-url", "-name", "-field")):
        return False
    strong = re.search(rf"(?:^|-)(?:{_STRONG.pattern})$", flat)
    weak = re.search(rf"(?:^|-)(?:{_WEAK.pattern})$", flat)
    if strong or (weak and in_url):
        return True
    core = rest.strip()
    mixed = any(c.isdigit() for c in core) and any(c.isalpha() for c in core)
    return bool(weak) and " " not in core and len(core) >= 10 and (mixed or looks_secret(core))


def _is_harmless_user(scheme: str, user: str) -> bool:
    """An account, bucket or container, but no password; of http even a lone user may be a token."""
    if scheme.casefold() in _NAMES_ONLY:
        return True
    name, colon, password = user.partition(":")
    if colon and password:
        return _is_variables(password) and not looks_secret(name)
    return scheme.casefold() not in ("http", "https") and not looks_secret(name)


def _is_variables(text: str) -> bool:
    """Nothing but variables (and a name before the colon) stands there."""
    name, colon, password = text.partition(":")
    return not VARIABLE.sub("", password if colon else name).strip()
