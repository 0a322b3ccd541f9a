"""The limiter uses what a provider allows and asks for hardly more; its concurrency finds its level."""

import asyncio
import random
from collections import deque
from typing import Any

import pytest

from ragbench_dagster.evaluation.judge.rate_limiter import Limiter, TooLong, shared_limiter
from ragbench_dagster.settings import Concurrency
from tests.support import virtual_time

WIDE = Concurrency(min=1, start=64, max=64)


class SlidingWindow:
    """A server that counts requests and tokens of the last 60 seconds, as strictly as it can be done."""

    def __init__(self, rpm: float, tpm: float, now: Any) -> None:
        self.rpm, self.tpm, self.now = rpm, tpm, now
        self.taken: deque[tuple[float, float]] = deque()
        self.refused = self.requests = 0
        self.tokens = 0.0

    def take(self, tokens: float) -> bool:
        now = self.now()
        while self.taken and self.taken[0][0] <= now - 60:
            self.taken.popleft()
        self.requests += 1
        if len(self.taken) >= self.rpm or sum(t for _, t in self.taken) + tokens > self.tpm:
            self.refused += 1
            return False
        self.taken.append((now, tokens))
        self.tokens += tokens
        return True


async def drive(limiter: Limiter, server: SlidingWindow, seconds: float, tokens: Any, guess: float) -> float:
    """64 workers for `seconds`; the network takes 150 to 250 ms. Returns the seconds."""
    loop = asyncio.get_running_loop()
    rng = random.Random(5)
    begin = loop.time()

    async def worker() -> None:
        while loop.time() - begin < seconds:
            permit = await limiter.acquire(lambda: guess)
            await asyncio.sleep(rng.uniform(0.05, 0.1))
            used = tokens(rng)
            fine = server.take(used)
            await asyncio.sleep(0.1)
            limiter.release(permit, "ok" if fine else "rate", used if fine else 0.0, None if fine else 1.0)

    await asyncio.gather(*(worker() for _ in range(64)))
    return loop.time() - begin


@pytest.mark.parametrize(
    ("rpm", "tpm", "mean"), [(600, 1e9, 100), (1e9, 60_000, 200), (600, 60_000, 100), (600, 60_000, 300)]
)
def test_the_limit_is_used_and_hardly_ever_hit(rpm: float, tpm: float, mean: float):
    async def main() -> tuple[SlidingWindow, float]:
        now = asyncio.get_running_loop().time
        server = SlidingWindow(rpm, tpm, now)
        limiter = Limiter(rpm if rpm < 1e9 else None, tpm if tpm < 1e9 else None, WIDE, now)
        return server, await drive(limiter, server, 600, lambda rng: rng.uniform(0.5, 1.5) * mean, mean * 0.9)

    server, seconds = virtual_time.run(main())
    used = max((server.requests - server.refused) / seconds * 60 / rpm, server.tokens / seconds * 60 / tpm)
    assert used >= 0.97
    assert server.refused <= 0.005 * server.requests


def test_concurrency_doubles_a_round_until_the_first_429_and_then_grows_slowly():
    async def main() -> dict[float, int]:
        loop = asyncio.get_running_loop()
        limiter = Limiter(None, None, Concurrency(min=1, start=2, max=128), loop.time)
        begin = loop.time()
        outcome = "ok"

        async def worker() -> None:
            while loop.time() < begin + 1.1:
                permit = await limiter.acquire(lambda: 1)
                await asyncio.sleep(0.1)
                limiter.release(permit, outcome, 1, 0.0)  # type: ignore[arg-type]

        workers = [asyncio.create_task(worker()) for _ in range(200)]
        levels = {}
        for at, then in ((0.35, "rate"), (0.45, "ok"), (0.65, "fault"), (0.75, "ok"), (1.05, "ok")):
            await asyncio.sleep(begin + at - loop.time())
            levels[at] = int(limiter.limit)
            outcome = then
        await asyncio.gather(*workers)
        return levels

    levels = virtual_time.run(main())
    # 2, 4, 8, 16; a whole round of 16 is answered 429 (one episode: halved once); two rounds, just under one more each;
    # a round of server faults leaves it where it is, but holds everybody for 0.2 s; then a round more.
    assert levels == {0.35: 16, 0.45: 8, 0.65: 9, 0.75: 9, 1.05: 10}


