"""A LlamaIndex LLM whose every call goes through the governor: our evaluators, stock ones and engines alike.

Sync and async calls, and streams (which come in one piece), pass the same limiter, retry layer, breaker and budget.
A judge session's loop has a client of its own, which `prepare` opens and `aclose` closes; all other calls, whatever
thread or loop they come from, share the client of `background_loop.py`.

The request body is exactly what the settings say, and the answer is read as JSON: LlamaIndex's own path drops the
headers, fails on `choices: null`, and forces a temperature. What a reply means belongs in `reply.py`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
import httpx
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.instrumentation import get_dispatcher
from llama_index.llms.openai_like import OpenAILike
from openai import DefaultAioHttpClient

from ragbench_dagster.credentials import expand_all
from ragbench_dagster.evaluation.answer_body import ACCEPTED, LONGEST_REPLY, Body, TooLong
from ragbench_dagster.evaluation.concurrency import Stop
from ragbench_dagster.evaluation.destinations import connector
from ragbench_dagster.evaluation.judge.background_loop import background
from ragbench_dagster.evaluation.judge.budget import (
    CallLog,
    TokenMeter,
    current,
    paying_budget,
    price_of,
    run_budget,
)
from ragbench_dagster.evaluation.judge.circuit_breaker import Breaker
from ragbench_dagster.evaluation.judge.provider_errors import (
    JudgeUnavailable,
    Trouble,
    of_answer,
    of_exception,
    of_success,
)
from ragbench_dagster.evaluation.judge.rate_limiter import Limiter, shared_limiter
from ragbench_dagster.evaluation.judge.reply import text_of
from ragbench_dagster.evaluation.judge.retry import Governor
from ragbench_dagster.io.inputs import Undecodable, decoded, reason_of
from ragbench_dagster.settings import Judge

_TOP_LOGPROBS = 20  # the most that providers give
_CONNECT_S = 10.0  # a host that does not even take the connection
_OPENAI = "https://api.openai.com/v1"
_COMPLETION_GUESS = 128.0  # tokens, until the provider has reported


@dataclass
class _InLoop:
    """What belongs to one event loop."""

    http: httpx.AsyncClient
    url: str
    governor: Governor
    stop: Stop = field(default_factory=Stop)
    shared: bool = True  # by all that name no run


class GovernedLLM(OpenAILike):
    """The judge's model, behind one limiter, one retry layer, one breaker and one budget.

    Args:
        judge: its settings; `openai` and `openai_like` differ in the default address and context window only.
        workspace: whose budget it is; "" for none.
    """

    _judge: Judge = PrivateAttr()
    _workspace: str = PrivateAttr()
    _meter: TokenMeter = PrivateAttr()
    _limiter: Limiter = PrivateAttr()
    _loops: Any = PrivateAttr()

    def __init__(self, judge: Judge, workspace: str = "") -> None:
        super().__init__(
            model=judge.model or "",
            api_base=str(judge.api_base or _OPENAI),  # shown; the address itself is revealed where it is connected to
            api_key="set when the first call is made",
            is_chat_model=True,
            context_window=judge.context_window or 0,
            max_tokens=judge.max_tokens or judge.max_completion_tokens,
            temperature=judge.temperature or 0,
            timeout=judge.timeout_s,
            max_retries=0,
        )
        self._judge = judge
        self._workspace = workspace
        self._meter = TokenMeter(min(_COMPLETION_GUESS, self.max_tokens or _COMPLETION_GUESS))
        provider = f"{self.api_base} {judge.api_key_env}"
        self._limiter = shared_limiter(provider, judge.rpm, judge.tpm, judge.concurrency)
        self._loops = WeakKeyDictionary()

    @property
    def judge(self) -> Judge:
        return self._judge

    @property
    def limited_by(self) -> str:
        return self._limiter.limited_by

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window,
            num_output=self.max_tokens or -1,
            is_chat_model=True,
            is_function_calling_model=False,
            model_name=self.model,
        )

    def prepare(self, stop: Stop, run: str) -> None:
        """Tie the calls of the running loop to `stop` and to the budget of `run`.

        Raises:
            JudgeUnavailable: the key's variable is not set.
        """
        here = self._here()
        here.stop, here.shared = stop, False
        here.governor.budget = run_budget(self._workspace, run, self._judge.budget_usd)

    async def aclose(self) -> None:
        """Close the connections that `prepare` opened in the running loop; those of other calls stay for the next."""
        here = self._loops.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.http.aclose()

    async def ask(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        """`achat` without LlamaIndex's tracing, which costs a millisecond a call, where nobody listens to it."""
        if _is_traced() or self.callback_manager.handlers:
            return await self.achat(messages)
        return await self._achat(messages)

    async def _achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        call = self._answered(messages, kwargs, current())
        if asyncio.get_running_loop() in self._loops:
            return await call
        return await asyncio.wrap_future(background.submit(call))

    def _chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return background.wait(self._answered(messages, kwargs, current()))

    def _stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        yield _as_piece(self._chat(messages, **kwargs))

    async def _astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        async def pieces() -> ChatResponseAsyncGen:
            yield _as_piece(await self._achat(messages, **kwargs))

        return pieces()

    def _use_chat_completions(self, kwargs: dict[str, Any]) -> bool:
        """Always: `complete` and its like are one message of a user, so that no call passes the governor by."""
        kwargs.pop("use_chat_completions", None)
        return True

    async def _answered(self, messages: Sequence[ChatMessage], options: dict[str, Any], log: CallLog) -> ChatResponse:
        """One governed call, on the running loop's client."""
        here = self._here()
        governor = here.governor
        if here.shared:  # the run that pays may be another one than at the last call
            governor = governor.paid_by(paying_budget(self._workspace, self._judge.budget_usd))
        sent = [{"role": m.role.value, "content": m.content or ""} for m in messages]
        body = {**self._request(), **options, "messages": sent}
        prompt = "\n".join(m["content"] for m in sent)
        answer = await governor.call(lambda: _send(here, body, prompt), len(prompt), log, here.stop)
        message = answer["choices"][0]["message"]
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text_of(message)), raw=answer)

    def _request(self) -> dict[str, Any]:
        """The body without its messages: only what the settings name."""
        judge = self._judge
        body: dict[str, Any] = {"model": judge.model}
        for name in ("temperature", "seed", "max_tokens", "max_completion_tokens"):
            value = getattr(judge, name)
            if value is not None:
                body[name] = value
        if judge.read == "logprobs":
            body |= {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
        return body | expand_all(judge.extra, "judge.extra")

    def _here(self) -> _InLoop:
        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            here = self._loops[loop] = self._connect()
            background.closing(here.http.aclose)
        return here

    def _connect(self) -> _InLoop:
        judge = self._judge
        connections = judge.concurrency.max
        base = judge.api_base.reveal("judge.api_base") if judge.api_base else _OPENAI
        http = _Client(
            base,
            judge.private,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            timeout=httpx.Timeout(judge.timeout_s, connect=min(_CONNECT_S, judge.timeout_s)),
            follow_redirects=False,
            headers={
                "Authorization": f"Bearer {_key(judge)}",
                "Content-Type": "application/json",
                "Accept-Encoding": ACCEPTED,
            },
        )
        budget = paying_budget(self._workspace, judge.budget_usd)
        governor = Governor(judge, price_of(judge), self._limiter, Breaker(judge), budget, self._meter)
        return _InLoop(http, _chat_url(base), governor)


def _as_piece(response: ChatResponse) -> ChatResponse:
    """A whole reply as the only piece of a stream: retries and the budget need it whole."""
    response.delta = response.message.content or ""
    return response


class _Client(DefaultAioHttpClient):  # type: ignore[misc,unused-ignore]
    """The aiohttp transport, which reaches the judge's host and no private network behind a public name."""

    def __init__(self, base: str, private: bool, **options: Any) -> None:
        self._base, self._private = base, private
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log addresses with their queries
        super().__init__(**options)

    def _init_transport(self, **options: Any) -> Any:  # type: ignore[override,unused-ignore]
        transport: Any = super()._init_transport(**options)  # type: ignore[misc,unused-ignore]
        limits = transport.limits

        def session() -> aiohttp.ClientSession:
            return aiohttp.ClientSession(
                connector=connector(
                    self._base,
                    self._private,
                    keepalive_timeout=limits.keepalive_expiry,
                    ssl=transport.ssl_context,
                    limit=limits.max_connections or 0,
                )
            )

        transport.client = session
        return transport


def _key(judge: Judge) -> str:
    """The judge's key; `judge.api_key_env: ""` says that the server wants none."""
    if not judge.api_key_env:
        return "none"
    key = os.environ.get(judge.api_key_env, "").strip()
    if not key:
        raise JudgeUnavailable(f"no judge key in this run: the variable {judge.api_key_env} is not set")
    return key


def _chat_url(base: str) -> str:
    """The address of the chat API; a query (`?api-version=...`) stays at its end."""
    path, mark, query = base.partition("?")
    return f"{path.rstrip('/')}/chat/completions{mark}{query}"


def _is_traced() -> bool:
    """True where a LlamaIndex event or span handler is registered."""
    root = get_dispatcher()
    handlers = [*root.event_handlers, *root.span_handlers]
    return any(type(handler).__name__ not in ("NullEventHandler", "NullSpanHandler") for handler in handlers)


async def _send(here: _InLoop, body: dict[str, Any], prompt: str) -> dict[str, Any]:
    """One attempt: the decoded answer, or `Trouble`."""
    data = json.dumps(body, ensure_ascii=True).encode("ascii")  # a lone surrogate survives as its escape
    try:
        async with here.http.stream("POST", here.url, content=data) as answer:
            content = await _read(answer)
    except Trouble:
        raise
    except Exception as fault:
        raise of_exception(fault) from None
    try:
        said: Any = decoded(json.loads, content)
    except Undecodable:
        said = content[:2000].decode("utf-8", "replace")
    try:
        if not answer.is_success:
            raise of_answer(answer.status_code, answer.headers, said, time.time(), prompt)
        trouble = of_success(said, answer.headers, time.time(), prompt)
    except Trouble:
        raise
    except Exception as fault:  # an error body may hold anything
        raise Trouble("server", f"{answer.status_code} with a body that cannot be read ({reason_of(fault)})") from None
    if trouble is not None:
        raise trouble
    assert isinstance(said, dict)
    return said


async def _read(answer: httpx.Response) -> bytes:
    """The body, unpacked here: the client's own way knows no bound."""
    try:
        body = Body(answer.headers.get("content-encoding", ""))
        async for piece in answer.aiter_raw():
            body.feed(piece)
        return body.content()
    except TooLong:
        raise Trouble("item", f"{answer.status_code} with more than {LONGEST_REPLY >> 20} MiB") from None
    except Undecodable as fault:
        raise Trouble("server", f"{answer.status_code} with a body that cannot be unpacked ({fault})") from None
