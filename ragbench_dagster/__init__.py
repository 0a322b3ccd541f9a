"""Ragbench: a nightly benchmark from the questions people really ask a RAG system.

For a notebook, or an application of one's own:

* `load(day)`: a `Night` of the store as pandas frames (`frames.py`).
* `Faithfulness`, `Relevancy`, `Correctness`, `AnswerRelevancy`, `ContextRelevancy`, `Guideline`, `Pairwise`,
  `SemanticSimilarity`: evaluators that are used as LlamaIndex's are (`evaluation/judge/evaluators.py`).
* `governed_llm(workspace)`: the judge's LLM for an engine, under the judge's limits and budget.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragbench_dagster.evaluation.judge import governed_llm
    from ragbench_dagster.evaluation.judge.evaluators import (
        AnswerRelevancy,
        ContextRelevancy,
        Correctness,
        Faithfulness,
        Guideline,
        Relevancy,
    )
    from ragbench_dagster.evaluation.judge.imported import SemanticSimilarity
    from ragbench_dagster.evaluation.judge.preference_judge import Pairwise
    from ragbench_dagster.frames import Night, load

__all__ = [
    "AnswerRelevancy",
    "ContextRelevancy",
    "Correctness",
    "Faithfulness",
    "Guideline",
    "Night",
    "Pairwise",
    "Relevancy",
    "SemanticSimilarity",
    "governed_llm",
    "load",
]
__version__ = "0.1.0"
_ELSEWHERE = {
    "Night": "frames",
    "load": "frames",
    "governed_llm": "evaluation.judge",
    "Pairwise": "evaluation.judge.preference_judge",
    "SemanticSimilarity": "evaluation.judge.imported",
}


def __getattr__(name: str) -> Any:
    """The public names on first use: `import ragbench_dagster` alone stays cheap (no Arrow, pandas or LlamaIndex)."""
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'evaluation.judge.evaluators')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
