"""A system behind an HTTP endpoint that speaks JSON. Field names are mapped in `ragbench.yaml`, ours: theirs.

    request:  {query: question, history: messages, top: {path: options.top_k, const: 5}}
    response: {response: answer, source_nodes: passages, source_nodes.node_id: pid}

One attempt is the system's own time; waits between attempts and for the rate are not. Errors name the status,
never the URL's query, the headers or the text. A redirect is followed within the origin of `url` only: the question
and the keys go nowhere else.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
from yarl import URL

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.answer_body import ACCEPTED, LONGEST_REPLY, Body, TooLong
from ragbench_dagster.evaluation.destinations import PrivateAddress, connector, redirected
from ragbench_dagster.evaluation.judge.retry_after import wait_of
from ragbench_dagster.evaluation.systems.answer_formats import answer_reader, request_body
from ragbench_dagster.evaluation.systems.system import Answer, Clock, Example, ItemError, System
from ragbench_dagster.io.inputs import Undecodable, decoded
from ragbench_dagster.settings import HttpSystem
from ragbench_dagster.store import Workspace

_ATTEMPTS = 3
_UNREACHED, _CUT, _ELSEWHERE, _CIRCLE, _PRIVATE = 0, -1, -2, -3, -4  # in place of a status
_NO_STATUS = {
    _UNREACHED: "ConnectionError: the endpoint cannot be reached",
    _CUT: "ConnectionError: the connection was cut",
    _ELSEWHERE: "Redirect: the endpoint sends the question to another address",
    _CIRCLE: "Redirect: the endpoint redirects without end",
    _PRIVATE: "ConnectionError: the name leads to a private network",
}
_TRANSIENT = {_CUT, 408, 425, 429, 500, 502, 503, 504}
_HOPELESS = {
    _UNREACHED,
    _ELSEWHERE,
    _CIRCLE,
    _PRIVATE,
    401,
    403,
    404,
    405,
    410,
    501,
}  # the same for every question: key, URL or method
_BACKOFF_S = 1.0  # doubled each attempt, where the service does not say how long to wait
_PATIENCE = 5  # hopeless answers in a row, before any good one, until the system is given up
_REDIRECTS = 5  # for one question


class Endpoint(System):
    """An HTTP endpoint. Its session belongs to the event loop of the first call; close it there."""

    kind = "http"
    times_itself = True

    def __init__(self, name: str, settings: HttpSystem, version: str) -> None:
        super().__init__(name, settings, version)
        self._http = settings
        self._key = f"systems.{name}"
        try:
            self._url = URL(settings.url.reveal(f"{self._key}.url"))
        except ValueError as fault:
            raise UserError(f"{self._key}.url: not a valid address") from fault
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise UserError(f"{self._key}.url: must be a full http(s) address")
        self._host = self._url.host
        self._answer_in = answer_reader(settings.response, f"{self._key}.response")
        request_body(settings.request, {"query": "", "history": []}, f"{self._key}.request")
        self._session: aiohttp.ClientSession | None = None
        self._next_start = 0.0
        self._in_a_row = 0
        self._answered = False

    async def ask(self, example: Example, clock: Clock) -> Answer:
        body = request_body(self._http.request, example, f"{self._key}.request")
        until: float | None = None
        for attempt in range(1, _ATTEMPTS + 1):
            await self._rate()
            now = time.monotonic()
            until = now + self._http.deadline_s if until is None else until  # queueing before is not the question's
            clock.start()
            async with asyncio.timeout(min(self._http.timeout_s, max(0.001, until - now))):
                status, data, wait = await self._send(body)
            clock.stop()
            # A service that answered before is restarting; one that never did is not there.
            again = status in _TRANSIENT or (status == _UNREACHED and self._answered)
            if not again or attempt == _ATTEMPTS:
                break
            pause = _BACKOFF_S * 2 ** (attempt - 1) if wait is None else wait
            if pause > until - time.monotonic():
                asked = f"asks to wait {pause:.0f} s, " if wait is not None else ""
                raise ItemError(f"HTTP {status}: {asked}deadline_s ({self._http.deadline_s:g} s) is over before")
            await asyncio.sleep(pause)
        self._judge_status(status)
        if not 200 <= status < 300:
            raise ItemError(_NO_STATUS.get(status, f"HTTP {status}"))
        return self._read(data)

    async def _send(self, body: dict[str, Any]) -> tuple[int, bytes, float | None]:
        """(status, body, seconds the service asks to wait)."""
        session, method, url = self._open(), self._http.method, self._url
        asked: dict[str, Any] = {"json": body}
        if method == "GET":
            asked = {"params": {k: v if isinstance(v, str) else json.dumps(v) for k, v in body.items()}}
        try:
            for _ in range(_REDIRECTS + 1):
                async with session.request(method, url, allow_redirects=False, **asked) as reply:
                    location = reply.headers.get("Location") if reply.status in (301, 302, 303, 307, 308) else None
                    if location is None:
                        return await _read_reply(reply)
                    target = redirected(url, location)
                    if target is None:
                        return _ELSEWHERE, b"", None
                    url = target
                    if reply.status not in (307, 308):
                        method, asked = "GET", {}
            return _CIRCLE, b"", None
        except (aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError) as fault:
            return (_PRIVATE if isinstance(fault.os_error, PrivateAddress) else _UNREACHED), b"", None
        except aiohttp.InvalidURL as fault:
            raise UserError(f"{self._key}.url: not a valid address") from fault
        except aiohttp.ClientError:
            return _CUT, b"", None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {k: v.reveal(f"{self._key}.headers.{k}") for k, v in self._http.headers.items()}
            self._session = aiohttp.ClientSession(
                headers={"Accept-Encoding": ACCEPTED, **headers},
                auto_decompress=False,  # `_read` unpacks within bounds
                connector=connector(str(self._url), self._http.private, limit=0),  # concurrency bounds it
                timeout=aiohttp.ClientTimeout(total=None),  # `ask` bounds each attempt
                trust_env=True,
            )
        return self._session

    async def _rate(self) -> None:
        """Wait for this call's place at `rpm` requests a minute, evenly spaced."""
        if self._http.rpm is None:
            return
        now = time.monotonic()
        self._next_start = max(self._next_start, now)
        wait, self._next_start = self._next_start - now, self._next_start + 60.0 / self._http.rpm
        if wait > 0:
            await asyncio.sleep(wait)

    def _judge_status(self, status: int) -> None:
        """Give up a system whose first answers all say that no question will ever be answered."""
        if 200 <= status < 300:
            self._answered = True
        self._in_a_row = self._in_a_row + 1 if status in _HOPELESS else 0
        if self._answered or self._in_a_row < _PATIENCE:
            return
        what = {
            _UNREACHED: "cannot be reached; check url, network and certificate",
            _ELSEWHERE: "redirects to another address; write that one in url if it is meant",
            _CIRCLE: "redirects without end; check url",
            _PRIVATE: f"leads to a private network; set {self._key}.private: true if that is meant",
            401: "refuses the key (401); check headers",
            403: "refuses the key (403); check headers",
            404: "has no such path (404); check url",
            405: f"does not take {self._http.method} (405); set method",
        }.get(status, f"answers {status}; check url and method")
        raise UserError(f"{self._key}: {self._host} {what}")

    def _read(self, data: bytes) -> Answer:
        try:
            value = decoded(json.loads, data.decode("utf-8"))
        except (UnicodeDecodeError, Undecodable) as fault:
            raise ItemError("NotJson: the body is not JSON in UTF-8") from fault
        return self._answer_in(value)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read_reply(reply: aiohttp.ClientResponse) -> tuple[int, bytes, float | None]:
    data = await _read(reply)
    wait = None if reply.status < 400 else wait_of(reply.headers, _text(data), time.time())
    return reply.status, data, wait


async def _read(reply: aiohttp.ClientResponse) -> bytes:
    """The body, unpacked; that of an error is only looked through for a wait, so a strange one is none."""
    good = 200 <= reply.status < 300
    try:
        body = Body(reply.headers.get("Content-Encoding", ""))
        async for piece in reply.content.iter_chunked(1 << 16):
            body.feed(piece)
        return body.content()
    except TooLong:
        if good:
            raise ItemError(f"TooLong: more than {LONGEST_REPLY >> 20} MiB") from None
    except Undecodable as fault:
        if good:
            raise ItemError(f"Damaged: the body cannot be unpacked ({fault})") from None
    return b""


def _text(data: bytes) -> str:
    """The beginning of a body, where a service may say how long to wait."""
    return data[:4000].decode("utf-8", "replace")


def build(name: str, settings: HttpSystem, version: str, ws: Workspace) -> Endpoint:
    """The endpoint.

    Raises:
        UserError: an address, a field or an environment variable that does not hold.
    """
    del ws
    return Endpoint(name, settings, version)
