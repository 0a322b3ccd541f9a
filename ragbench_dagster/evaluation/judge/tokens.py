"""How many tokens a prompt has: exact enough to refuse what does not fit, cheap enough to be done each time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_CHARS_PER_TOKEN = 4.0  # of English, until the provider has reported
_MEMORY = 50  # calls that the running means remember


class TokenMeter:
    """Running means of what prompts and replies of one judge really take, from the usage it reports."""

    def __init__(self, completion_guess: float) -> None:
        self._per_char = 1 / _CHARS_PER_TOKEN
        self._completion = completion_guess
        self._n = 0

    def estimate(self, chars: int) -> tuple[float, float]:
        """(prompt tokens, completion tokens) of a prompt of `chars` characters."""
        return chars * self._per_char + 1, self._completion

    def observe(self, chars: int, prompt_tokens: int, completion_tokens: int) -> None:
        if chars <= 0 or prompt_tokens <= 0:
            return
        self._n += 1
        share = 1 / min(self._n, _MEMORY)
        self._per_char += (prompt_tokens / chars - self._per_char) * share
        self._completion += (completion_tokens - self._completion) * share


def fits(texts: list[str], window: int, reserved: int) -> bool:
    """True where `texts` leave `reserved` of the `window` tokens for the reply.

    No tokenizer makes more tokens than there are bytes, so most prompts need no counting. Counting uses the
    tokenizer that ships with LlamaIndex (cl100k); another model's may count some percent otherwise, and what its
    provider then refuses is `truncated` as well.
    """
    room = window - reserved - 8 * len(texts)  # roles and separators
    if sum(len(text.encode("utf-8", "replace")) for text in texts) <= room:
        return True
    return room > 0 and sum(len(_tokenizer()(text)) for text in texts) <= room


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    from llama_index.core.utils import get_tokenizer

    return get_tokenizer()
