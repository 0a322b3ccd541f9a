"""The scrubber: all recognisers over a text, batched, cached on distinct texts."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.masking import mask_spans, watched_values
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings import Scrub
from ragbench_dagster.store import digest
from ragbench_dagster.traffic.scrubbing import pool
from ragbench_dagster.traffic.scrubbing.ner import installed_model, ner_for
from ragbench_dagster.traffic.scrubbing.normalise import View, view_of
from ragbench_dagster.traffic.scrubbing.placeholders import (
    Numbering,
    Request,
    ScrubbedRequest,
    Word,
    scrub_request,
    words_of,
)
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.recogniser import NER_LABELS, RECOGNISERS, Chosen, choose
from ragbench_dagster.traffic.scrubbing.recognisers import custom
from ragbench_dagster.traffic.scrubbing.recognisers.names import single
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import lexicon
from ragbench_dagster.traffic.scrubbing.spans import PLACEHOLDER, Evidence, Span, clear_of, resolve

RULES = "2026-12-02"  # changed with every change of the rules that can change a result
_CLOSING = re.compile(r"</([A-Z][A-Z0-9_]*)>")
_MASK = "\ue000"  # private use: no letter, no digit, no space
CACHE_CHARS = 8_000_000  # characters of distinct texts whose spans are remembered
Finder = tuple[frozenset[str], Callable[[Facts], bool], Callable[[Facts], Iterable[Span]]]


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A text with placeholders in place of its spans, which index the input text."""

    text: str
    spans: tuple[Span, ...]


class Scrubber:
    """Finds and replaces personal data. Make one with `build_scrubber`; it is not thread-safe."""

    def __init__(self, settings: Scrub, skip: bool = True, root: Path | None = None) -> None:
        self.settings = settings
        self.chosen: Chosen = choose(settings)
        self._skip = skip  # False: every recogniser sees every text (the tests compare)
        self._allowed = custom.Allowed(settings.allow)
        self._own = [custom.build(i, r, root) for i, r in enumerate(settings.recognizers)]
        self._persons = "PERSON" in self.chosen
        self._labels = {label: name for name, labels in NER_LABELS.items() if name in self.chosen for label in labels}
        self.ner = ner_for(settings.ner) if self._persons or self._labels else None
        self._lexicon = lexicon() if self.chosen.entities & {"PERSON", "ADDRESS", "DATE_OF_BIRTH"} else None
        self._recognisers = list(self._finders())
        self._cache: OrderedDict[str, tuple[Span, ...]] = OrderedDict()
        self._cached_chars = 0
        self._workers = pool.workers_for(settings, root)

    def _finders(self) -> Iterator[Finder]:
        for recogniser in RECOGNISERS.values():
            entities = recogniser.entities(self.chosen.countries) & self.chosen.entities
            if entities:
                yield entities, recogniser.might, recogniser.finder(self.chosen)

    def spans(self, text: str) -> list[Span]:
        """The personal data in `text`, in order, without overlaps; offsets index `text`."""
        return list(self._all([text])[0])

    def texts(self, texts: Sequence[str]) -> list[Scrubbed]:
        """Each text scrubbed for itself: placeholders are numbered within the text."""
        return [
            Scrubbed(Numbering([text]).replace(text, spans), spans)
            for text, spans in zip(texts, self._all(texts), strict=True)
        ]

    def plain(self, text: str) -> str:
        """`text` (a file name, a category, a document id) with placeholders without numbers."""
        out, at = [], 0
        for span in self._all([text])[0]:
            out += [text[at : span.start], f"<{span.type}>"]
            at = span.end
        return "".join([*out, text[at:]])

    def request(
        self, query: str, response: str | None = None, contexts: Sequence[str] = (), history: Sequence[str] = ()
    ) -> ScrubbedRequest:
        """One request, its placeholders shared between question, answer, contexts and history."""
        return self.requests([Request(query, response, tuple(contexts), tuple(history))])[0]

    def requests(self, requests: Sequence[Request]) -> list[ScrubbedRequest]:
        """Many requests at once: faster, and each numbered for itself."""
        flat = [text for request in requests for text in request.all_texts]
        spans = iter(self._all(flat))
        return [scrub_request(request, [next(spans) for _ in request.all_texts], self._lexicon) for request in requests]

    def batches(self, batches: Iterable[Sequence[Request]]) -> Iterator[list[ScrubbedRequest]]:
        """Each batch as `requests` makes it, in order; in worker processes where the settings give some and it is worth it."""
        source, first, texts = iter(batches), list[Sequence[Request]](), 0
        while self._workers is not None and texts < pool.WORTH and (batch := next(source, None)) is not None:
            first.append(batch)
            texts += sum(len(request.all_texts) for request in batch)
        if self._workers is not None and texts >= pool.WORTH:
            yield from self._workers.requests(chain(first, source))
        else:
            yield from map(self.requests, chain(first, source))

    def _all(self, texts: Sequence[str]) -> list[tuple[Span, ...]]:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._cache]
        parallel = self._workers is not None and len(fresh) >= pool.WORTH
        found = self._workers.find_all(fresh) if self._workers is not None and parallel else self.find_all(fresh)
        done = dict(zip(fresh, found, strict=True))
        values = watched_values()
        out = []
        for text in texts:
            spans = done.get(text)
            if spans is None:
                self._cache.move_to_end(text)
                spans = self._cache[text]
            out.append(_with_masked(text, spans, values) if values else spans)
        for text, spans in done.items():
            self._remember(text, spans)
        return out

    def _remember(self, text: str, spans: tuple[Span, ...]) -> None:
        if len(text) > CACHE_CHARS // 8:
            return
        self._cache[text] = spans
        self._cached_chars += len(text) + 64
        while self._cached_chars > CACHE_CHARS:
            old, _ = self._cache.popitem(last=False)
            self._cached_chars -= len(old) + 64

    def find_all(self, texts: Sequence[str]) -> list[tuple[Span, ...]]:
        """The spans of each text, in this process and without the cache."""
        views = [view_of(text) for text in texts]
        facts = [Facts(_masked(view.text), self._skip) for view in views]
        self._ask_model(facts)
        return [tuple(self._find(text, view, fact)) for text, view, fact in zip(texts, views, facts, strict=True)]

    def _ask_model(self, facts: list[Facts]) -> None:
        if self.ner is None:
            return
        answers = self.ner.entities([fact.text for fact in facts], self._wants_model)
        for fact, entities in zip(facts, answers, strict=True):
            fact.entities = entities
            fact.ner_ran = True

    def _wants_model(self, piece: str) -> bool:
        """The model's answer on this piece can change a result."""
        if not self._skip or self._labels:
            return True
        return self._lexicon is not None and single.wants_ner(piece, self._lexicon)

    def _find(self, text: str, view: View, facts: Facts) -> list[Span]:
        found: list[Span] = []
        for entities, might, find in self._recognisers:
            if not self._skip or might(facts):
                found.extend(s for s in find(facts) if s.type in entities)
        for own in self._own:
            found.extend(own(facts.text))
        for label, name in self._labels.items():
            found.extend(Span(a, b, name, 0.5, Evidence.MODEL) for a, b in facts.entities.get(label, ()))
        if not found:
            return []
        found = self._allowed.keep(found, view.text)
        zones = [m.span() for m in PLACEHOLDER.finditer(view.text)]
        spans = resolve(clear_of(found, zones), view.text)
        return [view.back(span) for span in spans]


