"""Typed placeholders, numbered within a request and shared by its question, answer, contexts and history."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ragbench_dagster.traffic.scrubbing.normalise import RIGHT, bounded
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import NAME, ORDINARY, STOP, Lexicon, key_of
from ragbench_dagster.traffic.scrubbing.spans import PLACEHOLDER, Evidence, Span, clear_of, resolve

_BY_DIGITS = {"PHONE_NUMBER", "CREDIT_CARD", "US_SSN", "US_ITIN"}
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_GREETINGS = frozenset(
    "hi hello hey dear good morning afternoon evening day there thanks thank you thx ty please pls ok okay yes no bye cheers regards best kind "
    "sincerely hallo hola bonjour ciao guten tag merci danke gracias this is am i im me my name and the a to from".split()
)


Word = tuple[str, str, str]  # evidence, type, the value in its plainest spelling


@dataclass(frozen=True)
class Request:
    """The raw texts of one request. They stay in memory."""

    query: str
    response: str | None = None
    contexts: tuple[str, ...] = ()
    history: tuple[str, ...] = ()

    @cached_property
    def all_texts(self) -> tuple[str, ...]:
        """In the order in which placeholders are numbered."""
        answer = () if self.response is None else (self.response,)
        return (self.query, *self.history, *answer, *self.contexts)


@dataclass(frozen=True)
class ScrubbedRequest:
    """A request that may be stored. `question` is False when only placeholders and greetings remain."""

    query: str
    response: str | None
    contexts: list[str]
    history: list[str]
    question: bool
    counts: dict[str, int]  # entity type: spans replaced, sorted by type
    words: tuple[Word, ...] = ()  # evidence, type, plain spelling of each; never stored


class Numbering:
    """Gives each value its placeholder, in order of first appearance.

    Numbers that are already in the texts (`<PERSON_1>`) are left to them.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._next: Counter[str] = Counter()
        self._known: dict[tuple[str, str], str] = {}
        for text in texts:
            if "<" in text:
                for match in PLACEHOLDER.finditer(text):
                    self._next[match[1]] = max(self._next[match[1]], int(match[2] or 0))

    def of(self, value: str, type_: str) -> str:
        key = (type_, identity(value, type_))
        if key not in self._known:
            self._next[type_] += 1
            self._known[key] = f"<{type_}_{self._next[type_]}>"
        return self._known[key]

    def alias(self, value: str, type_: str, placeholder: str) -> None:
        """`value` is another spelling of what `placeholder` stands for."""
        self._known.setdefault((type_, identity(value, type_)), placeholder)

    def replace(self, text: str, spans: Iterable[Span]) -> str:
        out, at = [], 0
        for span in spans:
            out += [text[at : span.start], self.of(text[span.start : span.end], span.type)]
            at = span.end
        return "".join([*out, text[at:]])


def identity(value: str, type_: str) -> str:
    """What makes two spellings the same value."""
    if type_ in _BY_DIGITS:
        return re.sub(r"\D", "", value) or value
    if type_ == "IBAN_CODE":
        return re.sub(r"\W", "", value).upper()
    return " ".join(key_of(value).split())


def words_of(text: str, spans: Iterable[Span]) -> list[Word]:
    """What `spans` replace in `text`, by kind of evidence."""
    return [(s.evidence.value, s.type, identity(text[s.start : s.end], s.type)) for s in spans]


def scrub_request(request: Request, found: Sequence[Sequence[Span]], lex: Lexicon | None) -> ScrubbedRequest:
    """`request` with the spans `found` in each of its texts, and their repetitions elsewhere, replaced."""
    texts = request.all_texts
    numbering = Numbering(texts)
    everywhere = _repetitions(_values(texts, found, strong=True), lex)
    scrubbed: list[str] = []
    counts: Counter[str] = Counter()
    words: list[Word] = []
    for text, spans in zip(texts, found, strict=True):
        repeated = [*everywhere, *_same_spelling(_values([text], [spans], strong=False))]
        more = [
            Span(m.start(), m.end(), type_, evidence=Evidence.IMPLIED)
            for type_, pattern in repeated
            for m in pattern.finditer(text)
        ]
        zones = [(s.start, s.end) for s in spans] + [m.span() for m in PLACEHOLDER.finditer(text)]
        every = sorted([*spans, *resolve(clear_of(more, zones), text)], key=lambda s: s.start) if more else list(spans)
        _learn_aliases(text, every, numbering)
        scrubbed.append(numbering.replace(text, every))
        counts.update(span.type for span in every)
        words += words_of(text, every)
    turns = len(request.history)
    answered = request.response is not None
    return ScrubbedRequest(
        query=scrubbed[0],
        response=scrubbed[1 + turns] if answered else None,
        contexts=scrubbed[1 + turns + answered :],
        history=scrubbed[1 : 1 + turns],
        question=is_question(scrubbed[0]),
        counts=dict(sorted(counts.items())),
        words=tuple(words),
    )


