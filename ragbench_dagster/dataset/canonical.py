"""The normalised form of a question: two texts with one form are one question (design 8.1).

Case, spacing, punctuation, Unicode spelling, greetings, politeness and the numbers of placeholders go;
symbols that carry meaning (C++, C#, .net, $, €, %, 10.5, -5, --max-age) and accents stay. Only text of the
form itself decides, never a dictionary, so that a form and the ids made of it outlive every update.
Phrases are `phrases.py`'s, typing errors are `typos.py`'s.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from ragbench_dagster.dataset import courtesy
from ragbench_dagster.dataset.phrases import lists_hash, read_list, read_words, strip_phrases
from ragbench_dagster.store import digest

_RULES = "3"  # raise it when a rule here changes: cached digests and releases are then cut anew
_LISTS = (
    "openings.txt", "closings.txt", "fillers.txt", "announcements.txt", "binding_words.txt", "function_words.txt",
    "courtesy.txt", "courtesy_classes.txt", "given_names.txt",
)  # fmt: skip
TURN = "\n"  # the token between the turns of a conversation

# Letters of other alphabets that look like Latin ones; mapped only inside words that also hold Latin letters.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏԛԝкмтвнαορνκιτυχβεηγ",
    "aeopcyxijsdhlqwkmtbhaopvkituxbeny",
)
_BEFORE_NFKC: dict[int, str | None] = str.maketrans(
    {
        **{mark: f"^{digit}" for digit, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},  # NFKC would read 10⁵ as 105
        "¼": " 1/4",
        "½": " 1/2",
        "¾": " 3/4",
        "⅓": " 1/3",
        "⅔": " 2/3",  # and 1½ as 11/2
        **dict.fromkeys("’‘‛ʼʹ′´`＇ʻ", "'"),
        **dict.fromkeys("“”„‟«»″〝〞", '"'),
        **dict.fromkeys("‐‑‒–—―−﹣", "-"),
        **dict.fromkeys("؟¿¡。、，！？；：।", " "),
        # soft hyphen, zero-width and direction marks, variation selectors carry nothing
        **dict.fromkeys([0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F)]),
        **dict.fromkeys([*range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF, 0x2028, 0x2029], " "),
        **dict.fromkeys([*range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF]),
    }
)


def _token_pattern(word: str) -> re.Pattern[str]:
    """The tokens of a case-folded text; `word` is the class of the characters words are made of."""
    return re.compile(
        rf"""
          [a-z]+(?=[\s?!,]|$)                          # a plain word: most are, and the rest need not be tried
        | </?[a-z][a-z0-9_]*>                          # placeholder, or an HTML tag
        | (?<!\S)--[a-z0-9][\w-]*                      # --flag
        | (?<!\S)-[a-z](?=\s|$)                        # -v
        | (?<![\w.)\]%])[-+]?\.?\d+(?:[.,:/']\d+)*[{word}]*(?:\s?%)?  # -5, 10.5, 24/7, 5'10, 3g, 50%
        | (?<!\S)[/.\#@]?(?=[^\W_])[{word}]/[{word}](?![{word}/])  # w/o, i/o, a/b
        | (?<!\S)[/.][^\W\d_][{word}/.-]*              # .net, /etc/hosts
        | [\#@]?[{word}]+(?:[.][{word}]+)*(?:\+\+?|\#)?(?![{word}+\#])  # word, node.js, v1.5, c++, c#, #tag
        | [\#@]?[{word}]+(?:[.][{word}]+)*
        | (?<=\d)\s?-\s?(?=\d)                         # 10 - 5
        | [-=!<>~:]*[=<>][-=<>~]*|&&|\|\|              # operators, arrows
        | [$%&+*^~|\\@]
        | [^\s\x00-\x7f]
        """,
        re.VERBOSE,
    )


_TRANSLATED = frozenset(map(chr, _BEFORE_NFKC))
_ASCII_TOKENS = _token_pattern(r"\w")
# Most questions are words and punctuation alone. These need a closer look: a dot inside or before a word, a flag,
# two apostrophes, three of one letter.
_EDGES = re.compile(r"\.[a-z]|(?<!\S)--?[a-z]|''")
_TRIPLE = re.compile(r"([a-z])\1\1")
# What parts clauses, and what of it ends a sentence.
_PARTING = re.compile(r"([.!?\u2026;:,()\n\u3002\uff01\uff1f\u2013\u2014-]+)(?:(?=\s)|(?<=[()\n\u3002\uff01\uff1f]))")
_SENTENCE = re.compile(r"[.!?\u2026\n\u3002\uff01\uff1f]")
_WORD = re.compile(r"[^\W_]|[^\s\x00-\x7f]")
_QUOTES = re.compile(r"[\"\u201c\u201d\u00ab\u00bb]")
_PUNCTUATION = ',?!.-:;()"'
_SPACES = bytes.maketrans(_PUNCTUATION.encode("ascii"), b" " * len(_PUNCTUATION))
# Words of plain texts, as most words of a log are: a text of these alone needs no closer look. Bounded.
_plain_words: set[str] = set()
_PLAIN_WORDS_KEPT = 1 << 13
_RUN = re.compile(r"([^\W\d_])\1{2,}")
_SIZES = re.compile(r"[ivxlcdm]+|[ivx]+[a-h]|x+[sl]|w{3}")  # roman numbers (and iiia), XXL, www
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?%?")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
_NUMBERED = re.compile(r"<([a-z][a-z0-9_]*?)_\d+>")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_FILE_END = re.compile(
    r".+\.(?:js|ts|net|com|org|io|ai|dev|app|edu|gov|info|eu|de|fr|uk|py|rb|go|rs|md|txt|csv|tsv|json|ya?ml|xml|"
    r"html?|css|pdf|docx?|xlsx?|pptx?|zip|tar|gz|exe|sh|sql|log|ini|cfg|conf|toml|env|jar|png|jpe?g|gif|svg|mp[34])"
)


@lru_cache(maxsize=1)
def _unicode_tokens() -> re.Pattern[str]:
    """As `_ASCII_TOKENS`, with combining marks inside words: Hindi and Thai vowels are such marks."""
    marks, start = [], None
    for code in range(0x300, 0x1E945):
        is_mark = unicodedata.category(chr(code))[0] == "M"
        if is_mark and start is None:
            start = code
        elif not is_mark and start is not None:
            marks.append(f"{chr(start)}-{chr(code - 1)}")
            start = None
    return _token_pattern(r"\w" + "".join(marks))


_ROLE = re.compile(r"(?:user|human|assistant|ai|model|bot): ")  # as `traffic.convert.to_history` writes a message


def form_version() -> str:
    """What forms are made by: the rules here and the phrase lists."""
    return digest(_RULES, lists_hash(*_LISTS), size=8)


def normalise(text: str) -> str:
    """The normalised form of one question; never empty for a text that holds a visible character."""
    return both_forms(text)[0]


def both_forms(text: str) -> tuple[str, str]:
    """The normalised form, and the loose form with greetings and politeness still in it.

    The loose form finds a typing error inside those; where nothing was stripped it is the same object.
    """
    tokens = tokens_of(text)
    kept = _without_courtesy(text, tokens)
    form = " ".join(kept)
    return form, form if kept is tokens else " ".join(tokens)


def form_of(query: str, history: Sequence[str] = ()) -> str:
    """The form of a question in its conversation: the turns before it count, else it means nothing.

    Who said a turn shows in its place: a log of texts and one of messages hold the same conversation.
    """
    if not history:
        return normalise(query)
    turns = [normalise(turn[m.end() :] if (m := _ROLE.match(turn)) else turn) for turn in history]
    return f" {TURN} ".join([*turns, normalise(query)])


def example_id(form: str) -> str:
    """Id of the example with this form. It starts with a letter: a spreadsheet leaves it alone."""
    return "e" + digest(form, size=8)


def _without_courtesy(text: str, tokens: list[str]) -> list[str]:
    """`tokens` without greetings, thanks and the like, by structure and by the phrase lists."""
    holed = "<" in text
    if not holed and courtesy.ANY_SIGNS.isdisjoint(tokens):
        return strip_phrases(tokens, False)
    at_ends = holed or not courtesy.STRONG_SIGNS.isdisjoint(tokens)
    plain = text.rstrip("?.! ").replace(" ", "").isalpha()  # as most are: nothing parts two words
    pieces = [text] if plain else _PARTING.split(_unquoted(text))
    if len(pieces) > 1:
        kept = courtesy.without_courtesy(_clauses(pieces, tokens))
    elif at_ends:
        kept = courtesy.without_courteous_ends(tokens)
    else:
        return strip_phrases(tokens, False)
    shorter = strip_phrases(kept, holed)
    if shorter is not kept:
        shorter = courtesy.without_courteous_ends(shorter)
    return tokens if len(shorter) == len(tokens) else shorter


def _unquoted(text: str) -> str:
    """A text without the quotation marks around the whole of it."""
    inner = text.strip()
    if '"' not in inner:
        return inner
    whole = inner[:1] == inner[-1:] == '"' and inner.count('"') == 2
    return inner[1:-1] if whole else inner


def _clauses(pieces: list[str], tokens: list[str]) -> list[list[str]]:
    """`tokens` clause by clause; a clause that holds a quotation mark ends with `courtesy.QUOTE`.

    Args:
        pieces: of the text, every other one the punctuation between two.
    """
    found = _plain_pieces(pieces)
    if list(chain.from_iterable(found)) != tokens:
        found = [tokens_of(piece) if _WORD.search(piece) else [] for piece in pieces[::2]]
        if list(chain.from_iterable(found)) != tokens:
            return [tokens]
    clauses: list[list[str]] = []
    joins = False
    whole = "".join(pieces)
    quoted = '"' in whole or not whole.isascii()
    for at, words in enumerate(found):
        if clauses and not joins:
            joins = courtesy.speaks_of(clauses[-1]) and not _SENTENCE.search(pieces[2 * at - 1])
        if not words:
            continue
        if quoted and _QUOTES.search(pieces[2 * at]):
            words.append(courtesy.QUOTE)
        if joins:
            clauses[-1] += words
        else:
            clauses.append(words)
        joins = False
    return clauses


def _plain_pieces(pieces: list[str]) -> list[list[str]]:
    """The words of each piece if these are plain; all at once, which is quicker."""
    return [line.split() for line in _spaced("\n".join(pieces[::2]).lower()).split("\n")]


def _spaced(folded: str) -> str:
    """A lower-case text with spaces for punctuation and without apostrophes."""
    if folded.isascii():  # bytes are translated at once, without a loop over the marks
        return folded.encode("ascii").translate(_SPACES, b"'").decode("ascii")
    plain = folded.replace("'", "")
    for mark in _PUNCTUATION:
        plain = plain.replace(mark, " ")
    return plain


def tokens_of(text: str) -> list[str]:
    """The tokens of a text after case, spacing, punctuation and Unicode spelling are settled."""
    if text.isascii():
        folded = text.lower()
        tokens = _spaced(folded).split()
        if _are_plain(tokens, folded):
            dotted = "." in folded or "-" in folded or "''" in folded
            if not dotted or not _EDGES.search(folded):
                return tokens
        pattern = _ASCII_TOKENS
    else:
        folded = unicodedata.normalize("NFKC", _translated(text)).casefold()
        folded = _translated(unicodedata.normalize("NFC", folded))
        pattern = _unicode_tokens()
    return _all_tokens(folded, pattern) or text.split() or [""]


def _are_plain(tokens: list[str], folded: str) -> bool:
    """Whether all tokens are letters, and none stands three times in a row in the `folded` text."""
    if tokens and _plain_words.issuperset(tokens):
        return True
    if not "".join(tokens).isalpha() or _TRIPLE.search(folded):
        return False
    # An apostrophe between them parts letters of the text that are side by side in the token.
    if len(_plain_words) < _PLAIN_WORDS_KEPT and "'" not in folded:
        _plain_words.update(tokens)
    return True


def _translated(text: str) -> str:
    """`text` by `_BEFORE_NFKC`; most texts hold no sign of it, which is quicker to see than to translate."""
    return text if _TRANSLATED.isdisjoint(text) else text.translate(_BEFORE_NFKC)


def _all_tokens(folded: str, pattern: re.Pattern[str]) -> list[str]:
    if "'" in folded:
        folded = _APOSTROPHE.sub("", folded)
    if "<" in folded:
        folded = _NUMBERED.sub(r"<\1>", folded)
    tokens: list[str] = []
    for token in pattern.findall(folded):
        if token.isalpha() and token.isascii():
            tokens.append(token)
        else:
            tokens.extend(_careful(token))
    if _RUN.search(folded):
        tokens = [_squeezed(token) for token in tokens]
    return tokens or folded.split()


def _squeezed(word: str) -> str:
    """Three and more of one letter become two ("heeelp", "heelp": one edit from "help")."""
    if not _RUN.search(word) or _SIZES.fullmatch(word) or len(set(word)) == 1:
        return word
    return _RUN.sub(r"\1\1", word)


def _careful(token: str) -> list[str]:
    """Tokens that are more than a plain word; punctuation gives none."""
    token = token.strip()
    if token == "&":
        return ["and"]
    if len(token) == 1 and not token.isalnum():
        return [token] if token.isascii() or unicodedata.category(token)[0] == "S" else []
    if not token.strip("_"):
        return []
    if token[0].isdigit() or token[0] in "+-.":
        token = token.replace(" ", "")
        return [token.replace(",", "") if _THOUSANDS.fullmatch(token) else token]
    if "." in token[1:]:
        return _dotted(token)
    if not token.isascii() and any("a" <= letter <= "z" for letter in token):
        token = token.translate(_LOOKALIKES)
    return [token]


def _dotted(token: str) -> list[str]:
    """`u.s` is `us`, `node.js` and `v1.5` stay, `card.how` is two words with a forgotten space."""
    if _INITIALS.fullmatch(token):
        return [token.replace(".", "")]
    if _FILE_END.fullmatch(token) or not token.replace(".", "").isalpha() or "/" in token:
        return [token]
    return [part for part in token.split(".") if part]


# Numbers written in letters: Roman ones, cardinals, ordinals, and the letters that count things (plan a, plan b).
#
# A number is never a typing error of another number: iv and vi, setenta and sesenta, appendix c and appendix d.

# Units to thousands in the usual subtractive spelling, and iiii, which clocks and old books use.
_ROMAN = re.compile(r"(?=.)m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,4})")
# Of these letters alone no other word is made: xi, viii, and with a part behind it: iia.
_SURE_ROMAN = re.compile(r"(?=[ivx]{2})x{0,3}(?:ix|iv|v?i{0,4})[a-h]?")


@lru_cache(maxsize=1)
def spelled_numbers() -> dict[str, frozenset[str]]:
    """Cardinals and ordinals by language, with and without their accents."""
    found = {}
    for line in read_list("numbers.txt"):
        language, _, words = line.partition(":")
        found[language] = frozenset(spelling for word in words.split() for spelling in (word, _without_marks(word)))
    return found


@lru_cache(maxsize=1)
def _spelled() -> frozenset[str]:
    return frozenset().union(*spelled_numbers().values())


@lru_cache(maxsize=1)
def enumerators() -> frozenset[str]:
    """Words that a letter or a Roman number behind them counts."""
    return read_words("enumerators.txt")


def is_roman(word: str) -> bool:
    """True for a Roman number of two letters or more that is hardly ever another word."""
    return _SURE_ROMAN.fullmatch(word) is not None


@lru_cache(maxsize=1 << 16)
def is_numeral(word: str) -> bool:
    """True for a number in letters; also for words that may be one (mix, six)."""
    return word in _spelled() or is_roman(word) or _ROMAN.fullmatch(word) is not None


def counts(word: str, before: str) -> bool:
    """True where `word`, standing behind `before`, is a letter or a Roman number that tells things apart."""
    return (len(word) == 1 or is_roman(word)) and before in enumerators()


def _without_marks(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c)[0] != "M")
