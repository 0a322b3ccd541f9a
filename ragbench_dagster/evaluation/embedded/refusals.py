"""Sentences that say "I do not know": they claim nothing and answer nothing."""

from __future__ import annotations

import re

from ragbench_dagster.evaluation.embedded.analysis import Sentence, Text

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