def test_a_lone_429_holds_nobody_else_and_a_second_in_a_row_everybody():
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        limiter = Limiter(None, None, WIDE, loop.time)
        one, two = await limiter.acquire(lambda: 1), await limiter.acquire(lambda: 1)
        limiter.release(one, "rate", 0, 7.0)
        begin = loop.time()
        await limiter.acquire(lambda: 1)
        lone = loop.time() - begin
        limiter.release(two, "rate", 0, 7.0)
        begin = loop.time()
        await limiter.acquire(lambda: 1)
        return lone, loop.time() - begin

    lone, second = virtual_time.run(main())
    assert lone == 0
    assert second == pytest.approx(7.0, abs=0.01)


def test_a_row_that_is_refused_again_and_again_holds_nobody_else():
    async def main() -> float:
        loop = asyncio.get_running_loop()
        limiter = Limiter(None, None, WIDE, loop.time)
        for _ in range(5):  # its retries, and its other metrics
            limiter.release(await limiter.acquire(lambda: 1), "rate", 0, 7.0, "row 1")
        begin = loop.time()
        limiter.release(await limiter.acquire(lambda: 1), "rate", 0, 7.0, "row 2")
        alone = loop.time() - begin
        await limiter.acquire(lambda: 1)
        assert loop.time() - begin == pytest.approx(7.0, abs=0.01)
        return alone

    assert virtual_time.run(main()) == 0


def test_who_may_not_wait_so_long_is_told_at_once():
    async def main() -> None:
        limiter = Limiter(None, None, WIDE, asyncio.get_running_loop().time)
        for _ in range(2):
            limiter.release(await limiter.acquire(lambda: 1), "rate", 0, 100.0)
        with pytest.raises(TooLong):
            await limiter.acquire(lambda: 1, within_s=20)

    virtual_time.run(main())


def test_retries_go_first_and_the_cancelled_leave_no_hole():
    async def main() -> list[str]:
        limiter = Limiter(None, None, Concurrency(min=1, start=1, max=1), asyncio.get_running_loop().time)
        order: list[str] = []

        async def one(name: str, again: bool) -> None:
            permit = await limiter.acquire(lambda: 1, again=again)
            order.append(name)
            limiter.release(permit, "fault")

        held = await limiter.acquire(lambda: 1)
        tasks = [asyncio.create_task(one(n, n == "retry")) for n in ("first", "gone", "second", "retry")]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        limiter.release(held, "fault")
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.in_flight == 0
        return order

    assert virtual_time.run(main()) == ["retry", "first", "second"]


def test_the_pace_goes_on_in_the_next_event_loop_and_nothing_is_bound_to_the_first():
    limiter = shared_limiter("somewhere", 60, None, WIDE)
    assert shared_limiter("somewhere", 60, None, WIDE) is limiter
    assert shared_limiter("elsewhere", 60, None, WIDE) is not limiter

    async def one() -> None:
        permit = await limiter.acquire(lambda: 1)
        limiter.release(permit, "ok")

    async def late() -> bool:
        try:
            async with asyncio.timeout(0.05):
                await one()
        except TimeoutError:
            return True
        return False

    asyncio.run(one())
    assert asyncio.run(late()), "one request a second: the second loop must wait for the first's"


def test_a_second_loop_does_not_inherit_who_waited_in_the_first():
    limiter = Limiter(None, None, Concurrency(min=1, start=1, max=1))

    async def left_hanging() -> None:
        await limiter.acquire(lambda: 1)
        waiting = asyncio.create_task(limiter.acquire(lambda: 1))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(left_hanging())

    async def works() -> None:
        async with asyncio.timeout(1):
            limiter.release(await limiter.acquire(lambda: 1), "ok")

    asyncio.run(works())
