"""A guard around the web interface: only this machine's own page may speak to it, for whoever holds the token.

Dagster's webserver has no login, and even a GET carries a mutation: any web page the user visits could
start runs or forge materializations. Pure ASGI, because BaseHTTPMiddleware never sees websockets.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace

# Who may use the web interface: whoever holds the workspace's token.
#
# The address is open to every user and process of this machine, so the address alone must not start runs. The token
# lies in the workspace, for its user alone, and stays the same from start to start. A browser gets a cookie of this
# start instead: cookies go to every port of a host, and the token must not.

BYTES = 32


def token_file(ws: Workspace) -> Path:
    return ws.dagster_home / "token"


def read_token(ws: Workspace) -> str:
    """The workspace's token, made on first use (mode 600).

    Raises:
        UserError: it cannot be read or written, or others can read it.
    """
    path = token_file(ws)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return _known(path)
    except OSError as fault:
        raise UserError(f"{path}: cannot be written ({fault.strerror}); make its folder writable") from fault
    token = secrets.token_urlsafe(BYTES)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _known(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise UserError(f"{path}: others can read the token; delete it, the next start makes another")
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise UserError(
            f"{path}: cannot be read ({type(fault).__name__}); delete it, the next start makes another"
        ) from fault
    if len(token) < BYTES:
        raise UserError(f"{path}: holds no token; delete it, the next start makes another")
    return token


class Access:
    """Checks what a request brings, for one start on one port.

    Args:
        token: the workspace's.
        port: part of the cookie's name, for two servers of one host share their cookies.
    """

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self.cookie = f"ragbench_{port}"
        self._session = hmac.new(token.encode(), secrets.token_bytes(16), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def set_cookie(self) -> bytes:
        """The header that lets this browser in until the server ends."""
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/".encode()

    def allows(self, headers: dict[bytes, list[bytes]]) -> bool:
        """Whether the headers bring the token (`Authorization: Bearer`) or this start's cookie."""
        for value in headers.get(b"authorization", []):
            kind, _, given = value.decode("latin-1").partition(" ")
            if kind.lower() == "bearer" and self.is_token(given.strip()):
                return True
        return any(self._is_session(value.decode("latin-1")) for value in headers.get(b"cookie", []))

    def _is_session(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode("utf-8", "replace"), self._session.encode())


# A guard around the web interface: only this machine's own page may speak to it, for whoever holds the token.

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MAX_QUERY = 1 << 20  # bytes; the page's longest are some kB
HEADERS = [
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """ASGI application that refuses what did not come from `http://<loopback>:port` itself.

    Args:
        app: Dagster's.
        port: where it listens.
        access: who may use it; None lets everybody on this machine in.
        read_only: nothing that changes anything is passed on.
    """

    def __init__(self, app: Any, port: int, access: Access | None = None, read_only: bool = False) -> None:
        self.app = app
        self.access = access
        self.read_only = read_only
        names = ("127.0.0.1", "localhost", "[::1]")
        self.hosts = {f"{name}:{port}".encode() for name in names}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refused = self.verdict(scope)
        if refused:
            await _refuse(scope, send, *refused)
            return
        if self.access is not None and not self.access.allows(_headers(scope)):
            given = _given_token(scope)
            if given is not None and self.access.is_token(given):
                await _let_in(send, self.access)
            else:
                await _refuse(scope, send, 401, "open the link that `ragbench dev` printed")
            return
        if self.read_only and scope["type"] == "http" and scope["method"] == "POST":
            body = await _whole_body(receive)
            if body is None or changes_something(scope["path"], body):
                await _refuse(scope, send, 403, "read-only: ragbench dev runs with --read-only")
                return
            receive = _again(body, receive)
        await self.app(scope, receive, _adding_headers(send))

    def verdict(self, scope: Scope) -> tuple[int, str] | None:
        """(status, reason) where the request is refused, else None."""
        found = _headers(scope)
        hosts, origins = found.get(b"host", []), found.get(b"origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421, "this server answers on its loopback address only"
        if any(o.lower() not in self.origins for o in origins):
            return 403, "foreign origin"
        if scope["type"] == "websocket":
            return None if origins else (403, "a websocket needs an origin")
        return self._http(scope, found)

    def _http(self, scope: Scope, found: dict[bytes, list[bytes]]) -> tuple[int, str] | None:
        method, path = scope["method"], scope["path"]
        navigation = found.get(b"sec-fetch-mode") == [b"navigate"] and method == "GET"
        if not navigation and any(v in (b"cross-site", b"same-site") for v in found.get(b"sec-fetch-site", [])):
            return 403, "cross-site request"
        if method not in ("GET", "HEAD", "POST"):
            return 405, "method not allowed"
        graphql = path.rstrip("/").endswith("/graphql")
        if graphql and method != "POST":
            return 405, "GraphQL takes POST only: a GET could carry a mutation"
        if graphql:
            # The page posts to /graphql?op=NAME; a query or mutation in the URL is refused.
            names = {name for name, _ in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)}
            if names - {"op"}:
                return 400, "unexpected query string"
        if method == "POST":
            kinds = found.get(b"content-type", [])
            # Exactly application/json: "text/plain;application/json" needs no CORS preflight.
            if len(kinds) != 1 or kinds[0].split(b";")[0].strip().lower() != b"application/json":
                return 415, "POST takes application/json only"
        return None


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


def _given_token(scope: Scope) -> str | None:
    """The token in the address of the printed link; nowhere else is one taken from an address."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/":
        return None
    return dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token")


async def _let_in(send: Send, access: Access) -> None:
    # To the same page without the token, which then stands in no history and no referrer.
    headers = [(b"location", b"/"), (b"set-cookie", access.set_cookie()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 303, "headers": headers + HEADERS})
    await send({"type": "http.response.body", "body": b""})


async def _whole_body(receive: Receive) -> bytes | None:
    """The body of a request; None where it is longer than any query of the page."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_QUERY:
            return None
        if not message.get("more_body"):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    held = [{"type": "http.request", "body": body, "more_body": False}]

    async def wrapped() -> MutableMapping[str, Any]:
        return held.pop() if held else await receive()

    return wrapped


def changes_something(path: str, body: bytes) -> bool:
    """Whether a POST is anything but GraphQL queries; what cannot be read is taken to change something."""
    if not path.rstrip("/").endswith("/graphql"):
        return True
    from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse

    try:
        asked = json.loads(body)
        documents = [parse(one["query"]) for one in (asked if isinstance(asked, list) else [asked])]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, GraphQLError):
        return True
    found = [d for document in documents for d in document.definitions if isinstance(d, OperationDefinitionNode)]
    return not found or any(d.operation is OperationType.MUTATION for d in found)


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    body = reason.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers + HEADERS})
    await send({"type": "http.response.body", "body": body})


def _adding_headers(send: Send) -> Send:
    async def wrapped(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return wrapped
