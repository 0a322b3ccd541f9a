"""The user's own recognisers from `scrub.recognizers`: a regular expression, or a recogniser by import path.

An import path names a factory without arguments, `module:factory`. What it returns is a Presidio
`EntityRecognizer`, or any callable `text -> iterable of (start, end)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ragbench_dagster import plugins
from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Recognizer
from ragbench_dagster.traffic.scrubbing.normalise import bounded
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

Find = Callable[[str], Iterator[Span]]


def build(index: int, recognizer: Recognizer, root: Path | None = None) -> Find:
    """The finder of the `index`-th entry; `root` is the workspace, whose own modules may be named.

    Raises:
        UserError: neither or both of `regex` and `import_path`, a bad name, or an import that fails.
    """
    where = f"ragbench.yaml: scrub.recognizers[{index}]"
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", recognizer.entity):
        raise UserError(f"{where}.entity: {recognizer.entity!r} must be capitals, digits and underscores")
    if bool(recognizer.regex) == bool(recognizer.import_path):
        raise UserError(f"{where}: give either regex or import_path")
    if recognizer.regex:
        return _by_pattern(recognizer.entity, re.compile(recognizer.regex), recognizer.score)
    return _by_import(f"{where}.import_path", recognizer, root)


def _by_pattern(entity: str, pattern: re.Pattern[str], score: float) -> Find:
    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            if match.end() > match.start():
                yield Span(match.start(), match.end(), entity, score, Evidence.OWN)

    return find


def _by_import(where: str, recognizer: Recognizer, root: Path | None) -> Find:
    path = str(recognizer.import_path)
    made = plugins.call_factory(plugins.load_factory(path, root, where), None, {}, where)
    analyze = getattr(made, "analyze", None)
    if analyze is None and not callable(made):
        raise UserError(f"{where}: {path} returned neither a recogniser nor a function; return one of them")
    entity, score = recognizer.entity, recognizer.score

    def find(text: str) -> Iterator[Span]:
        if analyze is not None:
            for result in analyze(text, list(getattr(made, "supported_entities", [entity])), None) or ():
                yield Span(result.start, result.end, entity, result.score, Evidence.OWN)
        else:
            for start, end in made(text):
                yield Span(start, end, entity, score, Evidence.OWN)

    return find


class Allowed:
    """The allow-list: product names and the like are never personal, in any case."""

    def __init__(self, phrases: list[str]) -> None:
        words = sorted({p.strip() for p in phrases if p.strip()}, key=lambda p: (-len(p), p))
        joined = "|".join(bounded(re.escape(w).replace(r"\ ", r"\s+"), w) for w in words)
        self._pattern = re.compile(joined, re.IGNORECASE) if words else None

    def keep(self, spans: list[Span], text: str) -> list[Span]:
        """`spans` without those that lie wholly inside an allowed phrase."""
        if self._pattern is None or not spans:
            return spans
        zones = [m.span() for m in self._pattern.finditer(text)]
        return [s for s in spans if not any(a <= s.start and s.end <= b for a, b in zones)]
