"""What contradicts a claim although its words are covered: negations, opposites, names in the wrong place.

Each check takes a claim and the clauses near it, and returns a short reason or None. They only fire on clauses
that say nearly the same: a paraphrase must not be called a contradiction. Numbers are `quantities.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragbench_dagster.evaluation.embedded.analysis import Sentence, Text
from ragbench_dagster.text.terms import STOPWORDS, stem

# Words of software documentation and everyday English that turn a sentence round when exchanged.

_PAIRS = """
enable/disable enabled/disabled allow/forbid allow/prohibit allow/block allow/deny allowed/forbidden permit/forbid
accept/reject approve/reject increase/decrease increase/reduce rise/fall rise/drop grow/shrink raise/lower higher/lower
maximum/minimum most/least more/less more/fewer before/after above/below open/closed open/close start/stop start/end
begin/end first/last early/late earlier/later include/exclude included/excluded required/optional mandatory/optional
public/private online/offline encrypted/unencrypted success/failure succeed/fail pass/fail valid/invalid
available/unavailable supported/unsupported possible/impossible able/unable same/different always/never free/paid
add/remove install/uninstall show/hide inbound/outbound upload/download import/export upgrade/downgrade
internal/external old/new long/short large/small big/small fast/slow strong/weak good/bad better/worse best/worst
win/lose profit/loss gain/loss true/false buy/sell agree/disagree positive/negative improve/worsen active/inactive
automatic/manual automatically/manually permanent/temporary high/low send/receive up/down monthly/annual monthly/yearly
daily/weekly weekly/monthly include/omit lock/unlock subscribe/unsubscribe connect/disconnect visible/hidden
read-only/writable safe/unsafe safe/dangerous legal/illegal inside/outside indoors/outdoors full/empty full/partial
all/none everyone/nobody ascending/descending expand/contract optimistic/pessimistic majority/minority rare/common
rarely/often
"""


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _PAIRS.split():
        one, other = (stem(word) for word in pair.split("/"))
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _table()

# Which clauses of the contexts speak of the same thing as a claim. What differs between them is `contradictions.py`'s.


@dataclass(frozen=True, slots=True)
class Near:
    """A clause that shares content words with a claim; the shares are of distinct content words."""

    clause: Sentence
    text: Text  # the passage it stands in
    shared: frozenset[str]
    of_claim: float
    of_clause: float


def near(claim: Sentence, contexts: Sequence[Text]) -> list[Near]:
    """The clauses that share two content words with the claim, or most of what either says; the closest first."""
    wanted = claim.content
    if not wanted:
        return []
    found: list[Near] = []
    for text in contexts:
        for clause in text.clauses:
            shared = wanted & clause.content
            if not shared:
                continue
            of_claim, of_clause = len(shared) / len(wanted), len(shared) / len(clause.content)
            if len(shared) > 1 or of_claim >= 0.5 or of_clause >= 0.5:
                found.append(Near(clause, text, shared, of_claim, of_clause))
    found.sort(key=lambda n: (-n.of_claim, -n.of_clause))
    return found


def closest(found: Sequence[Near], least: float = 0.6) -> list[Near]:
    """Those that cover most of the claim: the best and the nearly as good."""
    if not found:
        return []
    floor = max(least, found[0].of_claim - 0.1)
    return [n for n in found if n.of_claim >= floor]


# What contradicts a claim although its words are covered: negations, opposites, names in the wrong place.

_ALIKE = 0.6  # share of content words in common from which two clauses say nearly the same
# Function words that say who does what to whom; `by` turns a passive round.
_DIRECTED = frozenset(["by", "to", "from", "before", "after", "than", "over", "under", "into", "above", "below"])
_CONDITIONS = frozenset(["if", "unless", "whether"])
# Both orders of these mean one thing.
_SYMMETRIC = frozenset(
    ["marri", "marry", "meet", "met", "equal", "differ", "similar", "sibling", "brother", "sister", "cousin", "friend"]
)


def wrong_negation(claim: Sentence, found: Sequence[Near]) -> str | None:
    """A word that the claim negates and the clauses that say the same do not, or the other way round."""
    for head, *_ in claim.negations:
        same = [n.clause for n in found if n.of_claim >= 0.5 and head in n.clause.content]
        alike = [n.clause for n in found if n.of_claim >= 0.8 and head in n.clause.content]
        if alike and not any(head in clause.negated for clause in same):
            return "a negation that the contexts do not have"
    for n in found:
        if n.of_clause < _ALIKE or n.of_claim < 0.5 or len(n.shared) < 2 or _CONDITIONS & n.clause.known:
            continue
        for head, *_ in n.clause.negations:
            if head not in claim.content or head in claim.negated:
                continue
            plain = any(
                head in other.clause.content and head not in other.clause.negated and other.of_claim >= _ALIKE
                for other in found
            )
            if not plain:
                return "a negation of the contexts left out"
    return None


def opposite(claim: Sentence, found: Sequence[Near]) -> str | None:
    """A word whose opposite stands in a clause that says the same, while no close clause has the word itself."""
    near = [n for n in found if n.of_claim >= 0.5]
    for stemmed in claim.known & OPPOSITES.keys():
        if any(stemmed in n.clause.known for n in near):
            continue
        for n in near:
            if n.of_clause < _ALIKE:
                continue
            for other in OPPOSITES[stemmed] & n.clause.known:
                if (stemmed in claim.negated) == (other in n.clause.negated):
                    return "the opposite of what the contexts say"
    return None


def other_name(claim: Sentence, found: Sequence[Near], contexts: Sequence[Text]) -> str | None:
    """What the contexts say of another name: a clause that is the claim with its name exchanged."""
    if not claim.capitals or not any(claim.content - claim.capitals <= n.shared for n in found):
        return None
    proper = claim.proper.union(*(text.proper for text in contexts))
    names = claim.capitals & proper
    said = claim.content - names
    if not names or not said:
        return None
    exchanged = False
    for n in found:
        if not said <= n.shared:
            continue
        if names <= n.clause.known:
            return None  # the contexts say it of this name too
        others = n.clause.capitals & proper
        rest = n.clause.content - others
        if others - claim.known and len(rest & said) >= _ALIKE * len(rest):
            exchanged = True
    return "what the contexts say of another name" if exchanged else None


def swapped(claim: Sentence, contexts: Sequence[Text]) -> str | None:
    """Two names that the contexts join by the same words with the roles exchanged ("A manages B")."""
    for (_, i, first), (j, _, second) in pairwise(claim.names):
        between = _between(claim, i, j)
        if first == second or between is None:
            continue
        agent = _agent(first, second, between)
        agents = {
            found
            for text in contexts
            for sentence in text.named
            for found in _agents(sentence, {first, second}, between - {"by"})
        }
        if agents and agent not in agents:
            return "the names stand the other way round"
    return None


def _agent(first: str, second: str, between: frozenset[str]) -> str:
    """Who does it: the first name, or the second in a passive ("A is managed by B")."""
    return second if "by" in between else first


def _between(sentence: Sentence, i: int, j: int) -> frozenset[str] | None:
    """What joins the words at i and j: content stems and words of direction; None where nothing directed does."""
    found = frozenset(
        s
        for s, w in zip(sentence.stems[i + 1 : j], sentence.low[i + 1 : j], strict=True)
        if w not in STOPWORDS or w in _DIRECTED
    )
    return None if not found or found & _SYMMETRIC else found


def _agents(sentence: Sentence, pair: set[str], joined: frozenset[str]) -> list[str]:
    """Who does it, at each place where the two names of `pair` are joined by the words `joined`."""
    names = [name for name in sentence.names if name[2] in pair]
    found = []
    for (_, i, one), (j, _, other) in pairwise(names):
        between = _between(sentence, i, j)
        if one != other and between is not None and between - {"by"} == joined:
            found.append(_agent(one, other, between))
    return found


def contradiction(claim: Sentence, found: Sequence[Near], contexts: Sequence[Text]) -> str | None:
    """The first of the checks above that fires."""
    return (
        wrong_negation(claim, found)
        or opposite(claim, found)
        or other_name(claim, found, contexts)
        or swapped(claim, contexts)
    )


def spelt_alike(word: str, known: set[str] | frozenset[str]) -> bool:
    """Whether `known` has the word with one letter more, less, other or exchanged; long words only, no digits."""
    if len(word) < 5 or not word.isalpha():
        return False
    return any(abs(len(word) - len(k)) <= 1 and k[0] == word[0] and _one_edit(word, k) for k in known)


def _one_edit(a: str, b: str) -> bool:
    i = 0
    while i < min(len(a), len(b)) and a[i] == b[i]:
        i += 1
    rest_a, rest_b = a[i:], b[i:]
    return (
        rest_a[1:] == rest_b[1:]
        or rest_a[1:] == rest_b
        or rest_a == rest_b[1:]
        or (rest_a[2:] == rest_b[2:] and rest_a[:2] == rest_b[1::-1])
    )