def _with_masked(text: str, spans: tuple[Span, ...], watched: tuple[str, ...]) -> tuple[Span, ...]:
    """`spans` and the values of the variables that the settings name: a service may quote its key anywhere.

    Not remembered with the rest: they come from the environment, not from the text.
    """
    values = [Span(start, end, "SECRET") for start, end in mask_spans(text, watched)]
    if not values:
        return spans
    zones = [m.span() for m in PLACEHOLDER.finditer(text)]
    return tuple(resolve([*spans, *clear_of(values, zones)], text))


def _masked(text: str) -> str:
    """Placeholders that are already there as signs without meaning: their words and digits are no evidence.

    `<DOB>` with a `</DOB>` is a tag of a payload, and says what stands inside.
    """
    if "<" not in text:
        return text
    closed = set(_CLOSING.findall(text)) if "</" in text else set()
    return PLACEHOLDER.sub(lambda m: m[0] if m[0][1:-1] in closed else _MASK * len(m[0]), text)


def scrubber_version(settings: Scrub) -> str:
    """What the result depends on beside the text: the rules, the settings, the lists and the model.

    A hash; cheap, for nothing is loaded. `processes` and `floor` do not change a result.
    """
    packages = ["names", "faker", "english-words", "wordfreq", "phonenumbers", "presidio-analyzer", "python-stdnum"]
    model = installed_model() if settings.ner != "off" else None
    if model is not None:
        packages += ["spacy", model.replace("_", "-")]
    versions = {name: _version(name) for name in packages}
    chosen = settings.model_dump(mode="json", exclude={"processes", "floor"})
    return digest(RULES, versions, chosen, size=8)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"


_built = RUNTIME.per_thread("scrubbers")  # a scrubber is not thread-safe, and Dagster's code server has threads


def build_scrubber(settings: Scrub | None = None, root: Path | None = None) -> Scrubber:
    """The scrubber for `scrub` in ragbench.yaml (None: the defaults); `root` is the workspace, for its own recognisers.

    One a thread and settings: the model is loaded once, and the spans found in a passage by one stage are known
    to the next.

    Raises:
        UserError: an unknown entity or country, a recogniser that cannot be made, a model that is missing.
    """
    chosen = settings or Scrub()
    built: dict[tuple[str, Path | None], Scrubber] = _built.kept
    imports = any(recognizer.import_path for recognizer in chosen.recognizers)
    root = root if imports else None
    key = chosen.model_dump_json(), root
    if key not in built:
        built.clear()  # one at a time: its cache and its model are large
        built[key] = Scrubber(chosen, root=root)
    return built[key]


def latest_scrubber() -> Scrubber:
    """The scrubber that this thread built last, one of the defaults where it built none: for a line of a message."""
    built: dict[tuple[str, Path | None], Scrubber] = _built.kept
    return next(iter(built.values()), None) or build_scrubber()


# `ragbench stage scrub`: {text} in, {text, spans} out.

_BATCH = 256  # rows handed to the NER model together


def stage_scrub(
    rows: Iterable[dict[str, Any]], scrubber: Scrubber, seen: Counter[Word] | None = None
) -> Iterator[dict[str, Any]]:
    """Each row with its `text` scrubbed and `spans` [{start, end, type}] that index the input text.

    Other keys of a row pass through. What is replaced is counted in `seen`, by kind of evidence.

    Raises:
        UserError: a row without a text; the line names its number.
    """
    numbered = enumerate(rows, 1)
    while batch := list(islice(numbered, _BATCH)):
        for number, row in batch:
            if not isinstance(row, dict) or not isinstance(row.get("text"), str):
                raise UserError(f'row {number}: no text; each row must be {{"text": "..."}}')
        done = scrubber.texts([row["text"] for _, row in batch])
        for (_, row), scrubbed in zip(batch, done, strict=True):
            if seen is not None:
                seen.update(words_of(row["text"], scrubbed.spans))
            spans = [{"start": s.start, "end": s.end, "type": s.type} for s in scrubbed.spans]
            yield {**row, "text": scrubbed.text, "spans": spans}
