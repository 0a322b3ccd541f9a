"""A judge's reply as it came: its text, why it ended, whether it refused. Verdicts are read in parse_verdict.py and others."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragbench_dagster.evaluation.judge.provider_errors import finish_of

# Characters that are read on: twice what is kept, for a cut before scrubbing would leave half an address (kept_texts.py).
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


# Takes from a judge's reply what is wrapping: thinking, fences, markdown, quotes of somebody else's text.

# Thinking that the model wrote into its content: never a verdict. An opening tag may be missing (the chat template
# ate it) and a closing one too (the reply was cut).
_NAMES = r"think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|cot"
_TAG = re.compile(
    rf"<(?P<end1>/?)(?:{_NAMES})\b[^<>]{{0,80}}>|\[(?P<end2>/?)(?:THINK|REASONING)\]|◁(?P<end3>/?)think▷", re.IGNORECASE
)
_FINAL = re.compile(r"<\|channel\|>\s?final\b[^<]{0,80}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>", re.IGNORECASE)
_SPECIAL = re.compile(r"<\|[a-z_]+\|>|</?s>|<end_of_turn>|<eos>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_MARKS = re.compile(r"(\*{1,3}|_{2,3}|`+|~~)")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|[-*•+][ \t]+)", re.MULTILINE)


def without_thinking(text: str) -> str:
    """`text` without its thinking blocks, closed or not."""
    finals = list(_FINAL.finditer(text))
    if finals:
        text = text[finals[-1].end() :]
    elif "<|channel|>" in text:  # a channel, but no final one
        text = text[: text.index("<|channel|>")]
    kept: list[str] = []
    start, thinking = 0, False
    for tag in _TAG.finditer(text):
        closes = bool(tag["end1"] or tag["end2"] or tag["end3"])
        if closes:
            if not thinking:
                kept.clear()  # all before it was thinking
            start, thinking = tag.end(), False
        elif not thinking:
            kept.append(text[start : tag.start()])
            thinking = True
    if not thinking:
        kept.append(text[start:])
    return " ".join(kept)


def plain(text: str) -> str:
    """`text` as a judge meant it: no thinking, fences, markdown, quoted lines, invisible characters."""
    text = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode("utf-8"))
    text = without_thinking(_INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    text = _FENCE.sub("", _SPECIAL.sub("", text))
    text = _QUOTED_LINE.sub("", text)
    text = _LINE_START.sub("", _MARKS.sub("", text))
    return "\n".join(line.strip() for line in text.split("\n")).strip()


def lines(text: str) -> list[str]:
    """The lines of a plain text that hold something."""
    return [line for line in text.split("\n") if line]
