"""Texts taken apart for the embedded judge: weighted stems, sentences, numbers, negations, who stands before whom.

Everything is cached by text, because one passage serves many verdicts. What follows from a difference belongs in
`contradictions.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from sys import intern

from ragbench_dagster.text.terms import STOPWORDS, WORD, plain_unicode, sentences, stem

# A function word counts a fifth of a content word: content alone misses an added "I think" or "my favourite".
FUNCTION_WEIGHT = 0.2

MAX_CLAUSES = 2000  # of one text, that are compared with each claim: bounds the time of a 100 kB log line

NEGATIONS = frozenset(
    ["not", "no", "never", "without", "cannot", "nor", "neither", "none", "nobody", "nothing", "nowhere", "avoid"]
)
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        ["zero", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
    if word
} | {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100"}
_TENS = re.compile(
    r"\b(twenty|thirty|forty|fifty|sixty|ninety)[\s-]{1,3}(one|two|three|four|five|six|seven|eight|nine)\b",
    re.IGNORECASE,
)
_ENUMERATOR = re.compile(r"^(?:\(?\d{1,2}[.)]|[-*\u2022\u25cf])(?:\s+|$)|(?<=:)\s*\(?\d{1,2}[.)]?$")
_WORD_OR_MARK = re.compile(WORD.pattern + r"|[,;:.!?()\u2014]")
# A negation reaches no further than these.
_CLAUSE_ENDS = frozenset([*",;:.!?()\u2014", "but", "and", "because", "so", "if", "when", "that", "which", "while"])
_REACH = 3  # content words, the first of them at most four words away
_MONEY = re.compile(r"([$\u20ac\u00a3\u00a5])\s?(\d[\d.,]*\d|\d)")
_CLAUSE = re.compile(r"(?<=[;:])\s+")


@dataclass(frozen=True)
class Sentence:
    """One sentence: `raw` words with their case, `low` folded, `stems` beside them."""

    text: str
    raw: tuple[str, ...]
    low: tuple[str, ...]
    stems: tuple[str, ...]

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.stems)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        return tuple(weight(word) for word in self.low)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of its content words, negations left out."""
        return frozenset(
            s for s, w in zip(self.stems, self.low, strict=True) if w not in STOPWORDS and not is_negation(w)
        )

    @cached_property
    def negations(self) -> tuple[tuple[str, ...], ...]:
        """For each negation the stems of the content words it reaches, the nearest first.

        A "No," that answers a question negates nothing by itself.
        """
        found: list[tuple[str, ...]] = []
        reached: list[str] | None = None
        at = 0
        tokens = [token.lower() for token in _WORD_OR_MARK.findall(plain_unicode(self.text))]
        for i, word in enumerate([*tokens, "."]):
            if is_negation(word):
                if reached:
                    found.append(tuple(reached))
                reached, at = (None if tokens[i + 1 : i + 2] in (["only"], ["just"]) else []), i
            elif reached is None:
                continue
            elif word in _CLAUSE_ENDS or len(reached) == _REACH or (not reached and i > at + 4):
                if reached:
                    found.append(tuple(reached))
                reached = None
            elif word not in STOPWORDS:
                reached.append(stem(word))
        return tuple(found)

    @cached_property
    def negated(self) -> frozenset[str]:
        """Every stem that a negation reaches."""
        return frozenset(s for reached in self.negations for s in reached)

    @cached_property
    def numbers(self) -> tuple[tuple[int, str], ...]:
        """(position, value) of every number."""
        return tuple((i, value) for i, word in enumerate(self.low) if (value := number(word)) is not None)

    @cached_property
    def quantities(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Each number with the stems of the content words near it: two after, one before."""
        at = self._content_at
        found: list[tuple[str, frozenset[str]]] = []
        for i, value in self.numbers:
            after = [at[j] for j in range(i + 1, i + 5) if j in at][:2]
            before = [at[j] for j in (i - 1, i - 2) if j in at][:1]
            found.append((value, frozenset(after + before)))
        return tuple(found)

    @cached_property
    def units(self) -> tuple[tuple[str, str], ...]:
        """(value, stem of the content word right after it) for each number that has one."""
        return tuple((v, self._content_at[i + 1]) for i, v in self.numbers if i + 1 in self._content_at)

    @cached_property
    def money(self) -> tuple[tuple[str, str], ...]:
        """(value, currency sign) of each amount that carries one."""
        return tuple((number(amount) or "", sign) for sign, amount in _MONEY.findall(self.text))

    @cached_property
    def owners(self) -> tuple[tuple[str, str], ...]:
        """(name, value) for each number with a name near it: the nearest, at most four words away."""
        found: list[tuple[str, str]] = []
        for i, value in self.numbers:
            near = [(min(abs(i - a), abs(i - b)), a > i, name) for a, b, name in self.names if not a <= i <= b]
            if near and min(near)[0] <= 4:
                found.append((min(near)[2], value))
        return tuple(found)

    @cached_property
    def _content_at(self) -> dict[int, str]:
        """Position to stem of the content words that are no numbers."""
        return {
            i: s
            for i, (s, w) in enumerate(zip(self.stems, self.low, strict=True))
            if w not in STOPWORDS and not is_negation(w) and number(w) is None
        }

    @cached_property
    def names(self) -> tuple[tuple[int, int, str], ...]:
        """(first position, last position, folded) of placeholders and of runs of capitalised words."""
        found: list[tuple[int, int, str]] = []
        for i, word in enumerate(self.raw):
            if not self._capital(i):
                continue
            if found and found[-1][1] == i - 1 and word[0] != "<" and self.raw[i - 1][0] != "<":
                found[-1] = (found[-1][0], i, f"{found[-1][2]} {self.low[i]}")
            else:
                found.append((i, i, self.low[i]))
        return tuple(found)

    def _capital(self, i: int) -> bool:
        first = self.raw[i][0]
        return first == "<" or (first.isupper() and self.low[i] not in STOPWORDS and not is_negation(self.low[i]))

    @cached_property
    def capitals(self) -> frozenset[str]:
        """Stems of placeholders and capitalised words, the first word of the sentence among them."""
        return frozenset(self.stems[i] for i in range(len(self.raw)) if self._capital(i))

    @cached_property
    def proper(self) -> frozenset[str]:
        """Those that are names for certain: a capital inside the sentence, or a second capital in the word."""
        return frozenset(
            self.stems[i]
            for i, word in enumerate(self.raw)
            if self._capital(i) and (i > 0 or word[0] == "<" or any(c.isupper() for c in word[1:]))
        )


class Text:
    """A text in its distinct sentences."""

    def __init__(self, text: str) -> None:
        stripped = (_ENUMERATOR.sub("", part) for part in sentences(text))
        self.sentences = tuple(parse(part) for part in dict.fromkeys(stripped) if part)

    @cached_property
    def known(self) -> frozenset[str]:
        """All its stems."""
        return frozenset().union(*(s.known for s in self.sentences))

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(value for s in self.sentences for _, value in s.numbers)

    @cached_property
    def clauses(self) -> tuple[Sentence, ...]:
        """The sentences cut further, at semicolons and colons; of a huge text, the first ones."""
        parts = (
            part
            for s in self.sentences
            for part in ((s,) if not _CLAUSE.search(s.text) else map(parse, _CLAUSE.split(s.text)))
        )
        return tuple(islice(parts, MAX_CLAUSES))

    @cached_property
    def proper(self) -> frozenset[str]:
        """Stems of the words that are names somewhere in the text."""
        return frozenset().union(*(s.proper for s in self.sentences))

    @cached_property
    def named_numbers(self) -> tuple[Sentence, ...]:
        """The sentences with a name and a number; of a huge text, among the first ones."""
        return tuple(s for s in self.sentences[:MAX_CLAUSES] if s.numbers and s.names)

    @cached_property
    def named(self) -> tuple[Sentence, ...]:
        """The sentences with two names or more; of a huge text, among the first ones."""
        return tuple(s for s in self.sentences[:MAX_CLAUSES] if len(s.names) > 1)


def parse(text: str) -> Sentence:
    """`text` as one sentence."""
    # Interned: a passage is a handful of numbers of the words it shares with all others.
    raw = tuple(map(intern, WORD.findall(_TENS.sub(_in_digits, plain_unicode(text)))))
    low = tuple(intern(word.lower()) for word in raw)
    return Sentence(text, raw, low, tuple(number(word) or stem(word) for word in low))


def _in_digits(match: re.Match[str]) -> str:
    return str(int(_NUMBER_WORDS[match[1].lower()]) + int(_NUMBER_WORDS.get(match[2].lower(), "1")))


@lru_cache(maxsize=4096)  # 60 kB each
def analyse(text: str) -> Text:
    """The analysis of a text, remembered."""
    return Text(text)


@lru_cache(maxsize=100_000)
def weight(word: str) -> float:
    """What a folded word counts in a coverage."""
    return FUNCTION_WEIGHT if word in STOPWORDS else 1.0


@lru_cache(maxsize=100_000)
def is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


@lru_cache(maxsize=100_000)
def number(word: str) -> str | None:
    """A number in one spelling (1,000 = 1000, 10.50 = 10.5, seven = 7); None for another word."""
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if not word[0].isdigit():
        return None
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", word):
        word = word.replace(",", "")
    if re.fullmatch(r"\d+\.\d+", word):
        word = word.rstrip("0").rstrip(".")
    return word.lstrip("0") or "0" if word.isdigit() else word


def coverage(sentence: Sentence, known: frozenset[str] | set[str]) -> tuple[float, float]:
    """(covered weight, whole weight) of the words of `sentence` that are in `known`."""
    covered = whole = 0.0
    for stemmed, heavy in zip(sentence.stems, sentence.weights, strict=True):
        whole += heavy
        if stemmed in known:
            covered += heavy
    return covered, whole


def union(texts: Sequence[Text]) -> frozenset[str]:
    """All stems of several texts."""
    return frozenset().union(*(text.known for text in texts))


# Sentences that say "I do not know": they claim nothing and answer nothing.

_NOT_KNOWN = re.compile(
    r"""
    \b(?:i|we)\s(?:really\s|currently\s|just\s|am\s+afraid\s+i\s)?(?:do\snot|don't|cannot|can't|could\snot|couldn't|am\snot|'m\snot
        |are\snot|was\snot|were\snot)\s(?:actually\s|currently\s|really\s)?
        (?:know|have\s(?:access|any|enough|information|specific|the|an?\sanswer|details|data)|find|found|answer|help
        |tell|say|determine|able|sure|certain|aware|see\sany|provide|locate|assist|discuss)
  | \bi'm\s(?:not\s(?:sure|able|certain|aware)|unable|sorry)
  | \b(?:i|we)\s(?:am|are|was|were)\s(?:unable|sorry)
  | \b(?:the|these|those|this|my|our|your|available|provided|given|any)\s(?:\w+\s){0,3}
        (?:documents?|documentation|docs|context|contexts|passages?|text|sources?|information|knowledge\sbase|articles?|pages?)\s
        (?:\w+\s){0,2}(?:do\snot|does\snot|don't|doesn't|did\snot|didn't|cannot|can't)\s(?:\w+\s)?
        (?:say|mention|provide|contain|specify|include|cover|state|answer|give|tell|have|describe|explain|address)
  | \b(?:there\sis|there's|found|have)\sno\s(?:\w+\s){0,2}(?:information|answer|mention|data|details|documentation)\b
  | \bno\s(?:\w+\s){0,2}(?:information|answer|documents?|results?)\s(?:\w+\s){0,2}(?:found|available|given|provided)
  | \b(?:is|are|was|were)\s(?:not|n't)\s(?:mentioned|specified|stated|provided|covered|described|documented)\b
  | \bcannot\sbe\s(?:answered|determined|found)\b
  | \bas\san\sai\s(?:language\s)?model\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# "I'm not sure but ..." goes on to answer, "While the docs do not say ..., they ..." too.
_GOES_ON = re.compile(r"\b(?:but|however|although|though)\b", re.IGNORECASE)
_CONCEDES = re.compile(r"\W*(?:while|although|though|even if)\b", re.IGNORECASE)
_LATEST = 45  # characters into a sentence where a refusal may begin; later, something was claimed before


def refuses(sentence: Sentence) -> bool:
    """Whether the sentence only says that the answer is not known or not given."""
    text = sentence.text.replace("\u2019", "'")
    matches = list(_NOT_KNOWN.finditer(text))
    if not matches or matches[0].start() > _LATEST or _CONCEDES.match(text):
        return False
    return not _GOES_ON.search(text, matches[-1].end())


def claims(answer: Text) -> tuple[list[Sentence], bool]:
    """(the sentences that claim something, whether the answer as a whole is a refusal).

    An answer is a refusal when it begins with one and what follows is no longer than an offer of help.
    """
    stated = [s for s in answer.sentences if s.low]
    kept = [s for s in stated if not refuses(s)]
    if len(kept) == len(stated):
        return kept, False
    rest = sum(len(s.content) for s in kept)
    return kept, rest == 0 or (refuses(stated[0]) and rest <= 8 and all(_offers(s) for s in kept))


def _offers(sentence: Sentence) -> bool:
    return bool({"sorri", "contact", "support", "help", "rephras", "provid", "pleas", "apologi"} & sentence.known)
