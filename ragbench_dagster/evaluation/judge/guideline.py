"""The user's own rules (`judge.guidelines`): the judge says whether an answer keeps all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragbench_dagster.evaluation.judge.base import LLMEvaluator
from ragbench_dagster.evaluation.judge.cleaning import plain
from ragbench_dagster.evaluation.judge.reply import FEEDBACK, Reply
from ragbench_dagster.evaluation.judge.text import split_json
from ragbench_dagster.evaluation.judge.yes_no import asked
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.store import digest

_WORDS = {"true": True, "false": False, "yes": True, "no": False}


class Guideline(LLMEvaluator):
    """Passes or not by the rules. Prompts as LlamaIndex's GuidelineEvaluator; the rules are part of the key."""

    name = "guideline"
    version = "1"
    reminder = 'Answer with the JSON object only: {"passing": true or false, "feedback": "..."}'

    def __init__(self, llm: Any, template: Any, judge: Any, guidelines: str) -> None:
        super().__init__(llm, template, judge)
        self._guidelines = guidelines

    @property
    def template_hash(self) -> str:  # type: ignore[override]
        return digest(super().template_hash, self._guidelines, size=8)

    def missing(self, item: Item) -> str:
        return "" if item.response.strip() else "no answer to judge"

    def variables(self, item: Item) -> dict[str, str]:
        return {"query": asked(item), "response": item.response, "guidelines": self._guidelines}

    def read(self, reply: Reply) -> Verdict:
        _, found = split_json(plain(reply.text))
        passing = _passing(found) if found is not None else None
        if found is None or passing is None:
            return Verdict("unparsable", feedback='no JSON object with "passing" ends the reply')
        return Verdict("scored", float(passing), passing, feedback=str(found.get("feedback") or "")[:FEEDBACK])


def _passing(found: Mapping[str, Any]) -> bool | None:
    value = found.get("passing")
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
