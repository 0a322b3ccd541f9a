"""What all LLM evaluators share: the prompt, the window, one re-ask, typed verdicts, LlamaIndex's interface.

An evaluator says which inputs it needs (`missing`), what stands in its template (`variables`) and what a reply means
(`read`). It is a LlamaIndex `BaseEvaluator`, is made as its evaluators are, and works with any of its LLMs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.prompts.mixin import PromptDictType

from ragbench_dagster.evaluation.concurrency import Stop
from ragbench_dagster.evaluation.judge.budget import CallLog, collecting, fits
from ragbench_dagster.evaluation.judge.parse_verdict import is_refusal
from ragbench_dagster.evaluation.judge.provider_errors import ItemFault
from ragbench_dagster.evaluation.judge.reply import FEEDBACK, Reply, reply_of
from ragbench_dagster.evaluation.judge.templates import stock_template, template_hash
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge

_REPLY_TOKENS = 256  # kept free of the window where no limit is set
_LONGEST_READ = 200_000  # characters in which a verdict is looked for


class LLMEvaluator(BaseEvaluator):
    """A judge that asks an LLM and reads one verdict.

    Args:
        llm: any LlamaIndex LLM, default `Settings.llm`; that of `governed_llm` is limited, retried and accounted.
        eval_template: the prompt, a text or a template; default: that of the LlamaIndex evaluator `peer`.
        score_threshold: from which score on an answer passes, on the scale that the prompt asks for.
        raise_error: have `aevaluate` raise where LlamaIndex's evaluator would.
        judge: how replies are read and long contexts are judged; default: the settings' defaults, which read text.
    """

    name = ""
    version = "1"  # raised when the same reply would be read differently
    reminder = ""  # asks again for an unparsable reply; "": never
    default_threshold = 0.5
    needs: tuple[str, ...] = ()  # what a question must have for the metric to apply (see `evaluation.applicability`)
    peer: type[Any]  # the LlamaIndex evaluator whose prompt is used ...
    prompt = ""  # ... where there is none of our own, with {query}, {response}, ... as in `judge.templates`
    logprob_threshold: float | None = None  # on the scale of log-probabilities, uncalibrated; None: default_threshold
    most = 1.0  # points that make a score of 1

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        eval_template: BasePromptTemplate | str | None = None,
        score_threshold: float | None = None,
        raise_error: bool = False,
        judge: Judge | None = None,
    ) -> None:
        self._llm: Any = llm or Settings.llm
        self._template = self._template_of(eval_template)
        self._judge = judge or Judge.model_validate({})
        self._raise_error = raise_error
        self.threshold = self.default_threshold if score_threshold is None else score_threshold / self.most

    def _template_of(self, given: BasePromptTemplate | str | None) -> BasePromptTemplate:
        given = given or self.prompt or stock_template(self.peer)
        return PromptTemplate(given) if isinstance(given, str) else given

    # -- what an evaluator says of itself

    @classmethod
    def options(cls, judge: Judge) -> dict[str, Any]:
        """What else `__init__` takes from the settings.

        Raises:
            UserError: something that it needs is not set.
        """
        del judge
        return {}

    def missing(self, item: Item) -> str:
        """Why the item cannot be graded; "" where it can."""
        raise NotImplementedError

    def variables(self, item: Item) -> dict[str, str]:
        """What stands in the template."""
        raise NotImplementedError

    def read(self, reply: Reply) -> Verdict:
        """`scored` or `unparsable`."""
        raise NotImplementedError

    # -- what the runner uses

    @cached_property
    def template_hash(self) -> str:
        return template_hash(self._template)

    @property
    def workers(self) -> int:
        return self._judge.concurrency.max

    @property
    def limited_by(self) -> str:
        return getattr(self._llm, "limited_by", "")

    async def prepare(self, stop: Stop, run: str) -> None:
        prepare = getattr(self._llm, "prepare", None)
        if prepare is not None:
            prepare(stop, run)

    async def aclose(self) -> None:
        close = getattr(self._llm, "aclose", None)
        if close is not None:
            await close()

    def decide(self, verdict: Verdict) -> Verdict:
        """The verdict with `passing` by tonight's threshold, which may be newer than the ledger's row."""
        if verdict.score is None:
            return verdict
        passing = verdict.score >= self.threshold
        return verdict if passing == verdict.passing else replace(verdict, passing=passing)

    async def grade(self, item: Item) -> Verdict:
        """The typed verdict on one answer.

        Raises:
            Stopped: the run was asked to stop.
            UserError: no item can be judged.
        """
        why = self.missing(item)
        if why:
            return Verdict("not_applicable", feedback=why)
        with collecting(item.example_id) as log:
            try:
                verdict = await self._grade(item, log)
            except ItemFault as fault:
                verdict = Verdict(fault.status, feedback=fault.reason)
        return log.onto(verdict)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        second_response: str | None = None,
        sleep_time_in_seconds: int = 0,
        **kwargs: Any,
    ) -> EvaluationResult:
        """LlamaIndex's way to ask; whatever is not `scored` is an invalid result, never a 0.

        Raises:
            ValueError: `raise_error` is set, and there is no verdict (or, of YES or NO, it is NO).
        """
        del kwargs
        await asyncio.sleep(sleep_time_in_seconds)
        item = Item("", query or "", response or "", tuple(contexts or ()), reference, (), second_response)
        verdict = await self.grade(item)
        if self._raise_error and self._is_invalid(verdict):
            raise ValueError(f"{self.name}: the response is invalid ({verdict.status})")
        biased = verdict.details.get("position_bias")
        return EvaluationResult(
            query=query,
            response=response,
            contexts=contexts,
            passing=verdict.passing,
            score=verdict.score,
            feedback=verdict.feedback,
            pairwise_source=None if biased is None else "neither" if biased else "original",
            invalid_result=verdict.status != "scored",
            invalid_reason=None if verdict.status == "scored" else f"{verdict.status}: {verdict.feedback}",
        )

    def _is_invalid(self, verdict: Verdict) -> bool:
        return verdict.status != "scored"

    def _get_prompts(self) -> PromptDictType:
        return {"eval_template": self._template}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        if "eval_template" in prompts:
            self._template = prompts["eval_template"]
            self.__dict__.pop("template_hash", None)

    # -- how one item is asked

    async def _grade(self, item: Item, log: CallLog) -> Verdict:
        messages = self.messages(item)
        if self._fits(messages):
            return await self._asked(messages, log)
        if self._judge.long_context == "per_passage" and len(item.contexts) > 1:
            return await self._per_passage(item, log)
        window = self._llm.metadata.context_window
        return Verdict("truncated", feedback=f"the prompt is longer than the judge's window of {window} tokens")

    async def _per_passage(self, item: Item, log: CallLog) -> Verdict:
        """Each passage by itself: the best verdict stands, as the stock templates say of several contexts."""
        prompts = [self.messages(replace(item, contexts=(passage,))) for passage in item.contexts]
        if not all(self._fits(messages) for messages in prompts):
            return Verdict("truncated", feedback="a single passage is longer than the judge's window")
        verdicts = [await self._asked(messages, log) for messages in prompts]
        log.details["per_passage"] = len(verdicts)
        scored = [v for v in verdicts if v.status == "scored" and v.score is not None]
        best = max(scored, key=lambda v: v.score or 0.0, default=None)
        failed = next((v for v in verdicts if v.status != "scored"), None)
        if best is not None and (failed is None or best.passing):
            return best
        assert failed is not None or best is not None
        return failed if failed is not None else verdicts[0]

    def _fits(self, messages: Sequence[ChatMessage]) -> bool:
        window = self._llm.metadata.context_window
        if not window or window < 0:
            return True
        reserved = self._judge.max_tokens or self._judge.max_completion_tokens or _REPLY_TOKENS
        return fits([m.content or "" for m in messages], window, reserved)

    def messages(self, item: Item) -> list[ChatMessage]:
        """What is sent for an item."""
        return self._messages(self.variables(item))

    def _messages(self, variables: Mapping[str, Any]) -> list[ChatMessage]:
        return list(self._template.format_messages(**variables))

    async def _asked(self, messages: list[ChatMessage], log: CallLog) -> Verdict:
        reply = await self._ask(messages, log)
        verdict = self._verdict(reply)
        if verdict.status != "unparsable" or not self.reminder or self._judge.read == "logprobs":
            return verdict
        said = reply.text if len(reply.text) <= _LONGEST_READ else ""
        again = await self._ask(_reminded(messages, said, self.reminder), log)
        log.details |= {"re_asked": True, "first_reply": reply.raw[:FEEDBACK]}
        return self._verdict(again)

    async def _ask(self, messages: Sequence[ChatMessage], log: CallLog) -> Reply:
        before = log.calls
        ask = getattr(self._llm, "ask", None) or self._llm.achat
        system = getattr(self._llm, "system_prompt", None)
        if system:
            messages = [ChatMessage(role=MessageRole.SYSTEM, content=system), *messages]
        reply = reply_of(await ask(messages))
        if log.calls == before:  # an LLM of somebody else's, which accounts for nothing
            log.calls += 1
            log.attempts += 1
        return reply

    def _verdict(self, reply: Reply) -> Verdict:
        raw = reply.raw
        if reply.finish == "content_filter":
            return Verdict("refused", feedback="the provider's content filter stopped the reply", raw=raw)
        if reply.refusal:
            return Verdict("refused", feedback="the judge refused", raw=raw)
        if len(reply.text) > _LONGEST_READ:
            return Verdict("unparsable", feedback=f"the reply is longer than {_LONGEST_READ:,} characters", raw=raw)
        verdict = replace(self.read(reply), raw=raw)
        if verdict.status == "scored":
            return replace(verdict, passing=(verdict.score or 0.0) >= self.threshold)
        if reply.finish == "length":
            return Verdict("truncated", feedback="the reply ended at the token limit; raise judge.max_tokens", raw=raw)
        if is_refusal(reply.text):
            return Verdict("refused", feedback="the judge refused", raw=raw)
        return verdict


def _reminded(messages: list[ChatMessage], said: str, reminder: str) -> list[ChatMessage]:
    """The conversation once more with a reminder; roles alternate, which some servers insist on."""
    if said.strip():
        return [
            *messages,
            ChatMessage(role=MessageRole.ASSISTANT, content=said),
            ChatMessage(role=MessageRole.USER, content=reminder),
        ]
    last = messages[-1]
    return [*messages[:-1], ChatMessage(role=last.role, content=f"{last.content}\n\n{reminder}")]
