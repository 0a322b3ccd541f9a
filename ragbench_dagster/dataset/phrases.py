"""Greetings, politeness and announcements that say nothing about the question. The lists are data.

`wordlists/openings.txt` are taken from the front, `closings.txt` from the end, `fillers.txt` anywhere,
`announcements.txt` where a placeholder follows them ("my name is <PERSON>"). One phrase a line, `#` comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

from ragbench_dagster.store import digest

# By the word at the edge, then by length, the longest first.
Phrases = dict[str, list[tuple[int, frozenset[tuple[str, ...]]]]]

# Openings that are not one when this word follows.
_NOT_OPENINGS = {("hello", "world"), ("hi", "fi"), ("hey", "jude"), ("please", "advise")}


def read_list(name: str) -> list[str]:
    """The entries of a word list, without comments."""
    text = files("ragbench_dagster.dataset").joinpath("wordlists", name).read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def lists_hash(*names: str) -> str:
    """Hash of what the named lists hold."""
    return digest({name: read_list(name) for name in names}, size=8)


def read_words(name: str) -> frozenset[str]:
    """The words of a list whose lines hold many."""
    return frozenset(word for line in read_list(name) for word in line.split())


_BINDING = read_words("binding_words.txt")
_ASKS = read_words("function_words.txt") | read_words("binding_words.txt") | {"me", "please", "thanks"}
_GREETINGS = frozenset("hi hello hey dear sorry thanks thank good yo aloha greetings".split())
# Before a closing these make it what is spoken of: "kind regards or best regards".
_NAMING = frozenset("of say says saying write type spell called named vs versus and or as the a an word phrase".split())


def _second_words(openings: Phrases) -> dict[str, frozenset[str] | None]:
    """What may follow the first word of an opening; None where that word is an opening itself."""
    found: dict[str, frozenset[str] | None] = {}
    for word, phrases in openings.items():
        alone = any(size == 1 for size, _ in phrases)
        found[word] = None if alone else frozenset(phrase[1] for _, group in phrases for phrase in group)
    return found


def _by(name: str, end: int) -> Phrases:
    """The phrases of a list by their first (0) or last (-1) word."""
    found: dict[str, dict[int, set[tuple[str, ...]]]] = {}
    for line in read_list(name):
        words = tuple(line.split())
        found.setdefault(words[end], {}).setdefault(len(words), set()).add(words)
    return {
        word: [(size, frozenset(by_size[size])) for size in sorted(by_size, reverse=True)]
        for word, by_size in found.items()
    }


class _Lists:
    """The phrase lists, as they are looked up."""

    def __init__(self) -> None:
        self.openings = _by("openings.txt", 0)
        self.seconds = _second_words(self.openings)
        self.closings = _by("closings.txt", -1)
        self.fillers = frozenset(read_list("fillers.txt"))
        self.announcements = _by("announcements.txt", 0)


_lists = lru_cache(maxsize=1)(_Lists)


# After these a word of politeness is one; before the others it is a verb; these open a clause behind it; these name it.
_SPEAKERS = frozenset(
    "you u i we me us someone somebody anyone anybody can could would will and but so then hi hello help".split()
)
_OBJECTS = frozenset("my the a an him her them his everyone everybody people customers god".split())
_CLAUSE_STARTS = frozenset(
    "how what why when where which who can could is are do does and or but because if so".split()
)
_DETERMINERS = frozenset(
    "the a an this that these those my your our their his her its no any some of called named".split()
)


def is_placeholder(token: str) -> bool:
    return token[:1] == "<" and token[-1:] == ">" and len(token) > 2


def has_placeholder(tokens: Sequence[str]) -> bool:
    """One of `tokens` is a placeholder."""
    return "<" in "".join(tokens) and any(map(is_placeholder, tokens))


def strip_phrases(tokens: list[str], placeholders: bool = True) -> list[str]:
    """`tokens` without greetings, politeness and announced placeholders; never without any token.

    The same list comes back where nothing was taken off.

    Args:
        placeholders: False where the caller knows that there is none.
    """
    lists = _lists()
    kept = _edges(tokens, lists)
    if placeholders and has_placeholder(kept):
        kept = _edges(_without_announcements(kept, lists.announcements), lists)
    if not lists.fillers.isdisjoint(kept):
        kept = _edges(_without_fillers(kept, lists.fillers) or kept, lists)
    return kept


def _without_fillers(tokens: list[str], fillers: frozenset[str]) -> list[str]:
    """`tokens` without words of politeness, but for those that are named or do something ("the please wait screen")."""
    return [token for at, token in enumerate(tokens) if token not in fillers or not _is_filler(tokens, at)]


def _is_filler(tokens: list[str], at: int) -> bool:
    if at in (0, len(tokens) - 1):
        return True
    before, after = tokens[at - 1], tokens[at + 1]
    if before in _SPEAKERS:
        return after not in _OBJECTS  # "how do i please my boss" is about pleasing
    return after in _CLAUSE_STARTS and before not in _DETERMINERS


def _edges(tokens: list[str], lists: _Lists) -> list[str]:
    kept = tokens
    while kept[0] in lists.seconds:
        following = lists.seconds[kept[0]]
        if following is not None and (len(kept) == 1 or kept[1] not in following):
            break
        shorter = _after_opening(kept, lists.openings[kept[0]])
        if shorter is kept:
            break
        kept = shorter
    while kept[-1] in lists.closings:
        shorter = _before_closing(kept, lists.closings[kept[-1]])
        if shorter is kept:
            break
        kept = shorter
    return kept


def _after_opening(tokens: list[str], phrases: list[tuple[int, frozenset[tuple[str, ...]]]]) -> list[str]:
    for size, group in phrases:
        if (
            len(tokens) > size
            and tuple(tokens[:size]) in group
            and tuple(tokens[size - 1 : size + 1]) not in _NOT_OPENINGS
            and not (tokens[0] in _GREETINGS and _is_title(tokens[size:]))
        ):
            return tokens[size:]
    return tokens


def _is_title(rest: list[str]) -> bool:
    """True for two or three words without any that asks or joins: "kitty price" behind "hello" is no question."""
    return 1 < len(rest) < 4 and _ASKS.isdisjoint(rest) and not has_placeholder(rest)


def _before_closing(tokens: list[str], phrases: list[tuple[int, frozenset[tuple[str, ...]]]]) -> list[str]:
    for size, group in phrases:
        if len(tokens) > size and tuple(tokens[-size:]) in group and tokens[-size - 1] not in _NAMING:
            return tokens[:-size]
    return tokens


def _without_announcements(tokens: list[str], announcements: Phrases) -> list[str]:
    """Drop "my name is <person>" at the front or the end, if a question remains."""
    kept = tokens
    start = 0
    while start < len(kept):
        end = _announcement_end(kept, start, announcements)
        if end is None:
            start += 1
            continue
        at_edge = start == 0 or (end == len(kept) and kept[start - 1] not in _BINDING)
        if at_edge and len(kept) - (end - start) >= 2:
            kept = kept[:start] + kept[end:]
            start = 0
        else:
            start = end
    return kept


def _announcement_end(tokens: list[str], start: int, announcements: Phrases) -> int | None:
    for size, group in announcements.get(tokens[start], ()):
        end = start + size
        if end < len(tokens) and is_placeholder(tokens[end]) and tuple(tokens[start:end]) in group:
            while end < len(tokens) and is_placeholder(tokens[end]):
                end += 1
            return end
    return None
