"""Courtesy by structure: a clause of its own in which nothing is asked or told (design 8).

Greetings, thanks, urgency, excuses and self-introductions before or after a question, in any wording: a clause whose
words are all small words or words of courtesy (`wordlists/courtesy.txt`), or one that gives a name. Where no
punctuation parts them, a run of such words at the front ends where a question begins, and one at the end begins with a
word that begins courtesy. What is quoted, named or asked for ("the please wait screen", "say thank you") is content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from ragbench_dagster.dataset.phrases import has_placeholder, is_placeholder, read_list, read_words

QUOTE = '"'
LONGEST = 14  # words of a clause of courtesy
_RUN = 9  # words of courtesy that no punctuation ends


def _read_classes() -> dict[str, frozenset[str]]:
    lines = (line.partition(":") for line in read_list("courtesy_classes.txt"))
    return {name: frozenset(words.split()) for name, _, words in lines}


_CLASS = _read_classes()
_GLUE, _WHAT, _ASKING = _CLASS["glue"], _CLASS["what"], _CLASS["asking"]
_STARTS, _BEGINS, _MENTION = _CLASS["starts"], _CLASS["begins"], _CLASS["mention"]
_AROUND_STATE = _GLUE | _CLASS["states"] | _CLASS["being"] | _CLASS["degrees"] | _CLASS["around"]
_NO_END = _MENTION | _CLASS["unfinished"] | read_words("binding_words.txt")
# Whole clauses that no class of words makes.
_FIXED = re.compile(
    r"(?:(?:and |so )?how (?:are|r|is|have|do) (?:you|u|ya|yall|it|things|life|everyone|everybody|we)|"
    r"hows (?:it|everything|everyone|everybody|life|things)|whats (?:up|new|good)|what is up|wassup)"
    r"(?: (?:all|guys|folks|doing|going|today|feeling|keeping|been|do|everyone|there|this|morning|evening))*|"
    r"(?:is )?(?:anyone|anybody|someone|somebody) (?:there|here|home|around)|are you (?:there|around|here)|"
    r"who (?:can|could) (?:please )?(?:help|answer|tell|explain|advise)(?: (?:me|us|this|that|it|out|with|please))*|"
    r"who knows(?: (?:this|that|it))?|(?:its )?me again|(?:just )?one (?:more|last|other) (?:thing|question)|"
    r"(?:that|this|it)s? (?:is )?(?:all|it)(?: (?:for now|from me|i (?:want|need|wanted)(?: to (?:know|ask))?))?|"
    r"(?:i am |im )?(?:short on|out of|running out of|no|not much|little) time|time is (?:short|running out)|"
    r"to whom(?: it)? may concern|to whom it may concern|i (?:dont|do not) (?:get|understand) (?:it|this|that)(?: at all)?|"
    r"take care(?: (?:all|everyone|everybody|guys))?|(?:please )?(?:keep up the|good|great|nice) (?:good |great )?(?:work|job)|"
    r"(?:you )?have a (?:good|great|nice|lovely) one|(?:see|talk to|speak to) (?:you|u|ya)(?: (?:all|soon|later|around))*|"
    r"(?:talk|speak) soon|(?:first|long|second) time (?:user|here|caller|reader|asker|poster|asking|listener)(?: first time \w+)?|"
    r"(?:great|good|nice|excellent|awesome|lovely) (?:service|app|product|tool|site|website|bot|chat)(?: by the way| btw| so far)?"
)
_NAMED = re.compile(
    r"(?:(?:hi|hello|hey|and) )?(?:my (?:full )?names?(?: is)?|names? is|(?:they|people|friends) call me|"
    r"(?:you (?:can|may)|just) call me) ([^\W\d_]+|<person>)(?: ([^\W\d_]+|<person>))?(?: ([^\W\d_]+|<person>))?"
)
_IS_NAME = re.compile(r"(?:(?:hi|hello|hey|and) )?(?:i am|im|this is|its|it is|here is) (.+)")
_PLEASE = frozenset(["please", "pls", "plz", "kindly"])
_TITLES = frozenset(["mr", "mrs", "ms", "dr"])


def _read_companions() -> dict[str, frozenset[str]]:
    """The companions of each word that shows courtesy."""
    found: dict[str, set[str]] = {}
    for line in read_list("courtesy.txt"):
        words, _, companions = line.partition(":")
        for word in words.split():
            found.setdefault(word, set()).update(companions.split(), words.split())
    return {word: frozenset(companions) for word, companions in found.items()}


_COMPANIONS = _read_companions()
_GIVEN_NAMES = read_words("given_names.txt")
# Words that are no content.
_EMPTY = frozenset(
    _GLUE
    | _WHAT
    | _ASKING
    | _CLASS["persons"]
    | _CLASS["states"]
    | read_words("function_words.txt")
    | _COMPANIONS.keys()
) | {QUOTE}
# Words without any of which a text has no clause of courtesy, and none at its ends where no punctuation parts them.
SIGNS = frozenset(_COMPANIONS.keys() | _CLASS["states"] | _GIVEN_NAMES | _CLASS["fixed"])
_AT_END = _CLASS["strong"] | _CLASS["states"]
_AT_FRONT = (_AT_END | _CLASS["frames"] | _GIVEN_NAMES | {"name", "names"}) - {"me"}
STRONG_SIGNS = _AT_FRONT
ANY_SIGNS = SIGNS | STRONG_SIGNS
_FRONT_ENDS = _CLASS["ends"] | _GIVEN_NAMES


def speaks_of(clause: Sequence[str]) -> bool:
    """True for a clause that speaks of words: "how do i say hello, goodbye and thanks" goes on behind its commas."""
    return not _MENTION.isdisjoint(clause)


def without_courtesy(clauses: Sequence[Sequence[str]]) -> list[str]:
    """The words of `clauses` without the clauses of courtesy at both ends, where something is left that is asked."""
    first, last = 0, len(clauses)
    while last - first > 1 and is_courtesy(clauses[first]) and _has_content(clauses[first + 1 : last]):
        first += 1
    while last - first > 1:
        if is_courtesy(clauses[last - 1]):
            shorter = last - 1
        elif last - first > 2 and _is_signature(clauses[last - 1]) and is_courtesy(clauses[last - 2]):
            shorter = last - 2
        else:
            break
        if not _has_content(clauses[first:shorter]):
            break
        last = shorter
    kept = list(chain.from_iterable(map(_without_please, clauses[first:last])))
    if QUOTE in kept:
        kept = [word for word in kept if word != QUOTE]
    while first and len(kept) > 1 and kept[0] in ("but", "and", "so"):
        kept = kept[1:]
    return without_courteous_ends(kept)


def _without_please(clause: Sequence[str]) -> Sequence[str]:
    """A clause without the word of politeness that it begins or ends with."""
    if len(clause) > 1 and clause[0] in _PLEASE:
        clause = clause[1:]
    return clause[:-1] if len(clause) > 1 and clause[-1] in _PLEASE and clause[-2] not in _NO_END else clause


def without_courteous_ends(tokens: list[str]) -> list[str]:
    """`tokens` without a run of courtesy at the front and at the end that no punctuation parts from the question."""
    kept = tokens
    if kept[0] not in _WHAT and not _AT_FRONT.isdisjoint(kept[:_RUN]):
        for end in range(min(_RUN, len(kept) - 2), 0, -1):
            if (
                kept[end] in _STARTS
                and _may_end_front(kept[end - 1])
                and _opens(kept[:end], kept[end:])
                and _has_content([kept[end:]])
            ):
                kept = kept[end:]
                break
    if not _AT_END.isdisjoint(kept[-_RUN:]):
        for start in range(max(2, len(kept) - _RUN), len(kept)):
            if kept[start] in _BEGINS and kept[start - 1] not in _NO_END and _closes(kept[:start], kept[start:]):
                return kept[:start]
    return kept


def _may_end_front(word: str) -> bool:
    """True for a word, or a placeholder, that a run of courtesy at the front can end with."""
    return word in _FRONT_ENDS or is_placeholder(word)


def _opens(front: Sequence[str], rest: Sequence[str]) -> bool:
    """True when `front`, of which `_may_end_front` holds, is courtesy that is over where `rest` begins."""
    last = front[-1]
    if last == "you" and front[-2:-1] != ["thank"]:
        return False
    asks = rest[0] in _WHAT and rest[1] not in ("but", "and", "or")
    if front[0] in _ASKING and (not asks or rest[0] == "when"):  # "can you help when ..." goes on
        return False
    told = not _CLASS["strong"].isdisjoint(front) or _tells_state(front) or _introduces(front)
    return (told or (asks and front[-1] in _CLASS["frames"])) and is_courtesy(front)


def _closes(rest: Sequence[str], end: Sequence[str]) -> bool:
    """True when `rest`, whose last word can end a question, is one that is over where courtesy begins."""
    if end[0] == "i" and end[1:2] == ["have"]:
        return False
    told = not _CLASS["strong"].isdisjoint(end) or _tells_state(end)
    return told and is_courtesy(end) and _has_content([rest])


def is_courtesy(clause: Sequence[str]) -> bool:
    """True for a clause that neither asks nor tells anything."""
    if len(clause) > LONGEST or (SIGNS.isdisjoint(clause) and not has_placeholder(clause)):
        return False
    return _is_courtesy(tuple(clause))


@lru_cache(maxsize=1 << 14)
def _is_courtesy(clause: tuple[str, ...]) -> bool:
    if not clause or QUOTE in clause:
        return False
    if clause[0] in _CLASS["fixed_first"] and _FIXED.fullmatch(" ".join(clause)):
        return True
    if clause[0] in _WHAT or (clause[0] in _ASKING and not _asks_for_help(clause)):
        return False
    return _is_of_courtesy(clause) or _tells_state(clause) or _introduces(clause)


def _asks_for_help(clause: Sequence[str]) -> bool:
    """True for "can anyone help", not for "is it urgent": it is to a person."""
    return len(clause) > 1 and clause[1] in _CLASS["persons"]


def _is_of_courtesy(clause: Sequence[str]) -> bool:
    """True for a clause of nothing but small words, words of courtesy and what may stand beside them."""
    present = [word for word in clause if word in _COMPANIONS]
    if not present or not (_is_spoken_to(clause) or _is_exclaimed(clause, present)):
        return False
    others = [
        word
        for word in clause
        if word not in _GLUE and not any(word in _COMPANIONS[shown] for shown in present) and not _is_emoji(word)
    ]
    if others and not _CLASS["frames"].isdisjoint(clause):  # "tell wanda where i am" is an order
        return False
    return len(others) <= 2 and all(is_placeholder(word) or word in _GIVEN_NAMES for word in others)


def _is_spoken_to(clause: Sequence[str]) -> bool:
    return not (_CLASS["first"].isdisjoint(clause) and _CLASS["persons"].isdisjoint(clause))


def _is_exclaimed(clause: Sequence[str], present: Sequence[str]) -> bool:
    """True for "another question" and "many thanks", not for "the answer": things are courtesy only with a lead."""
    if any(word not in _CLASS["things"] for word in present):
        return True
    if len(clause) == 1:
        return clause[0] in _CLASS["alone"]
    if clause[0] == present[0] and clause[0] not in _CLASS["alone"]:  # "reply to all"
        return False
    beside = _COMPANIONS[present[0]]
    return (clause[0] in beside or clause[0] in _CLASS["leads"]) and all(w in beside or w in _GLUE for w in clause)


def _is_emoji(word: str) -> bool:
    return len(word) <= 2 and not word.isascii() and not word.isalnum()


def _tells_state(clause: Sequence[str]) -> bool:
    """True for "i am new to all of this", not for "i lost it" nor "i am pregnant"."""
    at = next((i for i, word in enumerate(clause) if word in _CLASS["states"]), None)
    if at is None or not all(word in _AROUND_STATE for word in clause):
        return False
    start = at
    while start and clause[start - 1] in _CLASS["degrees"]:
        start -= 1
    if not start:  # "complete beginner", not "lost"
        return len(clause) > 1 or clause[0] in ("newbie", "noob", "beginner", "confused", "desperate")
    return clause[start - 1] in _CLASS["being"] and not _CLASS["first"].isdisjoint(clause)


def _introduces(clause: Sequence[str]) -> bool:
    """True for a clause that only says who asks."""
    text = " ".join(clause)
    named = _NAMED.fullmatch(text) if "name" in text or "call" in text else None
    if named:
        return not any(word in _EMPTY for word in named.groups() if word)
    if _GIVEN_NAMES.isdisjoint(clause) and not has_placeholder(clause):
        return False
    said = _IS_NAME.fullmatch(text)
    if not said and clause[-1] not in ("here", "speaking"):
        return False
    words = said[1].split(" ") if said else list(clause)
    names = 0
    while names < len(words) and (words[names] in _GIVEN_NAMES or is_placeholder(words[names])):
        names += 1
    rest = words[names:]
    if rest[:1] == ["from"] and rest[-1] in _CLASS["teams"] and len(rest) <= 4:
        rest = []
    return names > 0 and (
        not rest
        or rest in (["here"], ["again"], ["here", "again"], ["speaking"], ["and", "i", "have", "a", "question"])
    )


def _is_signature(clause: Sequence[str]) -> bool:
    """True for the name, or the two, that a letter ends with."""
    name = [word for word in clause if word not in _TITLES]
    known = len(name) < len(clause) or all(is_placeholder(word) or word in _GIVEN_NAMES for word in name)
    return 0 < len(name) <= 2 and known


def _has_content(clauses: Sequence[Sequence[str]]) -> bool:
    return not all(map(_EMPTY.issuperset, clauses))
