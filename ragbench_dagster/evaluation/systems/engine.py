"""Engines and retrievers by import path: LlamaIndex objects and plain callables, sync, async or streaming."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ragbench_dagster.credentials import expand_all
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.answer_formats import to_answer, to_passages
from ragbench_dagster.evaluation.systems.system import Answer, Clock, Example, ItemError, System, full_query, shown
from ragbench_dagster.plugins import call_factory, load_factory, takes
from ragbench_dagster.settings import EngineSystem, RetrieverSystem
from ragbench_dagster.store import Workspace

_MAX_STUCK = 64  # threads that never came back before the system is given up


class Threads:
    """Runs sync calls in daemon threads of their own.

    A pool would not do: a call that hangs cannot be killed, would hold its slot for ever and starve the rest,
    and the interpreter would wait for it at exit.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stuck: set[threading.Thread] = set()

    async def run(self, function: Callable[[], Any]) -> Any:
        """The result of `function`, or its exception; a cancelled wait leaves the thread behind.

        Raises:
            UserError: too many calls never came back.
        """
        self._stuck = {thread for thread in self._stuck if thread.is_alive()}
        if len(self._stuck) >= _MAX_STUCK:
            raise UserError(
                f"systems.{self._name}: {len(self._stuck)} calls did not come back in time and still run; "
                "mend the engine or raise timeout_s; the finished answers are kept"
            )
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, fault: BaseException | None) -> None:
            if done.done():
                return
            if fault is None:
                done.set_result(result)
            else:
                done.set_exception(fault)

        def work() -> None:
            result: Any = None
            fault: BaseException | None = None
            try:
                result = function()
            except StopIteration:  # cannot be set on a future
                fault = ItemError("StopIteration: raised by the engine")
            except Exception as raised:
                fault = raised
            except BaseException as raised:
                fault = ItemError(f"{type(raised).__name__}: the engine tried to end the process")
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, result, fault)

        thread = threading.Thread(target=work, name=f"ragbench-{self._name}", daemon=True)
        thread.start()
        try:
            return await done
        except asyncio.CancelledError:
            self._stuck.add(thread)
            raise


class CodeSystem(System):
    """A system that runs in this process.

    Args:
        target: what the factory made.
    """

    def __init__(
        self, name: str, settings: EngineSystem | RetrieverSystem, version: str, target: Any, pure: bool
    ) -> None:
        super().__init__(name, settings, version)
        self.kind = settings.kind
        self.retrieves_only = settings.kind == "retriever"
        self.pure = pure
        self._ids = settings.ids
        self._threads = Threads(name)
        self._call = _caller(target, self.retrieves_only, f"systems.{name}.engine")
        self._asynchronous = _is_async(self._call)
        self._history = takes(self._call, "history")

    async def ask(self, example: Example, clock: Clock) -> Answer:
        if self._asynchronous:
            clock.start()
            try:
                value = await _drain_async(self._invoke(example), clock)
            except SystemExit as fault:
                raise ItemError("SystemExit: the engine tried to end the process") from fault
            clock.stop()
        else:
            value = await self._threads.run(lambda: self._timed(example, clock))
            if inspect.isawaitable(value) or hasattr(value, "__aiter__"):  # a sync callable that gave a coroutine
                value = await _drain_async(value, clock)
                clock.stop()
        return (to_passages if self.retrieves_only else to_answer)(value, self._ids)

    def _timed(self, example: Example, clock: Clock) -> Any:
        """One sync call, timed inside its thread, so that starting the thread counts as queueing."""
        clock.start()
        value = _drain(self._invoke(example), clock)
        clock.stop()
        return value

    def _invoke(self, example: Example) -> Any:
        if self._history:
            return self._call(example["query"], history=list(example.get("history") or ()))
        return self._call(full_query(example))


