"""The guard refuses everything that did not come from this server's own page."""

import asyncio

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.orchestration.web_guard import Access, Guard, read_token, token_file
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace

PORT = 3999
JSON = ("content-type", "application/json")
OWN = ("origin", f"http://127.0.0.1:{PORT}")


async def _inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def ask(method="GET", path="/", query="", headers=(), host=f"127.0.0.1:{PORT}", kind="http", body=b"", **guard):
    """The status the guard gives (200: passed on), or the websocket's close code."""
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.encode(), v.encode()) for k, v in [("host", host), *headers]],
    }
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    asyncio.run(Guard(_inner, PORT, **guard)(scope, receive, send))
    return sent[0].get("status", sent[0].get("code")), sent


def test_the_page_itself_works():
    status, sent = ask()
    assert status == 200
    assert (b"x-frame-options", b"DENY") in sent[0]["headers"]
    assert ask("POST", "/graphql", "op=AssetGraph", [JSON, OWN])[0] == 200


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (405, {"path": "/graphql", "query": "query=mutation{x}"}),
        (400, {"method": "POST", "path": "/graphql", "query": "query=mutation{x}", "headers": [JSON]}),
        (415, {"method": "POST", "path": "/graphql", "headers": [("content-type", "text/plain")]}),
        (415, {"method": "POST", "path": "/graphql", "headers": [("content-type", "text/plain;application/json")]}),
        (415, {"method": "POST", "path": "/report_asset_materialization/x"}),
        (403, {"method": "POST", "path": "/graphql", "headers": [JSON, ("origin", "https://evil.example")]}),
        (403, {"method": "POST", "path": "/graphql", "headers": [JSON, ("origin", "null")]}),
        (403, {"headers": [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]}),
        (421, {"host": f"evil.example:{PORT}"}),
        (421, {"host": "127.0.0.1:1"}),
        (421, {"headers": [("host", f"127.0.0.1:{PORT}")]}),
        (405, {"method": "PUT"}),
    ],
)
def test_an_attack_is_refused(status, request_):
    assert ask(**request_)[0] == status


@pytest.mark.parametrize("origin", [(), (("origin", "https://evil.example"),), (("origin", "null"),)])
def test_a_websocket_needs_the_own_origin(origin):
    assert ask(kind="websocket", headers=origin)[0] == 1008
    assert ask(kind="websocket", headers=[OWN])[0] == 200


SECRET = "a-token-of-more-than-thirty-two-characters"


def test_the_printed_link_gives_a_cookie_and_the_cookie_or_the_token_lets_in():
    access = Access(SECRET, PORT)
    status, sent = ask(query=f"token={SECRET}", access=access)
    assert status == 303
    headers = dict(sent[0]["headers"])
    assert headers[b"location"] == b"/"
    cookie = headers[b"set-cookie"].decode()
    assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/", f"ragbench_{PORT}="))
    assert SECRET not in cookie  # cookies go to every port of this host
    brought = ("cookie", f"other=1; {cookie.split(';')[0]}")
    assert ask(headers=[brought], access=access)[0] == 200
    assert ask("POST", "/graphql", headers=[JSON, OWN, brought], access=access)[0] == 200
    assert ask(kind="websocket", headers=[OWN, brought], access=access)[0] == 200
    assert ask(headers=[("authorization", f"Bearer {SECRET}")], access=access)[0] == 200
    # Of another start, of another port.
    assert ask(headers=[brought], access=Access(SECRET, PORT))[0] == 401
    assert ask(headers=[brought], access=Access(SECRET, PORT + 1))[0] == 401


@pytest.mark.parametrize(
    "request_",
    [
        {}, {"query": "token=wrong"}, {"query": "token="}, {"path": "/graphql/", "method": "POST", "headers": [JSON, OWN]},
        {"headers": [("authorization", "Bearer ")]}, {"headers": [("authorization", f"Basic {SECRET}")]},
        {"headers": [("cookie", f"ragbench_{PORT}={SECRET}")]}, {"headers": [("cookie", "\xff=;;")]},
        {"path": "/runs", "query": f"token={SECRET}"}, {"method": "POST", "query": f"token={SECRET}", "headers": [JSON]},
    ],
)  # fmt: skip
def test_without_it_nothing_is_served(request_):
    assert ask(**request_, access=Access(SECRET, PORT))[0] == 401


def test_a_websocket_needs_it_too():
    assert ask(kind="websocket", headers=[OWN], access=Access(SECRET, PORT))[0] == 1008


@pytest.mark.parametrize(
    ("status", "path", "body"),
    [
        (200, "/graphql", b'{"query": "query A {version}"}'),
        (200, "/graphql", b'{"query": "{version} fragment F on Query {version}"}'),
        (403, "/graphql", b'{"query": "mutation {x}"}'),
        (403, "/graphql", b'{"query": "query A {version} mutation B {x}", "operationName": "A"}'),
        (403, "/graphql", b'[{"query": "{version}"}, {"query": "mutation {x}"}]'),
        (403, "/graphql", b'{"id": "a persisted query"}'),
        (403, "/graphql", b"[" * 5000),
        (403, "/graphql", b'{"query": "' + b" " * (1 << 20) + b'{version}"}'),
        (403, "/report_asset_materialization/x", b"{}"),
    ],
)
def test_read_only_passes_queries_alone(status, path, body):
    assert ask("POST", path, headers=[JSON, OWN], body=body, read_only=True)[0] == status


def test_the_token_is_made_once_for_its_user_alone(tmp_path):
    ws = Workspace(tmp_path, parse_settings(""))
    token = read_token(ws)
    assert len(token) >= 32
    assert token_file(ws).stat().st_mode & 0o777 == 0o600
    assert read_token(ws) == token
    token_file(ws).chmod(0o644)
    with pytest.raises(UserError, match="others can read"):
        read_token(ws)
    token_file(ws).chmod(0o600)
    token_file(ws).write_text("")
    with pytest.raises(UserError, match="no token"):
        read_token(ws)
