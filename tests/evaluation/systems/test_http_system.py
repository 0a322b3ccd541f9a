"""HTTP endpoints: fields both ways, typed faults, retries, pace, secrets."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems import Answer
from tests.support.endpoints import Handler, make, run, serve


def say(**body: Any) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(body)

    return handler


def test_default_fields_are_our_own_names(tmp_path: Path) -> None:
    nodes = [{"node_id": "a", "score": 0.5, "text": "t"}, "b"]
    (answer,) = run(tmp_path, say(response="yes", source_nodes=nodes), "q")
    assert (answer.status, answer.response, answer.contexts) == ("scored", "yes", ("t",))
    assert answer.retrieved_ids == ("a", "b")
    assert answer.latency_ms is not None


def test_fields_are_mapped_both_ways_with_constants_and_paths(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(await request.json())
        body = {"data": {"reply": "yes", "hits": [{"pid": 7, "body": "t", "meta": {"s": "0.25"}}]}, "took": 1.5}
        return web.json_response(body)

    (answer,) = run(
        tmp_path, handler, "how?",
        request={"query": "input.question", "history": "turns", "top": {"path": "options.top_k", "const": 5}},
        response={
            "response": "data.reply", "source_nodes": "data.hits", "source_nodes.node_id": "pid",
            "source_nodes.text": "body", "source_nodes.score": "meta.s",
            "latency_ms": {"path": "took", "factor": 1000},
        },
    )  # fmt: skip
    assert seen == [{"input": {"question": "how?"}, "turns": ["before"], "options": {"top_k": 5}}]
    assert (answer.response, answer.retrieved_ids, answer.contexts) == ("yes", ("7",), ("t",))
    assert answer.latency_ms == 1500


def test_get_sends_the_fields_as_parameters(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"response": request.query["q"]})

    (answer,) = run(tmp_path, handler, "a & b?", method="GET", request={"query": "q"})
    assert answer.response == "a & b?"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, "{}", "HTTP 400"),
        (500, "secret words", "HTTP 500"),
        (200, "secret words", "NotJson: the body is not JSON in UTF-8"),
        (200, "[1]", "WrongShape: the body is a list, not an object"),
        (200, '{"error": "secret"}', "ErrorInBody: status 200 with an error inside"),
        (200, '{"other": 1}', "EmptyAnswer: neither an answer nor passages where response says they are"),
        (200, '{"response": "a", "source_nodes": "b"}', "WrongShape: source_nodes is a str, not a list"),
    ],
)
def test_faults_are_typed_and_quote_nothing(
    status: int, body: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragbench_dagster.evaluation.systems.http._BACKOFF_S", 0.01)

    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=status, text=body, content_type="application/json")

    (answer,) = run(tmp_path, handler, "secret question")
    assert (answer.status, answer.error, answer.response) == ("error", error, None)


def test_one_bad_answer_never_spoils_the_others(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        query = (await request.json())["query"]
        if query == "hang":
            await asyncio.sleep(20)
        if query == "cut" and request.transport:
            request.transport.close()
        return web.Response(status=422) if query == "bad" else web.json_response({"response": query})

    answers = run(tmp_path, handler, "a", "hang", "bad", "cut", "b", timeout_s=0.5)
    assert [a.error for a in answers] == [
        None, "Timeout: no answer within 0.5 s", "HTTP 422", "ConnectionError: the connection was cut", None,
    ]  # fmt: skip


def test_the_wait_a_service_asks_for_is_kept_and_is_not_its_latency(tmp_path: Path) -> None:
    times: list[float] = []

    async def handler(request: web.Request) -> web.Response:
        times.append(time.monotonic())
        if len(times) == 1:
            return web.Response(status=429, headers={"Retry-After": "1"})
        return web.json_response({"response": "yes"})

    (answer,) = run(tmp_path, handler, "q", timeout_s=0.9)
    assert answer.status == "scored"
    assert times[1] - times[0] >= 1
    assert (answer.latency_ms or 0) < 900


def test_the_pace_is_kept_and_waiting_for_it_is_no_timeout(tmp_path: Path) -> None:
    times: list[float] = []

    async def handler(request: web.Request) -> web.Response:
        times.append(time.monotonic())
        return web.json_response({"response": "yes"})

    answers = run(tmp_path, handler, *map(str, range(6)), rpm=300, timeout_s=0.5)
    assert {a.status for a in answers} == {"scored"}
    assert max(times) - min(times) >= 5 * 0.2 - 0.05


@pytest.mark.parametrize(
    ("status", "words"), [(401, "refuses the key"), (403, "refuses the key"), (404, "no such path"), (405, "POST")]
)
def test_a_system_that_will_never_answer_is_given_up_in_one_line(status: int, words: str, tmp_path: Path) -> None:
    asked = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(1)
        return web.Response(status=status)

    with pytest.raises(UserError, match=rf"^systems\.prod: 127\.0\.0\.1 .*{words}"):
        run(tmp_path, handler, *map(str, range(5)))
    assert len(asked) == 5


def test_nobody_there_is_one_line_within_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGBENCH_TEST_TOKEN", "geheim")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def main() -> None:
        system = make(tmp_path, f"http://127.0.0.1:{port}/answer?token=${{RAGBENCH_TEST_TOKEN}}")
        try:
            for i in range(5):
                await system.answer({"example_id": "e", "query": str(i)})
        finally:
            await system.aclose()

    begin = time.monotonic()
    with pytest.raises(UserError, match="cannot be reached") as caught:
        asyncio.run(main())
    assert time.monotonic() - begin < 5
    assert "geheim" not in str(caught.value)


def test_one_missing_page_after_good_answers_is_that_questions_fault(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        query = (await request.json())["query"]
        return web.json_response({"response": "yes"}) if query == "0" else web.Response(status=404)

    async def main() -> list[Answer]:
        async with serve(handler) as url:
            system = make(tmp_path, url)
            answers = [await system.answer({"example_id": "e", "query": str(i)}) for i in range(9)]
            await system.aclose()
            return answers

    assert [a.error for a in asyncio.run(main())] == [None, *["HTTP 404"] * 8]


def test_secrets_come_from_the_environment_and_stay_out_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({"response": "yes"})

    headers = {"Authorization": "Bearer ${RAGBENCH_TEST_TOKEN}"}
    monkeypatch.setenv("RAGBENCH_TEST_TOKEN", "t0ken")
    run(tmp_path, handler, "q", headers=headers)
    assert seen == ["Bearer t0ken"]
    url = "http://127.0.0.1:1/answer"
    version = make(tmp_path, url, headers=headers).version
    assert make(tmp_path, url, headers={"Authorization": "Bearer ${ANOTHER}"}, timeout_s=5, rpm=9).version == version
    assert make(tmp_path, url + "2", headers=headers).version != version
    monkeypatch.delenv("RAGBENCH_TEST_TOKEN")
    with pytest.raises(UserError, match="the environment variable RAGBENCH_TEST_TOKEN is not set"):
        run(tmp_path, handler, "q", headers=headers)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"url": "ftp://x/y"}, r"systems\.prod\.url: must be a full http\(s\) address"),
        ({"url": "rag.example.com"}, r"systems\.prod\.url: must be a full http\(s\) address"),
        ({"request": {"prompt": "q"}}, r"systems\.prod\.request\.prompt: ours is one of query, history"),
        ({"request": {"history": "h"}}, "the question is not sent"),
        ({"response": {"text": "x"}}, r"systems\.prod\.response\.text: ours is one of response, source_nodes"),
    ],
)
def test_wrong_settings_are_named(more: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        make(tmp_path, **{"url": "http://127.0.0.1:1/answer", **more})


def test_an_answer_of_unreasonable_length_is_refused(tmp_path: Path) -> None:
    (answer,) = run(tmp_path, say(response="x" * (8 << 20)), "q")
    assert answer.error == "TooLong: more than 8 MiB"
    assert json.dumps(answer.response) == "null"


@asynccontextmanager
async def elsewhere(seen: list[tuple[str, str | None, bytes]]) -> AsyncIterator[str]:
    """A foreign service that notes whatever reaches it."""

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.method, request.headers.get("X-Api-Key"), await request.read()))
        return web.json_response({"response": "stolen"})

    async with serve(handler) as url:
        yield url


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_redirect_to_another_origin_gets_neither_key_nor_question(
    status: int, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGBENCH_TEST_TOKEN", "t0ken-of-the-test")
    seen: list[tuple[str, str | None, bytes]] = []

    async def main() -> Answer:
        async with elsewhere(seen) as foreign:

            async def handler(request: web.Request) -> web.Response:
                return web.Response(status=status, headers={"Location": foreign})

            async with serve(handler) as url:
                system = make(tmp_path, url, method=method, headers={"X-Api-Key": "${RAGBENCH_TEST_TOKEN}"})
                try:
                    return await system.answer({"example_id": "e", "query": "my secret question"})
                finally:
                    await system.aclose()

    answer = asyncio.run(main())
    assert answer.error == "Redirect: the endpoint sends the question to another address"
    assert seen == []


@pytest.mark.parametrize("location", ["//127.0.0.2:{port}/answer", "https://127.0.0.1:{port}/answer", "http://localhost:{port}/answer", "http://127.0.0.1:1/x", "file:///etc/passwd", "gopher://x/"])  # fmt: skip
def test_another_spelling_of_a_host_a_scheme_or_a_port_is_another_origin(location: str, tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": location.format(port=request.url.port)})

    (answer,) = run(tmp_path, handler, "q")
    assert answer.error == "Redirect: the endpoint sends the question to another address"


@pytest.mark.parametrize(("status", "method"), [(307, "POST"), (308, "POST"), (303, "GET"), (302, "GET")])
def test_a_redirect_within_the_origin_is_followed(status: int, method: str, tmp_path: Path) -> None:
    """A path without its closing slash is answered so by FastAPI and Django."""
    seen: list[tuple[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.method, await request.text()))
        if "again" not in request.query:
            return web.Response(status=status, headers={"Location": "/answer?again=1"})
        return web.json_response({"response": "there"})

    (answer,) = run(tmp_path, handler, "q")
    assert answer.response == "there"
    assert [m for m, _ in seen] == ["POST", method]
    assert bool(seen[1][1]) == (method == "POST")


def test_a_circle_of_redirects_ends(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/answer"})

    (answer,) = run(tmp_path, handler, "q")
    assert answer.error == "Redirect: the endpoint redirects without end"