def _caller(target: Any, retriever: bool, key: str) -> Callable[..., Any]:
    """The way to ask `target`: async where it has one."""
    if target is None:
        raise UserError(f"{key}: the factory returned nothing; return the engine")
    names = ("aretrieve", "retrieve") if retriever else ("aquery", "query")
    for name in names:
        if hasattr(target, name):
            return getattr(target, name)  # type: ignore[no-any-return]
    if not retriever and hasattr(target, "achat"):
        return lambda query: target.achat(query, chat_history=[])
    if hasattr(target, "as_query_engine") and not retriever:
        raise UserError(f"{key}: the factory returned an index; return index.as_query_engine()")
    if hasattr(target, "as_retriever") and retriever:
        raise UserError(f"{key}: the factory returned an index; return index.as_retriever()")
    if callable(target):
        return target  # type: ignore[no-any-return]
    wanted = "a LlamaIndex retriever" if retriever else "a LlamaIndex query engine"
    raise UserError(f"{key}: the factory returned a {type(target).__name__}; return {wanted} or a function")


def _is_async(call: Callable[..., Any]) -> bool:
    inner = inspect.unwrap(call)
    inner = getattr(inner, "func", inner)  # functools.partial
    named = getattr(inner, "__name__", "") in ("aquery", "aretrieve")
    if not inspect.isroutine(inner) and callable(inner):  # an object with __call__
        inner = type(inner).__call__
    return named or inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)


def _drain(value: Any, clock: Clock) -> Any:
    """A value with its stream read to the end, on the calling thread."""
    if inspect.isgenerator(value):
        return _joined(value, clock)
    if _streams(value) and not hasattr(value.response_gen, "__aiter__") and not hasattr(value, "async_response_gen"):
        return _Finished(_joined(value.response_gen, clock), value.source_nodes)
    return value


async def _drain_async(value: Any, clock: Clock) -> Any:
    """A value awaited and with its stream read to the end, on the loop."""
    if inspect.isawaitable(value):
        value = await value
    if hasattr(value, "__aiter__"):
        return await _joined_async(value, clock)
    if hasattr(value, "async_response_gen"):
        stream = value.async_response_gen
        return _Finished(await _joined_async(stream() if callable(stream) else stream, clock), value.source_nodes)
    if _streams(value):
        return _Finished(_joined(value.response_gen, clock), value.source_nodes)
    return value


def _streams(value: Any) -> bool:
    """A LlamaIndex StreamingResponse; an AgentChatResponse has `response_gen` too, but holds its answer."""
    return not isinstance(value, Mapping) and hasattr(value, "response_gen") and not hasattr(value, "response")


class _Finished:
    """A streamed Response read to its end."""

    def __init__(self, response: str, source_nodes: Any) -> None:
        self.response = response
        self.source_nodes = source_nodes


def _joined(stream: Any, clock: Clock) -> Any:
    parts: list[str] = []
    last: Any = None
    for piece in stream:
        last = _piece(piece, parts, clock, last)
    return _assembled(parts, last)


async def _joined_async(stream: Any, clock: Clock) -> Any:
    parts: list[str] = []
    last: Any = None
    async for piece in stream:
        last = _piece(piece, parts, clock, last)
    return _assembled(parts, last)


def _piece(piece: Any, parts: list[str], clock: Clock, last: Any) -> Any:
    """Collect a piece of text; anything else is kept as what came with the text (passages)."""
    if isinstance(piece, str):
        if piece:
            clock.token()
        parts.append(piece)
        return last
    if piece is None:
        return last
    delta = getattr(piece, "delta", None)
    if isinstance(delta, str):
        if delta:
            clock.token()
        parts.append(delta)
        return last
    return piece


def _assembled(parts: list[str], last: Any) -> Any:
    text = "".join(parts)
    if last is None:
        return text
    if isinstance(last, Mapping):
        return {**last, "response": text} if parts else last
    if isinstance(last, list | tuple):
        return (text, last)
    raise ItemError(f"WrongShape: a stream gave a {type(last).__name__}; yield text, then passages")


def build(name: str, settings: EngineSystem | RetrieverSystem, version: str, ws: Workspace) -> CodeSystem:
    """The system around what its factory makes.

    Raises:
        UserError: an import path or a parameter that does not hold.
    """
    key = f"systems.{name}"
    factory = load_factory(settings.engine, ws.root, f"{key}.engine", shown)
    target = call_factory(factory, expand_all(settings.params, f"{key}.params"), {"workspace": ws}, key, shown)
    module = sys.modules.get(getattr(factory, "__module__", ""))
    return CodeSystem(name, settings, version, target, pure=getattr(module, "PURE", False) is True)
