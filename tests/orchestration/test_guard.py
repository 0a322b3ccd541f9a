"""The guard refuses everything that did not come from this server's own page."""

import asyncio

import pytest

from ragbench_dagster.orchestration.guard import Guard

PORT = 3999
JSON = ("content-type", "application/json")
OWN = ("origin", f"http://127.0.0.1:{PORT}")


async def _inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def ask(method="GET", path="/", query="", headers=(), host=f"127.0.0.1:{PORT}", kind="http"):
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
        return {"type": "http.request", "body": b"", "more_body": False}

    asyncio.run(Guard(_inner, PORT)(scope, receive, send))
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
