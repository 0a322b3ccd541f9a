"""A guard around the web interface: only this machine's own page may speak to it.

Dagster's webserver has no login, and even a GET carries a mutation: any web page the user visits could
start runs or forge materializations. Pure ASGI, because BaseHTTPMiddleware never sees websockets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

HEADERS = [
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """ASGI application that refuses what did not come from `http://<loopback>:port` itself."""

    def __init__(self, app: Any, port: int) -> None:
        self.app = app
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
        await self.app(scope, receive, _adding_headers(send))

    def verdict(self, scope: Scope) -> tuple[int, str] | None:
        """(status, reason) where the request is refused, else None."""
        found: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            found.setdefault(name.lower(), []).append(value)
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
