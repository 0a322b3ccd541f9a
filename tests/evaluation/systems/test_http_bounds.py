"""What an endpoint can cost: the bytes of an answer, and the seconds of a question."""

import asyncio
import gzip
import time
import tracemalloc
import zlib

import pytest
from aiohttp import web

from tests.support.endpoints import run

BOMB = gzip.compress(b'{"response": "' + b" " * (300 << 20) + b'"}')  # 300 KB
PACKED = {
    "gzip": gzip.compress(b'{"response": "yes"}'),
    "deflate": zlib.compress(b'{"response": "yes"}'),
    "x-gzip": gzip.compress(b'{"respo') + gzip.compress(b'nse": "yes"}'),  # two members
}


def packed(data, encoding, status=200, **headers):
    async def handler(_):
        return web.Response(status=status, body=data, headers={"Content-Encoding": encoding, **headers})

    return handler


@pytest.mark.parametrize("encoding", PACKED)
def test_a_packed_answer_is_unpacked(encoding, tmp_path):
    (answer,) = run(tmp_path, packed(PACKED[encoding], encoding), "q")
    assert answer.response == "yes"


def test_raw_deflate_is_understood_too(tmp_path):
    data = zlib.compress(b'{"response": "yes"}')[2:-4]
    (answer,) = run(tmp_path, packed(data, "deflate"), "q")
    assert answer.response == "yes"


def test_a_bomb_is_an_error_of_its_question_and_never_unpacked_whole(tmp_path):
    tracemalloc.start()
    try:
        (answer,) = run(tmp_path, packed(BOMB, "gzip"), "q")
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
    assert answer.error == "TooLong: more than 8 MiB"


# The names are given: made of the bytes, they hold gzip's time stamp and differ between two workers.
@pytest.mark.parametrize(
    ("data", "encoding"),
    [(PACKED["gzip"][:-9], "gzip"), (b"not packed", "gzip"), (b"x", "br"), (b"x", "gzip, gzip")],
    ids=["cut short", "not packed", "br", "gzip twice"],
)
def test_damaged_or_unasked_packing_is_an_error_of_its_question(data, encoding, tmp_path):
    (answer,) = run(tmp_path, packed(data, encoding), "q")
    assert answer.error.startswith("Damaged: the body cannot be unpacked")


def test_the_body_of_an_error_may_be_anything(tmp_path):
    (answer,) = run(tmp_path, packed(BOMB, "gzip", 400), "q")
    assert answer.error == "HTTP 400"


def test_a_wait_beyond_the_deadline_ends_the_question_at_once(tmp_path):
    """`Retry-After: 99999999` cost 120 s a question."""

    async def handler(request):
        if "late" in await request.text():
            return web.Response(status=429, headers={"Retry-After": "99999999"})
        return web.json_response({"response": "yes"})

    begin = time.monotonic()
    late, fine = run(tmp_path, handler, "late", "q", deadline_s=5)
    assert time.monotonic() - begin < 4
    assert late.error == "HTTP 429: asks to wait 99999999 s, deadline_s (5 s) is over before"
    assert fine.response == "yes"


def test_attempts_share_the_deadline(tmp_path):
    async def handler(_):
        await asyncio.sleep(0.6)
        return web.Response(status=503, headers={"Retry-After": "0"})

    begin = time.monotonic()
    (answer,) = run(tmp_path, handler, "q", deadline_s=1, timeout_s=5)
    assert time.monotonic() - begin < 3
    assert answer.status == "timed_out"


def test_an_answer_that_nests_deeply_is_an_error_of_its_question(tmp_path):
    async def handler(_):
        return web.Response(text='{"response": ' + "[" * 200_000 + "]" * 200_000 + "}")

    (answer,) = run(tmp_path, handler, "q")
    assert answer.error == "NotJson: the body is not JSON in UTF-8"
