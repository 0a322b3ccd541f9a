"""A judge's reply as it came: its text, why it ended, whether it refused. Verdicts are read in text.py and others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragbench_dagster.evaluation.judge.faults import finish_of

# Characters that are read on: twice what is kept, for a cut before scrubbing would leave half an address (replies.py).
_RAW_LIMIT = 40_000
FEEDBACK = 4_000


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered call.

    Attributes:
        text: the content; reasoning that came in a field of its own is not part of it, and never a verdict.
        finish: why it ended (`stop`, `length`, `content_filter`, ...), lower case.
        refusal: the model's refusal, where it came in its own field.
        reasoning: kept in the raw reply only.
        logprobs: the content's tokens with their alternatives, or None.
    """

    text: str
    finish: str = ""
    refusal: str = ""
    reasoning: str = ""
    logprobs: list[dict[str, Any]] | None = None

    @property
    def raw(self) -> str:
        """What the ledger keeps, once it is scrubbed."""
        parts = [
            self.text,
            self.refusal and f"[refusal] {self.refusal}",
            self.reasoning and f"[reasoning] {self.reasoning}",
        ]
        return "\n".join(part for part in parts if part)[:_RAW_LIMIT]


def reply_of(response: Any) -> Reply:
    """The reply in a LlamaIndex ChatResponse, of our own LLM or of any other."""
    raw = response.raw
    if hasattr(raw, "model_dump"):
        raw = raw.model_dump()
    choices = raw.get("choices") if isinstance(raw, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return Reply(text=response.message.content or "")
    choice = choices[0]
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return Reply(
        text=text_of(message),
        finish=finish_of(choice.get("finish_reason")),
        refusal=_string(message.get("refusal")) or _part(message.get("content"), "refusal"),
        reasoning=_string(message.get("reasoning_content")) or _string(message.get("reasoning")),
        logprobs=[t for t in tokens if isinstance(t, Mapping)] if isinstance(tokens, list) else None,  # type: ignore[misc]
    )


def text_of(message: Mapping[str, Any]) -> str:
    """The content of a message: a text, a list of parts, or nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return _part(content, "text")
    if isinstance(content, Mapping):  # some gateways decode a JSON answer
        return json.dumps(content)
    return ""


def _part(content: Any, name: str) -> str:
    """The parts of a content list that hold `name`, thinking left out."""
    if not isinstance(content, list):
        return ""
    found = []
    for part in content:
        if isinstance(part, str) and name == "text":
            found.append(part)
        elif isinstance(part, Mapping) and part.get("type") in (name, "output_text" if name == "text" else name, None):
            found.append(_string(part.get(name)))
    return "\n".join(text for text in found if text)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
