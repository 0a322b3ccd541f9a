"""Takes from a judge's reply what is wrapping: thinking, fences, markdown, quotes of somebody else's text."""

from __future__ import annotations

import re
import unicodedata

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
