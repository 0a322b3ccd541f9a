"""An HTTP endpoint on a loopback port, asked by a system of ours."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from ragbench_dagster.evaluation.systems import Answer, System, build_system
from ragbench_dagster.settings import HttpSystem
from ragbench_dagster.store import Workspace

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/answer", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    try:
        yield f"http://127.0.0.1:{port}/answer"
    finally:
        await runner.cleanup()


def make(tmp_path: Path, url: str, **more: Any) -> System:
    settings = HttpSystem.model_validate({"kind": "http", "url": url, **more})
    return build_system("prod", settings, Workspace.open(tmp_path))


def run(tmp_path: Path, handler: Handler, *queries: str, **more: Any) -> list[Answer]:
    async def main() -> list[Answer]:
        async with serve(handler) as url:
            system = make(tmp_path, url, **more)
            try:
                return await asyncio.gather(
                    *(system.answer({"example_id": "e1", "query": q, "history": ["before"]}) for q in queries)
                )
            finally:
                await system.aclose()

    return asyncio.run(main())