def _values(texts: Sequence[str], found: Sequence[Sequence[Span]], strong: bool) -> dict[tuple[str, str], str]:
    """(type, what makes it the same value) -> a spelling, of the findings with strong or with weak evidence."""
    values: dict[tuple[str, str], str] = {}
    for text, spans in zip(texts, found, strict=True):
        for span in spans:
            if span.evidence.strong is strong:
                value = text[span.start : span.end]
                values.setdefault((span.type, identity(value, span.type)), value)
    return values


def _same_spelling(values: dict[tuple[str, str], str]) -> list[tuple[str, re.Pattern[str]]]:
    """Patterns for weak findings: the text that showed the evidence may repeat the value letter by letter."""
    kept = sorted({(type_, value) for (type_, _), value in values.items() if len(value) >= 3}, key=lambda v: -len(v[1]))
    return [(type_, re.compile(bounded(re.escape(value), value))) for type_, value in kept]


def _learn_aliases(text: str, spans: Sequence[Span], numbering: Numbering) -> None:
    """ "Ada" after "Ada Testwood" is the same person; so is "Testwood"."""
    for span in spans:
        if span.type == "PERSON":
            value = text[span.start : span.end]
            placeholder = numbering.of(value, "PERSON")
            words = _WORD.findall(value)
            if len(words) > 1:
                for word in words:
                    if len(word) > 2:
                        numbering.alias(word, "PERSON", placeholder)


def _repetitions(values: dict[tuple[str, str], str], lex: Lexicon | None) -> list[tuple[str, re.Pattern[str]]]:
    """Patterns that find the values again in any case, spacing and grouping; and the parts of a name."""
    patterns = []
    for (type_, same), value in sorted(values.items(), key=lambda item: (-len(item[1]), item[0])):
        if type_ in _BY_DIGITS and len(same) >= 6 and same.isdigit():
            body = r"[ ().+/-]{0,2}".join(same)
            patterns.append((type_, re.compile(rf"(?<!\d){body}(?!\d)")))
        elif type_ == "PERSON" and lex is not None and lex.flags(value) & ORDINARY:
            if value[0].isupper():  # "Will": a name where it stands inside a sentence, else the word
                patterns.append((type_, re.compile(rf"(?<=[\w,;:][ ]){re.escape(value)}{RIGHT}")))
        elif len(same) >= 3 and not PLACEHOLDER.fullmatch(value):
            body = r"\s+".join(re.escape(word) for word in value.split())
            patterns.append((type_, re.compile(bounded(body, value), re.IGNORECASE)))
        if type_ == "PERSON" and lex is not None:
            for word in _WORD.findall(value):
                bits = lex.flags(word)
                if len(word) > 2 and not bits & (ORDINARY | STOP) and bits & NAME and word != value:
                    patterns.append((type_, re.compile(bounded(re.escape(word), word), re.IGNORECASE)))
    return patterns


def is_question(text: str) -> bool:
    """Something other than placeholders and greetings is left to ask about."""
    rest = PLACEHOLDER.sub(" ", text)
    return any(word.casefold() not in _GREETINGS for word in re.findall(r"[^\W_]+", rest))


__all__ = ["Numbering", "Request", "ScrubbedRequest", "identity", "is_question", "scrub_request"]

# Ids of documents: scrubbed like any text, but two ids must stay two.

MARK = 6  # hex digits: enough to keep a corpus' ids apart


def safe_id(text: str, plain: Callable[[str], str], keyed: Callable[[str], str]) -> str:
    """`text` with placeholders, and a short mark of the original where anything was replaced.

    Many numeric ids look like phone or card numbers. As one placeholder they would all match each other, and
    every such retrieval would count as a hit. The mark is keyed: of a plain hash, a phone number could be found
    by trying all.

    Args:
        text: an id of a log, a label, the corpus or a system.
        plain: `Scrubber.plain`, or a cache of it.
        keyed: `Workspace.keyed`.
    """
    done = plain(text)
    return text if done == text else f"{done}-{keyed('id' + chr(0) + text)[:MARK]}"
