"""The prompts: those of the installed llama-index-core, or the user's own files; both are hashed into the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate, PromptTemplate

from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import read_text
from ragbench_dagster.store import Workspace, digest

_LONGEST = 1 << 20  # bytes of a template

_NAMES = (
    "query", "response", "contexts", "reference", "guidelines", "second_response",
    "query_str", "context_str", "generated_answer", "reference_answer", "answer_1", "answer_2",
)  # fmt: skip


def stock_template(evaluator: type[Any], **arguments: Any) -> BasePromptTemplate:
    """The evaluation template of a LlamaIndex evaluator, as installed.

    Built with a neutral LLM: one evaluator chooses another template by the model's name.
    """
    from llama_index.core.llms import MockLLM

    built = evaluator(llm=MockLLM(), **arguments)
    try:
        return built.get_prompts()["eval_template"]
    except AttributeError:  # 0.14: one evaluator's get_prompts names a template that it does not have
        import sys

        return sys.modules[evaluator.__module__].DEFAULT_EVAL_TEMPLATE  # type: ignore[no-any-return]


def own_template(path: str, metric: str, ws: Workspace | None) -> BasePromptTemplate:
    """The user's prompt of `judge.templates.METRIC`, a text file with `{query}`, `{response}`, ... in it.

    Raises:
        UserError: no such file, or a variable that is not filled in.
    """
    file = (ws.root / path) if ws else Path(path)
    where = f"judge.templates.{metric}: {path}"
    try:
        text = read_text(file, _LONGEST)
    except UserError as fault:
        raise UserError(f"{where}: cannot be read; give a UTF-8 text file") from fault
    template = PromptTemplate(text)
    unknown = sorted(set(template.template_vars) - set(_NAMES))
    if unknown:
        raise UserError(f"{where}: {{{unknown[0]}}} is not filled in; there are {', '.join(_NAMES[:6])}")
    if not template.template_vars:
        raise UserError(f"{where}: no {{query}}, {{response}} or {{contexts}} in it; the judge would see no answer")
    return template


def template_hash(template: BasePromptTemplate) -> str:
    """Hash of a template's text, roles and output instructions."""
    if isinstance(template, ChatPromptTemplate):
        parts = [f"{m.role.value}\0{m.content}" for m in template.message_templates]
    else:
        parts = [template.get_template()]
    parser = template.output_parser
    parts.append(parser.format("") if parser is not None else "")
    return digest(*parts, dict(sorted(template.kwargs.items())), size=8)
